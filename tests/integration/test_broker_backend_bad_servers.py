"""Whatever listens on the port: one clear sentence, in bounded time, and never an error of the client library."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, Security
from reconciler.errors import (
    AuthorizationError,
    OutcomeUnknownError,
    RequestRefusedError,
    UnreachableError,
    UnsupportedClusterError,
)
from reconciler.features.logins.kinds import IamLogin
from reconciler.model.entity import DEFAULT
from reconciler.model.plan import Alteration
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
from tests.builders import pair, user
from tests.support.bad_servers import (
    ScriptedBroker,
    hangs_up,
    refusing_port,
    serving,
    silent,
    speaks_http,
    speaks_http_and_hangs_up,
    speaks_tls_alerts,
)

QUICK = 0.5
PLAINTEXT = Security()
API_VERSIONS, METADATA, DESCRIBE, ALTER = 18, 3, 48, 49


def connect(*ports: int, seconds: float = 10.0, security: Security = PLAINTEXT) -> BrokerCluster:
    servers = tuple(("127.0.0.1", port) for port in ports)
    return BrokerCluster.open(
        ConnectionSettings(servers=servers, connect_seconds=seconds, request_seconds=seconds, security=security)
    )


def set_one() -> Alteration:
    return Alteration(entity=user("a"), ops={"producer_byte_rate": 1.0})


@contextmanager
def scripted(
    *others: int, cluster_id: str | None = "scripted", **answers: Callable[[int], Any]
) -> Iterator[tuple[BrokerCluster, ScriptedBroker]]:
    """A client of broker 7, which answers as told (``describe``, ``alter``), and has no quota requests when told nothing.

    ``others`` are the ports of brokers 8, 9 and so on.
    """
    from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

    keys = {"describe": DESCRIBE, "alter": ALTER}
    offered = {API_VERSIONS: 3, METADATA: 9, **{keys[name]: 1 for name in answers}}
    row = ApiVersionsResponse.ApiVersion
    ports: list[int] = []

    def api_versions(_version: int) -> Any:
        rows = [row(api_key=key, min_version=0, max_version=newest) for key, newest in offered.items()]
        return ApiVersionsResponse(error_code=0, api_keys=rows, throttle_time_ms=0)

    def metadata(_version: int) -> Any:
        node = MetadataResponse.MetadataResponseBroker
        brokers = [node(node_id=7 + n, host="127.0.0.1", port=port, rack=None) for n, port in enumerate((*ports, *others))]
        return MetadataResponse(throttle_time_ms=0, brokers=brokers, cluster_id=cluster_id, controller_id=7, topics=[])

    broker = ScriptedBroker({API_VERSIONS: api_versions, METADATA: metadata, **{keys[n]: a for n, a in answers.items()}})
    with serving(broker) as port:
        ports.append(port)
        cluster = connect(port, seconds=2.0)
        try:
            yield cluster, broker
        finally:
            cluster.close()


def described(error_code: int = 0, message: str | None = None) -> Callable[[int], Any]:
    from kafka.protocol.admin import DescribeClientQuotasResponse

    entries: list[object] | None = [] if error_code == 0 else None
    return lambda _: DescribeClientQuotasResponse(
        throttle_time_ms=0, error_code=error_code, error_message=message, entries=entries
    )


def altered(*rows: tuple[int, str | None, tuple[tuple[str, str | None], ...]]) -> Callable[[int], Any]:
    from kafka.protocol.admin import AlterClientQuotasResponse

    entry = AlterClientQuotasResponse.EntryData
    entries = [
        entry(error_code=code, error_message=text, entity=[entry.EntityData(entity_type=t, entity_name=n) for t, n in parts])
        for code, text, parts in rows
    ]
    return lambda _: AlterClientQuotasResponse(throttle_time_ms=0, entries=entries)


A = (("user", "a"),)


def test_every_server_that_was_tried_is_named():
    one, two = refusing_port(), refusing_port()
    with pytest.raises(UnreachableError) as raised:
        connect(one, two)
    assert f"127.0.0.1:{one}: connection refused" in str(raised.value)
    assert f"127.0.0.1:{two}: connection refused" in str(raised.value)


NO_KAFKA = "what it answers is not the Kafka protocol"
HINT = "(?s:.*)--command-config client.properties"


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (silent, "no answer in time"),
        (hangs_up, f"the server closed the connection{HINT}"),
        (speaks_http, f"{NO_KAFKA}{HINT}"),
        (speaks_http_and_hangs_up, HINT),
        (speaks_tls_alerts, f"{NO_KAFKA}{HINT}"),
    ],
)
def test_what_listens_is_no_kafka_and_may_want_more_than_plaintext(server, reason):
    with serving(server) as port, pytest.raises(UnreachableError, match=f"127.0.0.1:{port}: {reason}"):
        connect(port, seconds=QUICK)


def test_a_failed_connection_leaves_no_thread_behind():
    before = set(threading.enumerate())
    with pytest.raises(UnreachableError):
        connect(refusing_port())
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("pkc-1.eu-west-1.aws.confluent.cloud", "Confluent Cloud keeps quotas of service accounts in its own API"),
        ("kafka-1.project.aivencloud.com", "Aiven sets client quotas through its own API"),
        ("kafka.internal", "--operation DescribeConfigs --cluster$"),
    ],
)
def test_a_service_that_refuses_to_describe_brings_a_sentence_about_what_works_there(host, words):
    with scripted(describe=described(31)) as (opened, _):
        cluster = BrokerCluster(opened._transport, name=None, security=PLAINTEXT, hosts=(host,))
        with pytest.raises(AuthorizationError, match=words):
            cluster.current_state()


@pytest.mark.parametrize(
    ("request_of", "action"),
    [
        (lambda cluster: cluster.current_state(), "kafka-cluster:DescribeClusterDynamicConfiguration"),
        (lambda cluster: cluster.alter([set_one()], validate_only=False), "kafka-cluster:AlterClusterDynamicConfiguration"),
    ],
    ids=["read", "write"],
)
def test_an_iam_identity_without_a_right_is_sent_to_its_policy_and_not_to_acls(request_of, action):
    """There is no MSK cluster to try it on."""
    with scripted(describe=described(31), alter=altered((31, "no", A))) as (opened, _):
        cluster = BrokerCluster(opened._transport, name=None, security=Security(sasl=IamLogin()), hosts=())
        with pytest.raises(AuthorizationError, match=action) as refused:
            request_of(cluster)
    assert "kafka-acls" not in str(refused.value)


def test_quotas_of_types_that_kafka_does_not_have_are_kept_and_noted():
    from kafka.protocol.admin import DescribeClientQuotasResponse

    entry = DescribeClientQuotasResponse.EntryData
    rows = [
        entry(
            entity=[entry.EntityData(entity_type=kind, entity_name="app")],
            values=[entry.ValueData(key="producer_byte_rate", value=1.0)],
        )
        for kind in ("client-id", "client-id-prefix")
    ]

    def answer(_: int) -> Any:
        return DescribeClientQuotasResponse(throttle_time_ms=0, error_code=0, error_message=None, entries=rows)

    with scripted(cluster_id="redpanda.0a1b", describe=answer) as (cluster, _):
        state = cluster.current_state()
    assert len(state.entities) == 2
    assert state.notes == (
        "The cluster has quotas of types that Kafka does not have: client-id-prefix. They are left as they are.",
    )


def test_reading_is_tried_once_more_and_no_further_when_the_connection_breaks():
    with scripted(describe=lambda _: None) as (cluster, broker):
        with pytest.raises(UnreachableError, match="the server closed the connection"):
            cluster.describe(EntityFilter())
        assert broker.asked.count(DESCRIBE) == 2


def test_writing_is_never_tried_again_when_the_connection_breaks():
    with scripted(alter=lambda _: None) as (cluster, broker):
        with pytest.raises(OutcomeUnknownError, match="may or may not have been done"):
            cluster.alter([set_one()], validate_only=False)
        assert broker.asked.count(ALTER) == 1


class _Spoilt:
    """A message that ends in the middle, in a frame of the right length."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self if name == "_message" else self._message, name, value)

    def with_header(self, correlation_id: int) -> None:
        self._message.with_header(correlation_id=correlation_id)

    def encode(self, **_: Any) -> bytes:
        body = bytes(self._message.encode(header=True))[:-3]
        return struct.pack(">i", len(body)) + body


