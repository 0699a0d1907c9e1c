"""The broker backend on a real broker: logins, lost answers, and what is never shown."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, SaslLogin, Security, parse_servers
from reconciler.errors import OutcomeUnknownError
from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.plan import Alteration
from reconciler.ports import EntityFilter
from tests.builders import user
from tests.support import raw_quotas
from tests.support.bad_servers import Relay, serving

pytestmark = pytest.mark.kafka

SET_ONE = Alteration(entity=user("a"), ops={"producer_byte_rate": 1.0})


def open_cluster(servers: str, *, security: Security | None = None, seconds: float = 10.0) -> BrokerCluster:
    settings = ConnectionSettings(
        servers=parse_servers((servers,)), security=security or Security(), connect_seconds=seconds, request_seconds=seconds
    )
    return BrokerCluster.open(settings, name="sandbox")


def plain(name: str, password: str) -> Security:
    return Security(sasl=SaslLogin(mechanism="PLAIN", username=name, password=password))


@pytest.fixture
def sasl_servers(kafka_sandbox: Sandbox) -> str:
    assert kafka_sandbox.sasl_bootstrap_servers is not None
    return kafka_sandbox.sasl_bootstrap_servers


@pytest.fixture
def proxied(clean_kafka: Sandbox) -> Iterator[tuple[BrokerCluster, Relay]]:
    proxy = Relay(clean_kafka.nodes[0].port)
    with serving(proxy) as port:
        cluster = open_cluster(f"127.0.0.1:{port}")
        yield cluster, proxy
        cluster.close()


def test_a_write_whose_answer_is_lost_was_done_all_the_same(proxied, clean_kafka):
    cluster, proxy = proxied
    proxy.cut_answers = True
    with pytest.raises(OutcomeUnknownError, match=r"the server closed the connection\. It may or may not have been done"):
        cluster.alter([SET_ONE], validate_only=False)

    deadline = time.monotonic() + 10
    while not (seen := raw_quotas.describe(clean_kafka.bootstrap_servers)) and time.monotonic() < deadline:
        pass
    assert seen == {frozenset({("user", "a")}): {"producer_byte_rate": 1.0}}


def test_a_read_whose_answer_is_lost_is_asked_of_another_address(proxied):
    cluster, proxy = proxied
    proxy.cut_answers = True

    assert cluster.describe(EntityFilter()) == {}
    assert [r.error_code for r in cluster.alter([SET_ONE], validate_only=True)] == [0]
    assert cluster.identity().id


def test_a_write_that_was_not_sent_because_its_server_is_gone_is_sent_to_another(clean_kafka):
    proxy = Relay(clean_kafka.nodes[0].port)
    with serving(proxy) as port:
        cluster = open_cluster(f"127.0.0.1:{port}")
    deadline = time.monotonic() + 10
    while cluster._transport._manager._conns and time.monotonic() < deadline:
        pass
    try:
        assert [r.error_code for r in cluster.alter([SET_ONE], validate_only=False)] == [0]
    finally:
        cluster.close()


def test_being_throttled_by_a_quota_of_ones_own_only_takes_longer(clean_kafka, sasl_servers):
    alice = frozenset({("user", "alice")})
    raw_quotas.alter(clean_kafka.bootstrap_servers, {alice: {"request_percentage": 0.01}})
    cluster = open_cluster(sasl_servers, security=plain("alice", "alice-secret"))
    try:
        seen = [cluster.describe(EntityFilter()) for _ in range(4)]
        written = cluster.alter([Alteration(entity=user("alice"), ops={"request_percentage": None})], validate_only=False)
    finally:
        cluster.close()

    assert seen[-1] == {user("alice"): {"request_percentage": 0.01}}
    assert [r.error_code for r in written] == [0]


def test_nothing_is_printed_by_the_library_however_it_ends(kafka_sandbox, sasl_servers):
    program = f"""
from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import SaslLogin
from reconciler.backends.broker.settings import *
from reconciler.errors import BackendError
for servers, security in [({kafka_sandbox.bootstrap_servers!r}, Security()), ("127.0.0.1:1", Security()),
        ({sasl_servers!r}, Security(sasl=SaslLogin(mechanism="PLAIN", username="alice", password="x")))]:
    try:
        cluster = BrokerCluster.open(ConnectionSettings(servers=parse_servers((servers,)), security=security))
        cluster.current_state()
        cluster.close()
    except BackendError:
        pass
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("end\n", "")
