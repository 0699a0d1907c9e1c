"""The recommended limit of topics that are created, extended and deleted, given to the broker that they were recorded on."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

from reconciler.model import BacktestReport, Form, Verdict
from reconciler.model.cluster import HistoryNeeds
from reconciler.model.entity import Entity
from reconciler.traffic.kinds import BYTES, Kind
from tests.support import raw_quotas
from tests.support.local_traffic import open_here
from tests.support.polling import wait_until
from tests.support.request_log_tail import RequestLogTail
from tests.support.wire_client import WireClient

if TYPE_CHECKING:
    from reconciler.features.sandbox.spec import Sandbox

pytestmark = pytest.mark.kafka
TOPICS = 12
REFUSED = 89


class Admin:
    """A client-id that creates topics of three partitions, extends them to five, and deletes them, each in a request."""

    def __init__(self, sandbox: Sandbox, limit: float | None) -> None:
        assert sandbox.sasl_bootstrap_servers is not None
        self.name, self._server, self._sandbox = f"admin-{uuid.uuid4()}", sandbox.sasl_bootstrap_servers, sandbox
        self._log = RequestLogTail(sandbox)
        if limit is not None:
            entity = frozenset({("client-id", self.name)})
            raw_quotas.alter(sandbox.bootstrap_servers, {entity: {"controller_mutation_rate": limit}})
            assert raw_quotas.settled(sandbox.bootstrap_servers)[entity] == {"controller_mutation_rate": limit}

    def run(self) -> list[int]:
        """The error codes of all answers, in the order of the requests."""
        names = [f"{self.name}-{number}" for number in range(TOPICS)]
        codes = []
        for name in names:
            topic = CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=3, replication_factor=1, assignments=[], configs=[]
            )
            codes.append(self._code(CreateTopicsRequest[7](topics=[topic], timeout_ms=30_000, validate_only=False)))
        for name in names:
            more = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=5, assignments=None)
            codes.append(self._code(CreatePartitionsRequest[3](topics=[more], timeout_ms=30_000, validate_only=False)))
        for name in names:
            gone = DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=uuid.UUID(int=0))
            codes.append(self._code(DeleteTopicsRequest[6](topics=[gone], timeout_ms=30_000)))
        return codes

    def _code(self, request: Any) -> int:
        """On a connection of its own, since a throttled one is not read."""
        with WireClient(self._server, self._sandbox.user("alice"), self.name) as connection:
            answer = connection.ask(request)
        (topic,) = next(topics for name in ("topics", "results", "responses") if (topics := getattr(answer, name, None)))
        return int(topic.error_code)

    def backtest(self, limit: float) -> BacktestReport:
        """Of the broker's log, when it has all requests of this client."""
        from reconciler.traffic import Backtest, BacktestRequest, find_traffic

        words = ('"requestApiKeyName":"DELETE_TOPICS"', f'"clientId":"{self.name}"')
        wait_until(lambda: self._log.count(*words) >= 2 * TOPICS)
        proposed = {Entity.of({"client-id": self.name}): {"controller_mutation_rate": limit}}
        needs = HistoryNeeds(hours=0.0, coverage_percent=0.0)
        question = BacktestRequest(current={}, proposed=proposed, declared=proposed, needs=needs)
        with self._log.copied() as log:
            recorded = open_here(find_traffic([f"1={log}"]), form=Form.SECONDS, kinds=(*BYTES, Kind.MUTATION))
            try:
                return Backtest(recorded, question).report()
            finally:
                recorded.close()


def test_the_recommended_rate_refuses_nothing_and_a_lower_one_does(clean_kafka: Sandbox) -> None:
    recorded = Admin(clean_kafka, None)
    assert set(recorded.run()) == {0}
    report = recorded.backtest(1.0)
    (verdict,) = (row for row in report.verdicts if row.name.client_id == recorded.name)
    # Three to create a topic, two to extend it, and five to delete it.
    assert sum(member.requests for member in verdict.recorded.members) == 3 * TOPICS
    assert verdict.peak.rate * 11 == pytest.approx(10 * TOPICS, rel=0.5)
    assert (verdict.verdict, verdict.recorded.uncharged) == (Verdict.THROTTLED, 0)
    assert verdict.advice.recommended is not None

    assert Admin(clean_kafka, verdict.advice.recommended).run().count(REFUSED) == 0
    low = 0.5 * verdict.peak.least_safe
    (predicted,) = (row for row in recorded.backtest(low).verdicts if row.name.client_id == recorded.name)
    refused = Admin(clean_kafka, low).run().count(REFUSED)
    assert refused > 0
    assert predicted.replay is not None
    assert (predicted.replay.refused or 0) > 0
