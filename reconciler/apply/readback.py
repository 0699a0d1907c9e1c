"""Reading back: what the cluster has now, against what was planned. Reads lag writes on KRaft, so this polls with a deadline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model.change import Change
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.state import Quotas, same_value
from reconciler.ports import BrokerNode, Clock, EntityFilter, FilterComponent, FilterKind, QuotaCluster

_FIRST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every broker showed the planned values before the deadline; if not, ``message`` says what is missing where."""

    verified: bool
    message: str | None = None


def shows(change: Change, live: Mapping[Entity, Quotas]) -> bool:
    """True when the cluster has every key of the change as planned."""
    quotas = live.get(change.entity, {})
    return all(same_value(quotas.get(key.key), key.after) for key in change.keys)


def unlike_before(change: Change, live: Mapping[Entity, Quotas]) -> str | None:
    """What differs from the moment of planning, in words; ``None`` when the cluster still has every key as it was then."""
    quotas = live.get(change.entity, {})
    for key in change.keys:
        now = quotas.get(key.key)
        if not same_value(now, key.before):
            return f"{change.entity} {key.key} was {_words(key.before)} when planned and is {_words(now)} now"
    return None


def _words(value: float | None) -> str:
    return "not set" if value is None else f"{value:.17g}"


def verify(cluster: QuotaCluster, written: Sequence[Change], *, clock: Clock, deadline_seconds: float) -> Verification:
    """One full read until all changes show, then the entity written last on every broker: metadata applies in order.

    Raises ``BackendError`` when a broker cannot be read at all.
    """
    deadline = clock.monotonic() + deadline_seconds
    missing: Sequence[Change] = written
    for _ in _tries(clock, deadline):
        live = cluster.current_state().entities
        missing = [change for change in missing if not shows(change, live)]
        if not missing:
            break
    if missing:
        some = ", ".join(str(change.entity) for change in missing[:3])
        return Verification(
            verified=False, message=f"{len(missing)} of {len(written)} entities do not read back as written: {some}"
        )
    for broker in cluster.brokers():
        if not _caught_up(cluster, written[-1], broker, clock=clock, deadline=deadline):
            where = f"broker {broker.id} ({broker.host}:{broker.port})"
            return Verification(verified=False, message=f"{where} does not show the change to {written[-1].entity}")
    return Verification(verified=True)


def _caught_up(cluster: QuotaCluster, last: Change, broker: BrokerNode, *, clock: Clock, deadline: float) -> bool:
    wanted = _exactly(last.entity)
    return any(shows(last, cluster.describe(wanted, broker=broker.id)) for _ in _tries(clock, deadline))


def _exactly(entity: Entity) -> EntityFilter:
    components = tuple(
        FilterComponent(entity_type=t, kind=FilterKind.DEFAULT)
        if n is DEFAULT
        else FilterComponent(entity_type=t, kind=FilterKind.EXACT, name=n)
        for t, n in entity.parts
    )
    return EntityFilter(components=components, strict=True)


def _tries(clock: Clock, deadline: float) -> Iterator[None]:
    """Once at once, then with growing waits until the deadline has passed."""
    wait = _FIRST_WAIT
    yield None
    while clock.monotonic() < deadline:
        clock.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)
        yield None
