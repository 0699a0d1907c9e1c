"""Reading back from every broker: those that lag or do not answer are named, those that have left are not waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.apply.writing import Verification, verify
from reconciler.errors import AuthorizationError, BackendError, UnreachableError
from reconciler.model.entity import Entity
from reconciler.model.plan import Action, Change, KeyChange, Reason
from reconciler.model.state import Quotas
from reconciler.ports import BrokerNode, EntityFilter
from tests.builders import user
from tests.fakes import FakeClock, FakeCluster

RATE = "producer_byte_rate"
THIRTY = [BrokerNode(id=n, host=f"b{n}", port=9092) for n in range(1, 31)]
WRITTEN = [
    Change(
        entity=user(f"u{n}"),
        action=Action.CREATE,
        keys=(KeyChange(key=RATE, before=None, after=2.0, reason=Reason.NOT_IN_CURRENT),),
    )
    for n in range(100)
]


class Thirty(FakeCluster):
    """Thirty brokers that are asked one after the other; some of them misbehave for so many seconds of the clock."""

    def __init__(self, clock: FakeClock, **trouble: BackendError | None) -> None:
        super().__init__({change.entity: {RATE: 2.0} for change in WRITTEN}, brokers=THIRTY)
        self.clock = clock
        self.trouble = {int(name[1:]): error for name, error in trouble.items()}
        self.until = float("inf")
        self.gone_at = float("inf")
        self.asked: list[int | None] = []

    def brokers(self) -> Sequence[BrokerNode]:
        gone = self.trouble if self.clock.seconds >= self.gone_at else {}
        return [broker for broker in THIRTY if broker.id not in gone]

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        self.asked.append(broker)
        if broker in self.trouble and self.clock.seconds < self.until:
            error = self.trouble[broker]
            if error is not None:
                raise error
            return {}
        return super().describe(entity_filter, broker=broker)


def look(cluster: Thirty, seconds: float = 30.0) -> Verification:
    return verify(cluster, WRITTEN, clock=cluster.clock, deadline_seconds=seconds)


def test_thirty_brokers_cost_one_full_read_one_exact_one_and_one_more_each() -> None:
    cluster = Thirty(FakeClock())
    assert look(cluster).verified
    # First the one that is connected to is asked for the entity written last, then for everything.
    assert cluster.asked == [None, None, *range(1, 31)]


class Late(Thirty):
    """What any broker shows first is of before the writing; notes when it was asked for everything."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.full_reads: list[float] = []

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        if not entity_filter.components:
            self.full_reads.append(self.clock.seconds)
        shown = super().describe(entity_filter, broker=broker)
        return shown if self.clock.seconds >= 5.0 else {}


def test_everything_is_read_once_and_only_when_what_was_written_last_shows() -> None:
    cluster = Late(FakeClock())
    assert look(cluster).verified
    assert len(cluster.full_reads) == 1
    assert 5.0 <= cluster.full_reads[0] < 7.0


def test_every_broker_that_lags_is_named_and_no_other() -> None:
    seen = look(Thirty(FakeClock(), b7=None, b21=None))
    assert not seen.verified
    message = seen.message or ""
    assert "broker 7 (b7:9092) does not show the change to user=u99" in message
    assert "broker 21 (b21:9092)" in message
    assert message.count("broker ") == 2


def test_a_broker_that_catches_up_is_waited_for() -> None:
    cluster = Thirty(FakeClock(), b7=None)
    cluster.until = 5.0
    assert look(cluster).verified
    assert 5.0 <= cluster.clock.seconds < 7.0


def test_a_broker_that_is_listed_and_cannot_be_reached_is_named_with_the_reason() -> None:
    seen = look(Thirty(FakeClock(), b7=UnreachableError("b7:9092 cannot be reached: connection refused")))
    assert not seen.verified
    assert "broker 7 (b7:9092) does not answer: b7:9092 cannot be reached: connection refused" in (seen.message or "")


def test_a_broker_that_leaves_the_cluster_meanwhile_is_not_waited_for() -> None:
    cluster = Thirty(FakeClock(), b7=UnreachableError("gone"))
    cluster.gone_at = 9.0
    assert look(cluster).verified
    assert cluster.clock.seconds < 11.0


def test_a_refusal_is_not_waited_for() -> None:
    cluster = Thirty(FakeClock(), b7=AuthorizationError("no"))
    assert not look(cluster).verified
    assert cluster.clock.seconds == 0


class Slow(Thirty):
    """Shows one entity more every second, as a broker that is behind does."""

    full = 0

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        self.full += not entity_filter.components
        there = {change.entity for change in WRITTEN[: int(self.clock.seconds)]}
        return {e: q for e, q in super().describe(entity_filter, broker=broker).items() if e in there}


def test_a_broker_that_is_far_behind_is_waited_for_as_long_as_something_new_shows() -> None:
    cluster = Slow(FakeClock())
    seen = verify(cluster, WRITTEN, clock=cluster.clock, deadline_seconds=30.0, most_seconds=900.0)
    assert seen.verified
    assert 100 <= cluster.clock.seconds < 105
    assert cluster.full == 4, "it was asked for everything more often than needed"


def test_but_never_longer_than_the_run_may_take() -> None:
    cluster = Slow(FakeClock())
    seen = verify(cluster, WRITTEN, clock=cluster.clock, deadline_seconds=30.0, most_seconds=40.0)
    assert (seen.verified, cluster.clock.seconds) == (False, 40.0)
    assert "60 of 100 entities do not read back as written" in (seen.message or "")
