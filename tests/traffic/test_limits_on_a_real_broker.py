"""Limits that a real broker does not keep as they are written, and what the backtest reports about them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from reconciler.features.sandbox.spec import Login, SandboxSpec
from reconciler.model import BacktestReport, BucketVerdict, Form, Verdict
from reconciler.model.cluster import HistoryNeeds
from reconciler.model.entity import Entity
from reconciler.traffic.kinds import BYTES, Kind
from tests.support import raw_quotas
from tests.support.local_traffic import open_here
from tests.support.polling import wait_until
from tests.support.request_log_tail import RequestLogTail
from tests.support.wire_client import WireClient, record_batch

if TYPE_CHECKING:
    from reconciler.features.sandbox.spec import Sandbox

pytestmark = pytest.mark.kafka

BATCH_BYTES = 4_000_000


@pytest.fixture
def topic(clean_kafka: Sandbox) -> str:
    return new_topic(clean_kafka)


def new_topic(sandbox: Sandbox) -> str:
    """A new topic that takes batches of several megabytes."""
    from kafka.admin import KafkaAdminClient, NewTopic

    name = f"large-{uuid.uuid4()}"
    client = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap_servers)
    try:
        client.create_topics([NewTopic(name, 1, 1, topic_configs={"max.message.bytes": str(2 * BATCH_BYTES)})])
    finally:
        client.close()
    return name


class Client:
    """A client-id of its own; every request goes over a new connection, so that no throttle holds the next one back."""

    def __init__(self, sandbox: Sandbox) -> None:
        assert sandbox.sasl_bootstrap_servers is not None
        self.name = f"limits-{uuid.uuid4()}"
        self.entity = Entity.of({"client-id": self.name})
        self._sandbox, self._server = sandbox, sandbox.sasl_bootstrap_servers
        self._log = RequestLogTail(sandbox)

    def connect(self) -> WireClient:
        return WireClient(self._server, self._sandbox.user("alice"), self.name)

    def limit(self, quotas: Mapping[str, float]) -> None:
        """Set its quotas; returns when the broker enforces them."""
        entity = frozenset({("client-id", self.name)})
        raw_quotas.alter(self._sandbox.bootstrap_servers, {entity: dict(quotas)})
        assert raw_quotas.settled(self._sandbox.bootstrap_servers)[entity] == dict(quotas)

    def wait_until_logged(self, api: str, count: int = 1) -> None:
        """A broker writes the line of a request after its answer."""
        words = (f'"requestApiKeyName":"{api}"', f'"clientId":"{self.name}"')
        wait_until(lambda: self._log.count(*words) >= count)

    def backtest(self, quotas: Mapping[str, float], *, exact: bool, wraps: bool = True) -> tuple[BacktestReport, BucketVerdict]:
        """The whole report, and the verdict of this client."""
        from reconciler.traffic import Backtest, BacktestRequest, BrokerModel, Window, find_traffic

        proposed = {self.entity: dict(quotas)}
        # Some seconds of history are not the matter here.
        needs = HistoryNeeds(hours=0.0, coverage_percent=0.0)
        broker = BrokerModel(window=Window(wraps=wraps))
        question = BacktestRequest(current={}, proposed=proposed, declared=proposed, broker=broker, exact=exact, needs=needs)
        kinds = (*BYTES, Kind.REQUEST)
        with self._log.copied() as log:
            recorded = open_here(find_traffic([f"1={log}"]), form=Form.EXACT if exact else Form.SECONDS, kinds=kinds)
            try:
                report = Backtest(recorded, question).report()
            finally:
                recorded.close()
        (key,) = quotas
        (verdict,) = (one for one in report.verdicts if one.name.client_id == self.name and one.key == key)
        return report, verdict


TOO_LOW = {"producer_byte_rate": 1.0}
"""Each of four batches is throttled for 4 to 16 million seconds: longer than 32 bits of milliseconds can state."""


def throttles_of_batches(client: Client, sandbox: Sandbox) -> list[int]:
    topic = new_topic(sandbox)
    client.limit(TOO_LOW)
    throttles = []
    for _ in range(4):
        with client.connect() as connection:
            throttles.append(connection.produce(topic, record_batch(BATCH_BYTES))[1])
    client.wait_until_logged("PRODUCE", len(throttles))
    return throttles


def test_a_throttle_is_never_longer_than_32_bits(clean_kafka: Sandbox) -> None:
    client = Client(clean_kafka)
    assert throttles_of_batches(client, clean_kafka) == [2**31 - 1] * 4
    for exact in (False, True):
        report, verdict = client.backtest(TOO_LOW, exact=exact, wraps=False)
        assert verdict.verdict is Verdict.THROTTLED
        assert "throttle-overflow" not in [finding.id for finding in report.findings if finding.entity == client.entity]


@pytest.mark.large
def test_before_4_4_a_throttle_that_overflows_is_not_certain(start_kafka: Callable[[SandboxSpec], Sandbox]) -> None:
    older = start_kafka(
        SandboxSpec(kafka_version="4.3.1", users=(Login(name="alice", password="alice-secret"),), request_log=True)
    )
    client, limit = Client(older), TOO_LOW
    # Every one is negative in 32 bits.
    assert throttles_of_batches(client, older) == [0, 0, 0, 0]

    report, verdict = client.backtest(limit, exact=False)
    assert (verdict.verdict, verdict.over.certain) == (Verdict.POSSIBLE, 0)
    assert "overflows in the broker" in str(verdict.reason)
    (finding,) = (one for one in report.findings if one.id == "throttle-overflow")
    assert (finding.entity, finding.severity) == (client.entity, "warning")

    _, exactly = client.backtest(limit, exact=True)
    assert exactly.replay is not None
    assert (exactly.verdict, exactly.replay.throttled) == (Verdict.CLEAR, 0), exactly.reason


def test_a_consumer_whose_batch_is_larger_than_the_window_is_not_clear(clean_kafka: Sandbox, topic: str) -> None:
    client, limit = Client(clean_kafka), {"consumer_byte_rate": 300_000.0}
    with client.connect() as connection:
        connection.produce(topic, record_batch(BATCH_BYTES))
    with client.connect() as connection:
        assert connection.fetch_records(topic)[0] > BATCH_BYTES
    client.wait_until_logged("FETCH")

    report, verdict = client.backtest(limit, exact=True)
    assert verdict.verdict is Verdict.POSSIBLE
    assert "the consumer stops" in str(verdict.reason)
    assert "consumer-stops" in [one.id for one in report.findings if one.entity == client.entity]

    # The same fetch under that limit: no record, however often it is tried.
    client.limit(limit)
    for _ in range(5):
        with client.connect() as connection:
            records, throttle_ms = connection.fetch_records(topic)
        assert records == 0
        assert throttle_ms > 0
    # The limit that the finding names lets it through.
    client.limit({"consumer_byte_rate": float(verdict.advice.safe or 0)})
    with client.connect() as connection:
        assert connection.fetch_records(topic)[0] > BATCH_BYTES


MOST_REQUESTS = 20_000


def test_request_time_below_the_limit_in_the_log_is_not_clear(clean_kafka: Sandbox, topic: str) -> None:
    client, limit = Client(clean_kafka), {"request_percentage": 2.0}
    client.limit(limit)
    batch = record_batch(100)
    with client.connect() as connection:
        numbers = range(1, MOST_REQUESTS + 1)
        throttled = next((number for number in numbers if connection.produce(topic, batch)[1] > 0), 0)
    assert throttled
    client.wait_until_logged("PRODUCE", throttled)

    # The broker throttled this very traffic, whether or not the part of its time that the log has reaches the limit.
    _, verdict = client.backtest(limit, exact=True)
    assert verdict.verdict is not Verdict.CLEAR
    # The log has less than these limits, but does not show what the broker charged, however high they are.
    for above in (verdict.peak.rate * 1.1, 1_000.0):
        report, verdict = client.backtest({"request_percentage": above}, exact=True)
        assert verdict.peak.rate < above
        assert verdict.verdict is Verdict.INCONCLUSIVE
        assert str(verdict.reason).startswith("a request log lacks the time of network threads")
        assert (verdict.advice.safe, verdict.advice.recommended) == (None, None)
        assert any("Peaks are lower bounds of unknown size" in one for one in report.provenance.assumptions)