def test_a_malformed_answer_to_a_read_is_asked_for_once_more_and_then_told():
    with scripted(describe=lambda version: _Spoilt(described(1, "some words")(version))) as (cluster, broker):
        with pytest.raises(UnsupportedClusterError, match="malformed: the bytes end too early"):
            cluster.describe(EntityFilter())
        assert broker.asked.count(DESCRIBE) == 2


def test_after_a_malformed_answer_the_outcome_of_a_write_is_unknown():
    with scripted(alter=lambda version: _Spoilt(altered((0, None, A))(version))) as (cluster, broker):
        with pytest.raises(OutcomeUnknownError, match=r"malformed: .*may or may not have been done"):
            cluster.alter([set_one()], validate_only=False)
        assert broker.asked.count(ALTER) == 1


@pytest.mark.parametrize("code", [7, -1])
def test_after_a_timeout_or_an_unexpected_error_the_outcome_of_a_write_is_unknown(code):
    with scripted(alter=altered((code, "The request timed out.", A))) as (cluster, _):
        with pytest.raises(OutcomeUnknownError, match=f"error {code}"):
            cluster.alter([set_one()], validate_only=False)
        with pytest.raises(RequestRefusedError) as refused:
            cluster.alter([set_one()], validate_only=True)
        assert refused.value.error_code == code


