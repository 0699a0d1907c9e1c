"""A cluster in memory that keeps the broker's rules, and misbehaves on request."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.errors import AuthorizationError, OutcomeUnknownError, RequestRefusedError, UnsupportedClusterError
from reconciler.model.entity import DEFAULT, Entity, EntityType
from reconciler.model.plan import Alteration, AlterationResult
from reconciler.model.state import ClusterIdentity, CurrentState, Observed, ObservedFrom, Quotas, same_value
from reconciler.ports import BrokerNode, EntityFilter, FilterComponent, FilterKind
from reconciler.resolution.broker_rules import INVALID_REQUEST, needs_broker, refusal
from tests.builders import NOON

MOST_RECORDS = 10_000
IDENTITY = ClusterIdentity(name="prod", id="c1", kafka_version="4.3")
ONE_BROKER = (BrokerNode(id=1, host="127.0.0.1", port=9092),)


class FakeClock:
    """Time that passes only when somebody waits."""

    def __init__(self, *, at: datetime.datetime = NOON, moves: bool = False) -> None:
        """``at``: the time of day at the begin. ``moves``: also the time of day passes."""
        self.seconds = 0.0
        self._at, self._moves = at, moves

    def now(self) -> datetime.datetime:
        return self._at + datetime.timedelta(seconds=self.seconds if self._moves else 0.0)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Fault(enum.Enum):
    """When a write whose outcome stays unknown to the caller breaks off."""

    BEFORE_APPLYING = "before"
    AFTER_APPLYING = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong. All of it is deterministic.

    ``writes``: the n-th writing request (from 1) raises ``OutcomeUnknownError``. ``lag``: so many describes after a write still
    show the state before it. ``refuse``: entities refused with a code and a text. ``resolvable``: known host names.
    """

    writes: Mapping[int, Fault] = field(default_factory=dict)
    lag: int = 0
    refuse: Mapping[Entity, tuple[int, str | None]] = field(default_factory=dict)
    resolvable: frozenset[str] = frozenset({"localhost"})
    read_only: bool = False


