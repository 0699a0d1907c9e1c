"""Reading back: the cluster's quotas now, against what was planned and written.

Reads lag writes on KRaft, so this polls with a deadline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import BackendError, UnreachableError
from reconciler.model import DEFAULT, Change, Entity, Quotas, same_value
from reconciler.ports import BrokerNode, Clock, EntityFilter, EveryBroker, FilterComponent, FilterKind, QuotaCluster
from reconciler.text import list_some, number_text

_NAMED: Final = 5

_FIRST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 1.0


def is_written(change: Change, live: Mapping[Entity, Quotas]) -> bool:
    """True when the cluster has every key of the change as planned."""
    quotas = live.get(change.entity, {})
    return all(same_value(quotas.get(key.key), key.after) for key in change.keys)


def is_unchanged(change: Change, live: Mapping[Entity, Quotas]) -> bool:
    """True when the cluster has every key of the change as it was when planned."""
    quotas = live.get(change.entity, {})
    return all(same_value(quotas.get(key.key), key.before) for key in change.keys)


def difference_from_before(change: Change, live: Mapping[Entity, Quotas]) -> str | None:
    """What differs from the moment of planning; ``None`` when the cluster still has every key as it was then."""
    quotas = live.get(change.entity, {})
    for key in change.keys:
        now = quotas.get(key.key)
        if not same_value(now, key.before):
            return f"{change.entity} {key.key} was {_value_text(key.before)} when planned and is {_value_text(now)} now"
    return None


def difference_from_written(change: Change, live: Mapping[Entity, Quotas]) -> str | None:
    """What differs from what was written; ``None`` when the cluster has every key as written."""
    quotas = live.get(change.entity, {})
    for key in change.keys:
        now = quotas.get(key.key)
        if not same_value(now, key.after):
            before, after = _value_text(key.before), _value_text(key.after)
            return f"{change.entity} {key.key} was {before} when planned, was written as {after}, and is {_value_text(now)} now"
    return None


def first_few(texts: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    return list_some(texts, _NAMED, between="; ")


def _value_text(value: float | None) -> str:
    return "not set" if value is None else number_text(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every broker showed the planned values before the deadline; if not, ``message`` says what is missing where."""

    verified: bool
    message: str | None = None
    brokers: int = 0
    """How many were asked and show it."""


def verify(
    cluster: QuotaCluster, written: Sequence[Change], *, clock: Clock, deadline_seconds: float, most_seconds: float | None = None
) -> Verification:
    """Wait for the entity written last, read everything once, then ask every broker for it: metadata applies in order.

    ``deadline_seconds``: how long to wait without anything new showing; ``most_seconds``: how long at most. Brokers that leave
    the cluster's metadata meanwhile are not waited for: a broker that is down reads everything when it starts. Raises
    ``BackendError`` when the cluster cannot be read at all.
    """
    end = clock.monotonic() + (deadline_seconds if most_seconds is None else most_seconds)
    if (message := _not_read_back(cluster, written, clock=clock, seconds=deadline_seconds, end=end)) is not None:
        return Verification(verified=False, message=message)
    behind, current = _lagging_brokers(cluster, written[-1], clock=clock, deadline=min(end, clock.monotonic() + deadline_seconds))
    return Verification(verified=not behind, message=first_few(behind) or None, brokers=current)


def await_visible(cluster: QuotaCluster, last: Change, *, clock: Clock, deadline: float) -> bool:
    """Whether a read has what was written last, waiting for it; also when another writer changed it since.

    Raises ``UnreachableError`` when no broker answers until the deadline.
    """
    gone: UnreachableError | None = None
    for _ in poll(clock, deadline):
        try:
            live = cluster.describe(exact_filter(last.entity))
        except UnreachableError as error:
            gone = error
            continue
        gone = None
        if is_written(last, live) or not is_unchanged(last, live):
            return True
    if gone is not None:
        raise gone
    return False


def exact_filter(entity: Entity) -> EntityFilter:
    """The filter that finds one entity and nothing else."""
    components = tuple(
        FilterComponent(entity_type=t, kind=FilterKind.DEFAULT)
        if n is DEFAULT
        else FilterComponent(entity_type=t, kind=FilterKind.EXACT, name=n)
        for t, n in entity.parts
    )
    return EntityFilter(components=components, strict=True)


def poll(clock: Clock, deadline: float) -> Iterator[None]:
    """Once at once, then with growing waits until the deadline has passed."""
    wait = _FIRST_WAIT
    yield None
    while (left := deadline - clock.monotonic()) > 0:
        clock.sleep(min(wait, left))
        wait = min(2 * wait, _LONGEST_WAIT)
        yield None


def _not_read_back(cluster: QuotaCluster, written: Sequence[Change], *, clock: Clock, seconds: float, end: float) -> str | None:
    missing: Sequence[Change] = written
    while True:
        before = len(missing)
        deadline = min(end, clock.monotonic() + seconds)
        # Asking for one entity is cheap; everything is read when there is something to see.
        caught_up = await_visible(cluster, written[-1], clock=clock, deadline=deadline)
        for _ in poll(clock, deadline if caught_up else clock.monotonic()):
            live = cluster.current_state().entities
            missing = [change for change in missing if not is_written(change, live)]
            if not missing:
                return None
            if any(not is_unchanged(change, live) for change in missing):
                # Neither as before nor as written: another writer's; waiting does not bring ours back.
                return _unverified(missing, live, len(written))
        if len(missing) == before or clock.monotonic() >= end:
            return _unverified(missing, live, len(written))


def _unverified(missing: Sequence[Change], live: Mapping[Entity, Quotas], written: int) -> str:
    texts = [text for change in missing if (text := difference_from_written(change, live)) is not None]
    return f"{len(texts)} of {written} entities do not read back as written: {first_few(texts)}"


def _lagging_brokers(cluster: QuotaCluster, last: Change, *, clock: Clock, deadline: float) -> tuple[list[str], int]:
    """The brokers that do not show the last change at the deadline, each with the reason, and how many show it."""
    current = 0
    waiting = {broker.id: broker for broker in cluster.brokers()}
    hopeless: dict[int, str] = {}
    reasons: dict[int, str] = {}
    for _ in poll(clock, deadline):
        for number, answer in _ask_each(cluster, exact_filter(last.entity), tuple(waiting)).items():
            if isinstance(answer, BackendError):
                reasons[number] = f"{_broker_text(waiting[number])} does not answer: {answer}"
                if not isinstance(answer, UnreachableError):
                    hopeless[number] = reasons[number]
            elif is_written(last, answer):
                current += 1
                del waiting[number]
            else:
                reasons[number] = f"{_broker_text(waiting[number])} does not show the change to {last.entity}"
        if waiting:
            present = {broker.id for broker in cluster.brokers()}
            waiting = {number: broker for number, broker in waiting.items() if number in present}
        if not waiting.keys() - hopeless.keys():
            break
    return [reasons[number] for number in sorted(waiting)], current


def _ask_each(
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


def _broker_text(broker: BrokerNode) -> str:
    return f"broker {broker.id} ({broker.host}:{broker.port})"