def test_a_write_that_the_answer_does_not_mention_has_an_unknown_outcome():
    with scripted(alter=altered((0, None, (("user", "other"),)))) as (cluster, _):
        with pytest.raises(OutcomeUnknownError, match="does not mention user=a"):
            cluster.alter([set_one()], validate_only=False)
        result = cluster.alter([set_one()], validate_only=True)[0]
        assert (result.entity, result.error_code) == (user("a"), -1)


def test_results_are_matched_by_entity_whatever_the_order_and_whatever_else_is_there():
    rows = [(42, "no", (("client-id", None), ("user", "a"))), (0, None, (("user", "stranger"),)), (0, None, A)]
    with scripted(alter=altered(*rows)) as (cluster, _):
        wanted = [set_one(), Alteration(entity=pair("a", DEFAULT), ops={"producer_byte_rate": 1.0})]
        results = cluster.alter(wanted, validate_only=False)
    assert [(r.entity, r.error_code, r.error) for r in results] == [(user("a"), 0, None), (pair("a", DEFAULT), 42, "no")]


def test_a_refusal_of_the_whole_request_is_no_fact_about_its_entities():
    generic = "Request parameters do not satisfy the configured policy."
    rows = [(44, generic, A), (44, generic, (("user", "b"),))]
    with scripted(alter=altered(*rows)) as (cluster, _), pytest.raises(RequestRefusedError, match="10,000 keys") as refused:
        cluster.alter([set_one(), Alteration(entity=user("b"), ops={"producer_byte_rate": 1.0})], validate_only=False)
    assert refused.value.error_code == 44


ANY_USER = EntityFilter(components=(FilterComponent(entity_type="user", kind=FilterKind.SPECIFIED),))


@pytest.mark.parametrize("entity_filter", [EntityFilter(), ANY_USER])
def test_a_state_costs_one_request_for_quotas_and_one_for_the_cluster(entity_filter):
    with scripted(describe=described()) as (cluster, broker):
        before = len(broker.asked)
        state = cluster.current_matching(entity_filter)
        assert broker.asked[before:] == [DESCRIBE, METADATA]
    assert (state.cluster.id, state.brokers) == ("scripted", (7,))


def test_brokers_that_hang_are_waited_for_together():
    both = threading.Barrier(2)

    def hang(connection: socket.socket) -> None:
        both.wait(300)
        silent(connection)

    with serving(hang) as one, serving(hang) as two, scripted(one, two, describe=described()) as (cluster, _):
        answers = cluster.describe_on(EntityFilter(), [8, 7, 9])
    assert answers[7] == {}
    assert [type(answers[number]).__name__ for number in (8, 9)] == ["NoConnectionError"] * 2
    assert not both.broken, "the second was asked only when the first had been given up"


def test_a_broker_that_falls_silent_is_asked_no_more_while_another_answers():
    hung = threading.Event()

    def silent_at_first(_version: int) -> None:
        hung.wait(300)

    with scripted(describe=described()) as (other, second):
        port = other.brokers()[0].port
        with scripted(port, describe=silent_at_first) as (cluster, first):
            try:
                assert cluster.describe(EntityFilter()) == {}
            finally:
                hung.set()
        assert (first.asked.count(DESCRIBE), second.asked.count(DESCRIBE)) == (1, 1)


def test_an_interrupt_while_waiting_for_an_answer_ends_at_once():
    hang = threading.Event()
    program = """
import sys
from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
servers = (("127.0.0.1", int(sys.argv[1])),)
cluster = BrokerCluster.open(ConnectionSettings(servers=servers, request_seconds=900.0))
try:
    cluster.describe(EntityFilter())
except KeyboardInterrupt:
    cluster.close()
    print("interrupted")
"""

    def never(_version: int) -> None:
        asked.set()
        hang.wait()

    asked = threading.Event()
    with scripted(describe=never) as (cluster, _):
        port = str(cluster.brokers()[0].port)
        child = subprocess.Popen([sys.executable, "-c", program, port], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert asked.wait(300)
            child.send_signal(signal.SIGINT)
            stdout, stderr = child.communicate(timeout=300)  # the request itself would wait for 900 s
        finally:
            hang.set()
            child.kill()
            child.wait()
    assert (stdout, stderr) == ("interrupted\n", "")
