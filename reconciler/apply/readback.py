"""Reading back: what the cluster has now, against what was written. Reads lag writes on KRaft, so this polls with a deadline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.apply.comparison import is_as_before, named, shows, unlike_after
from reconciler.errors import BackendError, UnreachableError
from reconciler.model.change import Change
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.state import Quotas
from reconciler.ports import BrokerNode, Clock, EntityFilter, EveryBroker, FilterComponent, FilterKind, QuotaCluster

_FIRST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every broker showed the planned values before the deadline; if not, ``message`` says what is missing where."""

    verified: bool
    message: str | None = None


def verify(cluster: QuotaCluster, written: Sequence[Change], *, clock: Clock, deadline_seconds: float) -> Verification:
    """One full read that shows all changes, then the entity written last on every broker: metadata applies in order.

    The read waits until the entity written last shows: asking for one costs next to nothing, and all before it show then too.
    Brokers that leave the cluster's metadata meanwhile are not waited for: a broker that is down reads everything when it starts.
    Raises ``BackendError`` when the cluster cannot be read at all.
    """
    deadline = clock.monotonic() + deadline_seconds
    shown_or_changed(cluster, written[-1], clock=clock, deadline=deadline)
    if (message := _not_read_back(cluster, written, clock=clock, deadline=deadline)) is not None:
        return Verification(verified=False, message=message)
    behind = _behind(cluster, written[-1], clock=clock, deadline=deadline)
    return Verification(verified=not behind, message=named(behind) or None)


def shown_or_changed(cluster: QuotaCluster, last: Change, *, clock: Clock, deadline: float) -> bool:
    """Wait until a read has what was written last; true also when somebody else has been there since, false at the deadline."""
    for _ in tries(clock, deadline):
        live = cluster.describe(exactly(last.entity))
        if shows(last, live) or not is_as_before(last, live):
            return True
    return False


def exactly(entity: Entity) -> EntityFilter:
    """The filter that finds one entity and nothing else."""
    components = tuple(
        FilterComponent(entity_type=t, kind=FilterKind.DEFAULT)
        if n is DEFAULT
        else FilterComponent(entity_type=t, kind=FilterKind.EXACT, name=n)
        for t, n in entity.parts
    )
    return EntityFilter(components=components, strict=True)


def tries(clock: Clock, deadline: float) -> Iterator[None]:
    """Once at once, then with growing waits until the deadline has passed."""
    wait = _FIRST_WAIT
    yield None
    while (left := deadline - clock.monotonic()) > 0:
        clock.sleep(min(wait, left))
        wait = min(2 * wait, _LONGEST_WAIT)
        yield None


def _not_read_back(cluster: QuotaCluster, written: Sequence[Change], *, clock: Clock, deadline: float) -> str | None:
    missing: Sequence[Change] = written
    live: Mapping[Entity, Quotas] = {}
    for _ in tries(clock, deadline):
        live = cluster.current_state().entities
        missing = [change for change in missing if not shows(change, live)]
        # What is neither as before nor as written is somebody else's; waiting does not bring ours back.
        if not missing or any(not is_as_before(change, live) for change in missing):
            break
    texts = [text for change in missing if (text := unlike_after(change, live)) is not None]
    return f"{len(texts)} of {len(written)} entities do not read back as written: {named(texts)}" if texts else None


def _behind(cluster: QuotaCluster, last: Change, *, clock: Clock, deadline: float) -> list[str]:
    """The brokers that do not show the last change at the deadline, each with the reason."""
    waiting = {broker.id: broker for broker in cluster.brokers()}
    hopeless: dict[int, str] = {}
    reasons: dict[int, str] = {}
    for _ in tries(clock, deadline):
        for number, answer in _asked(cluster, exactly(last.entity), tuple(waiting)).items():
            if isinstance(answer, BackendError):
                reasons[number] = f"{_named(waiting[number])} does not tell: {answer}"
                if not isinstance(answer, UnreachableError):
                    hopeless[number] = reasons[number]
            elif shows(last, answer):
                del waiting[number]
            else:
                reasons[number] = f"{_named(waiting[number])} does not show the change to {last.entity}"
        if waiting:
            present = {broker.id for broker in cluster.brokers()}
            waiting = {number: broker for number, broker in waiting.items() if number in present}
        if not waiting.keys() - hopeless.keys():
            break
    return [reasons[number] for number in sorted(waiting)]


def _asked(
    cluster: QuotaCluster, wanted: EntityFilter, brokers: Sequence[int]
) -> Mapping[int, Mapping[Entity, Quotas] | BackendError]:
    if isinstance(cluster, EveryBroker):
        return cluster.describe_on(wanted, brokers)
    answers: dict[int, Mapping[Entity, Quotas] | BackendError] = {}
    for broker in brokers:
        try:
            answers[broker] = cluster.describe(wanted, broker=broker)
        except BackendError as error:
            answers[broker] = error
    return answers


def _named(broker: BrokerNode) -> str:
    return f"broker {broker.id} ({broker.host}:{broker.port})"