class FakeCluster:
    """A ``QuotaCluster`` in memory. Counts its calls; ``write_from_outside`` is another writer.

    ``before_write`` and ``before_read`` are called at each writing request and each describe, and may raise. ``took_effect`` are
    the alterations that were really done.
    """

    def __init__(
        self,
        entities: Mapping[Entity, Mapping[str, float]] | None = None,
        *,
        faults: Faults = Faults(),
        identity: ClusterIdentity = IDENTITY,
        brokers: Sequence[BrokerNode] = ONE_BROKER,
        before_write: Callable[[FakeCluster], None] | None = None,
        before_read: Callable[[FakeCluster], None] | None = None,
    ) -> None:
        self.entities: dict[Entity, dict[str, float]] = {e: dict(q) for e, q in (entities or {}).items()}
        self.writes = self.validations = self.describes = self.closes = 0
        self.requests: list[tuple[Alteration, ...]] = []
        self.took_effect: list[Alteration] = []
        self._faults = faults
        self._identity = identity
        self._brokers = tuple(brokers)
        self._before_write = before_write
        self._before_read = before_read
        self._old: dict[Entity, dict[str, float]] = {}
        self._old_reads_left = 0

    def identity(self) -> ClusterIdentity:
        return self._identity

    def brokers(self) -> Sequence[BrokerNode]:
        return self._brokers

    def current_state(self) -> CurrentState:
        observed = Observed(at=NOON, origin=ObservedFrom.BROKER)
        ids = tuple(node.id for node in self._brokers)
        return CurrentState(cluster=self._identity, observed=observed, entities=self.describe(EntityFilter()), brokers=ids)

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        assert broker is None or broker in {node.id for node in self._brokers}
        self.describes += 1
        if self._before_read is not None:
            self._before_read(self)
        _check_filter(entity_filter.components)
        visible = self.entities
        if self._old_reads_left:
            self._old_reads_left -= 1
            visible = self._old
        return {e: dict(q) for e, q in visible.items() if _matches(entity_filter, e)}

    def alter(self, alterations: Sequence[Alteration], *, validate_only: bool) -> Sequence[AlterationResult]:
        _require_one_each(alterations)
        if validate_only:
            self.validations += 1
            return self._answer(alterations)
        assert not self._faults.read_only, "a write to a cluster that must not be written"
        self.writes += 1
        self.requests.append(tuple(alterations))
        if self._before_write is not None:
            self._before_write(self)
        fault = self._faults.writes.get(self.writes)
        if fault is Fault.BEFORE_APPLYING:
            raise OutcomeUnknownError("the answer to a write was lost: the server closed the connection")
        results = self._answer(alterations)
        self._apply(a for a, result in zip(alterations, results, strict=True) if result.error_code == 0)
        if fault is Fault.AFTER_APPLYING:
            raise OutcomeUnknownError("the answer to a write was lost: the server closed the connection")
        return results

    def close(self) -> None:
        self.closes += 1

    def write_from_outside(self, entity: Entity, quotas: Mapping[str, float]) -> None:
        """Another writer sets an entity to exactly these quotas; none removes it."""
        self.entities.pop(entity, None)
        if quotas:
            self.entities[entity] = dict(quotas)

    def _answer(self, alterations: Sequence[Alteration]) -> Sequence[AlterationResult]:
        refused = {a.entity: self._refusal(a) for a in alterations}
        good = [a for a in alterations if refused[a.entity] is None]
        if sum(self._records(a) for a in good) > MOST_RECORDS:
            raise RequestRefusedError("the cluster refused the request with error 44: policy", error_code=44)
        results = []
        for alteration in alterations:
            code, text = refused[alteration.entity] or (0, None)
            results.append(AlterationResult(entity=alteration.entity, error_code=code, error=text))
        return tuple(results)

    def _refusal(self, alteration: Alteration) -> tuple[int, str | None] | None:
        entity = alteration.entity
        if entity in self._faults.refuse:
            return self._faults.refuse[entity]
        if needs_broker(entity) and (name := entity.name(EntityType.IP)) not in self._faults.resolvable:
            return (INVALID_REQUEST, f"{name} is not a valid IP or resolvable host.")
        text = refusal(alteration)
        return None if text is None else (INVALID_REQUEST, text)

    def _records(self, alteration: Alteration) -> int:
        now = self.entities.get(alteration.entity, {})
        return sum(1 for key, value in alteration.ops.items() if not same_value(now.get(key), value))

    def _apply(self, alterations: Iterable[Alteration]) -> None:
        if self._faults.lag:
            self._old = {e: dict(q) for e, q in self.entities.items()}
            self._old_reads_left = self._faults.lag
        for alteration in alterations:
            self.took_effect.append(alteration)
            quotas = self.entities.pop(alteration.entity, {})
            quotas |= {k: v for k, v in alteration.ops.items() if v is not None}
            left = {k: v for k, v in quotas.items() if alteration.ops.get(k, v) is not None}
            if left:
                self.entities[alteration.entity] = left


def _require_one_each(alterations: Sequence[Alteration]) -> None:
    if not all(a.ops for a in alterations):
        raise ValueError("an alteration has no ops")
    if len({a.entity for a in alterations}) != len(alterations):
        raise ValueError("an entity is altered twice in one request")


def _check_filter(components: Sequence[FilterComponent]) -> None:
    types = [c.entity_type for c in components]
    if any(t not in {known.value for known in EntityType} for t in types if t):
        raise UnsupportedClusterError("the cluster refused the request with error 35: unsupported entity type")
    mixed = EntityType.IP.value in types and len(types) > 1
    wrong_name = any((c.name is not None) != (c.kind is FilterKind.EXACT) for c in components)
    if "" in types or len(set(types)) != len(types) or mixed or wrong_name:
        raise RequestRefusedError("the cluster refused the request with error 42", error_code=INVALID_REQUEST)


def _matches(entity_filter: EntityFilter, entity: Entity) -> bool:
    components = entity_filter.components
    if entity_filter.strict and (not components or len(entity.parts) != len(components)):
        return False
    return all(_component_matches(c, entity) for c in components)


def _component_matches(component: FilterComponent, entity: Entity) -> bool:
    name = entity.name(component.entity_type)
    match component.kind:
        case FilterKind.EXACT:
            return name == component.name and name is not None
        case FilterKind.DEFAULT:
            return name is DEFAULT
        case FilterKind.SPECIFIED:
            return name is not None


class WithCallback(FakeCluster):
    """Answers, or refuses, the question about the callback of the brokers, and counts how often it was asked."""

    def __init__(self, answer: str | AuthorizationError | None = None) -> None:
        super().__init__()
        self._callback = answer
        self.asked = 0

    def quota_callback(self) -> str | None:
        self.asked += 1
        if isinstance(self._callback, AuthorizationError):
            raise self._callback
        return self._callback
