"""A user's quotas and credentials share one node: neither is lost while both change, whoever writes them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from kafka.errors import KafkaError

from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.features.sandbox.spec import Listener, Sandbox, SandboxSpec
from reconciler.model.plan import Alteration
from tests.builders import pair, user
from tests.support import zookeeper_tree
from tests.support.secured_kafka import SCRAM
from tests.support.zookeeper_session import zookeeper_cluster

pytestmark = pytest.mark.kafka

KEY = "producer_byte_rate"
NODE = "/config/users/sam"
ALTERATIONS = 1000
PASSWORDS = 8

CHANGE_PASSWORD = """
import sys, time
from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion
servers, mechanism, *passwords = sys.argv[1:]
client = KafkaAdminClient(bootstrap_servers=servers)
for password in passwords:
    credential = UserScramCredentialUpsertion("sam", ScramMechanism[mechanism], password, iterations=4096)
    assert not any(client.alter_user_scram_credentials([credential]).values())
    time.sleep(0.2)
client.close()
"""


@pytest.fixture(scope="module")
def scram_sandbox() -> Iterator[Sandbox]:
    from reconciler.features.sandbox.cluster import running

    login = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
    }
    listener = Listener(name="LOGIN", protocol="SASL_PLAINTEXT", properties=login)
    with running(SandboxSpec(zookeeper=True, heap_mb=400, listeners=(listener,))) as sandbox:
        yield sandbox


@pytest.fixture
def cluster(scram_sandbox: Sandbox) -> Iterator[ZooKeeperCluster]:
    with zookeeper_cluster(scram_sandbox.zookeeper or "") as found:
        yield found


def set_passwords(sandbox: Sandbox, mechanism: str, *passwords: str) -> subprocess.Popen[bytes]:
    """Another process changes the password of the user sam, one after the other."""
    return subprocess.Popen([sys.executable, "-c", CHANGE_PASSWORD, sandbox.bootstrap_servers, mechanism, *passwords])


def log_in(sandbox: Sandbox, mechanism: str, password: str) -> None:
    """Fails when the broker does not take the password."""
    from kafka import KafkaAdminClient

    KafkaAdminClient(
        bootstrap_servers=sandbox.listeners["LOGIN"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism.replace("_", "-"),
        sasl_plain_username="sam",
        sasl_plain_password=password,
    ).close()


@contextlib.contextmanager
def repeated(act: Callable[[], None]) -> Iterator[list[BaseException | None]]:
    """Do it again and again in another thread; the outcomes."""
    outcomes: list[BaseException | None] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            try:
                act()
            except KafkaError as error:
                outcomes.append(error)
            else:
                outcomes.append(None)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield outcomes
    finally:
        ended.set()
        thread.join()


def config(nodes: zookeeper_tree.KazooClient) -> dict[str, str]:
    found: dict[str, str] = json.loads(nodes.get(NODE)[0])["config"]
    return found


@pytest.mark.large
def test_a_user_logs_in_and_changes_the_password_while_the_quotas_change_a_thousand_times(
    scram_sandbox: Sandbox, cluster: ZooKeeperCluster
) -> None:
    assert set_passwords(scram_sandbox, "SCRAM_SHA_512", "stays").wait(30) == 0
    passwords = [f"password-{number}" for number in range(PASSWORDS)]
    with zookeeper_tree.zookeeper_client(scram_sandbox.zookeeper or "") as nodes:
        stays = config(nodes)["SCRAM-SHA-512"]
        with repeated(lambda: log_in(scram_sandbox, "SCRAM_SHA_512", "stays")) as logins:
            changer = set_passwords(scram_sandbox, "SCRAM_SHA_256", *passwords)
            undone = change_quotas(cluster)
            assert changer.wait(60) == 0
        # Kafka's writer compares nothing, so it may have undone the last one too.
        undone += change_quotas(cluster, times=1)
        left = config(nodes)

    assert len(logins) > 3
    assert [error for error in logins if error is not None] == []
    assert left["SCRAM-SHA-512"] == stays
    log_in(scram_sandbox, "SCRAM_SHA_256", passwords[-1])
    assert left[KEY] == str(10**6)
    assert undone <= PASSWORDS


def change_quotas(cluster: ZooKeeperCluster, *, times: int = ALTERATIONS) -> int:
    """Count down to a million; how often an earlier value was found put back, which then is planned anew."""
    undone = 0
    live = cluster.current_state().entities.get(user("sam"), {}).get(KEY)
    for number in reversed(range(times)):
        wanted = 10.0**6 + number
        while True:
            change = Alteration(entity=user("sam"), ops={KEY: wanted}, before={KEY: live})
            (result,) = cluster.alter([change], validate_only=False)
            if not result.stale:
                break
            undone += 1
            live = cluster.current_state().entities.get(user("sam"), {}).get(KEY)
        assert result.error_code == 0, result
        live = wanted
    return undone


def test_the_last_quota_goes_and_the_credential_stays(scram_sandbox: Sandbox, cluster: ZooKeeperCluster) -> None:
    assert set_passwords(scram_sandbox, "SCRAM_SHA_512", "stays").wait(30) == 0
    with zookeeper_tree.zookeeper_client(scram_sandbox.zookeeper or "") as nodes:
        cluster.alter([Alteration(entity=user("sam"), ops={KEY: None})], validate_only=False)
        before = config(nodes)
        both = [Alteration(entity=entity, ops={KEY: 1e6}) for entity in (user("sam"), pair("sam", "app"))]
        assert [result.error_code for result in cluster.alter(both, validate_only=False)] == [0, 0]
        gone = [Alteration(entity=entity, ops={KEY: None}) for entity in (user("sam"), pair("sam", "app"))]
        assert [result.error_code for result in cluster.alter(gone, validate_only=False)] == [0, 0]

        assert config(nodes) == before
    log_in(scram_sandbox, "SCRAM_SHA_512", "stays")
    assert cluster.current_state().entities == {}
