"""What ``backtest --deploy`` states of a release, and the controller of a real broker that creates it."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest
from kafka.protocol.admin import CreateTopicsRequest

from reconciler.features.simulating.release import Release, ReleaseUnderQuota, created_after, release_report
from reconciler.model import ClusterSpec
from reconciler.model.entity import Entity
from tests.support import raw_quotas
from tests.support.wire_client import WireClient

if TYPE_CHECKING:
    from reconciler.features.sandbox.spec import Sandbox

pytestmark = pytest.mark.kafka
RELEASE = Release(topics=12, partitions_each=5)
LIMIT = 2.0
REFUSED = 89


class Deployer:
    """A client-id with a limit that creates the topics of a release."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.name, self._sandbox = f"deploy-{uuid.uuid4()}", sandbox
        entity = frozenset({("client-id", self.name)})
        raw_quotas.alter(sandbox.bootstrap_servers, {entity: {"controller_mutation_rate": LIMIT}})
        assert raw_quotas.settled(sandbox.bootstrap_servers)[entity] == {"controller_mutation_rate": LIMIT}

    @property
    def predicted(self) -> ReleaseUnderQuota:
        entity = Entity.of({"client-id": self.name})
        (row,) = release_report(RELEASE, {entity: {"controller_mutation_rate": LIMIT}}, ClusterSpec()).quotas
        return row

    def create(self, numbers: list[int], *, version: int, connection: WireClient) -> tuple[list[int], int]:
        """Ask for these topics: those that the controller refuses, and how long it throttles, in milliseconds."""
        topics = [
            CreateTopicsRequest.CreatableTopic(
                name=f"{self.name}-{number}",
                num_partitions=RELEASE.partitions_each,
                replication_factor=1,
                assignments=[],
                configs=[],
            )
            for number in numbers
        ]
        answer = connection.ask(CreateTopicsRequest[version](topics=topics, timeout_ms=30_000, validate_only=False))
        assert {topic.error_code for topic in answer.topics} <= {0, REFUSED}, answer
        refused = {topic.name for topic in answer.topics if topic.error_code == REFUSED}
        return [number for number in numbers if f"{self.name}-{number}" in refused], int(answer.throttle_time_ms)

    def connect(self) -> WireClient:
        assert self._sandbox.sasl_bootstrap_servers is not None
        return WireClient(self._sandbox.sasl_bootstrap_servers, self._sandbox.user("alice"), self.name)


def test_a_client_that_retries_has_its_topics_when_the_release_says(clean_kafka: Sandbox) -> None:
    deployer = Deployer(clean_kafka)
    left, throttled_ms, first = list(range(RELEASE.topics)), 0, None
    with deployer.connect() as connection:
        begun = time.monotonic()
        while left:
            # The broker reads the next request of this connection when the throttle of the answer before is over.
            left, throttle_ms = deployer.create(left, version=7, connection=connection)
            first = RELEASE.topics - len(left) if first is None else first
            throttled_ms += throttle_ms if left else 0
        passed = time.monotonic() - begun
    assert first == deployer.predicted.at_once
    # Tokens also come while requests are on their way: a slow machine waits for less of the time, and takes longer.
    assert throttled_ms / 1000 <= deployer.predicted.seconds * 1.1
    assert passed >= deployer.predicted.seconds * 0.9


def test_an_older_client_is_refused_nothing_and_waits_as_long(clean_kafka: Sandbox) -> None:
    deployer = Deployer(clean_kafka)
    with deployer.connect() as connection:
        refused, throttle_ms = deployer.create(list(range(RELEASE.topics)), version=5, connection=connection)
    # The connection is not read until then: that long waits what else is asked on it.
    assert (refused, throttle_ms / 1000) == ([], pytest.approx(created_after(RELEASE.topics, RELEASE, LIMIT, 11.0), rel=0.1))
