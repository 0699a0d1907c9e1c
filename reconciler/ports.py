"""The interfaces between layers: what planning, applying and the workflows need of the outside world."""

from __future__ import annotations

import datetime
import enum
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from reconciler.errors import BackendError
from reconciler.model import Alteration, AlterationResult, Change, ClusterIdentity, CurrentState, Entity, LeaderSpread, Quotas

if TYPE_CHECKING:
    from reconciler.model import WatchedStep


class FilterKind(enum.IntEnum):
    """Kafka's match types for describe filters (KIP-546). ``SPECIFIED`` includes the default entity."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterComponent:
    """What a describe filter asks of one type. ``name`` only for ``EXACT``."""

    entity_type: str
    kind: FilterKind
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFilter:
    """A describe filter. No components: everything when not strict, nothing when strict, as the broker answers."""

    components: tuple[FilterComponent, ...] = ()
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """One broker as the cluster's metadata names it."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationThrottles:
    """The settings that limit replication, and the reassignments that run."""

    rates: Mapping[int | None, Mapping[str, str]]
    """By broker, the ``...throttled.rate`` settings in bytes per second; ``None`` is the setting for all brokers."""
    replicas: Mapping[str, Mapping[str, str]]
    """By topic, the ``...throttled.replicas`` settings: ``*``, or pairs of partition and broker."""
    moving: Mapping[str, frozenset[int]]
    """By topic with a running reassignment, the brokers that take part."""
    changed: Mapping[int | str | None, datetime.datetime] = field(default_factory=dict)
    """By broker (as in ``rates``) or topic, the last change of its settings. Brokers do not report it, ZooKeeper does."""


class QuotaReader(Protocol):
    """Reads quotas. Every method raises ``BackendError`` or one of its children."""

    def current_state(self) -> CurrentState:
        """Read all quotas of the cluster, with its identity."""
        ...


@runtime_checkable
class QuotaCluster(QuotaReader, Protocol):
    """A live cluster whose quotas can be read and written."""

    def identity(self) -> ClusterIdentity:
        """Return the identity of the cluster."""
        ...

    def brokers(self) -> Sequence[BrokerNode]:
        """The brokers that are up now, sorted by id."""
        ...

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        """Read the quotas that one broker (any, when ``None``) has for the entities that match."""
        ...

    def alter(self, alterations: Sequence[Alteration], *, validate_only: bool) -> Sequence[AlterationResult]:
        """One request. Results are in the order of ``alterations``, whatever order the cluster answered in.

        Raises ``OutcomeUnknownError`` when it cannot be known whether the request was done.
        """
        ...

    def close(self) -> None:
        """Give back connections. Safe to call twice."""
        ...


@runtime_checkable
class EveryBroker(Protocol):
    """A cluster that can ask many brokers at once. Ask with ``isinstance``."""

    def describe_on(
        self, entity_filter: EntityFilter, brokers: Sequence[int]
    ) -> Mapping[int, Mapping[Entity, Quotas] | BackendError]:
        """The matching quotas on each of these brokers, or why a broker did not answer. Takes as long as the slowest."""
        ...


@runtime_checkable
class FilteringReader(Protocol):
    """A reader whose cluster can filter for itself, so that less is sent. Ask with ``isinstance``."""

    def current_matching(self, entity_filter: EntityFilter) -> CurrentState:
        """Read the quotas of the entities that match, with the identity of the cluster.

        Raises ``RequestRefusedError`` or ``UnsupportedClusterError`` for a filter that the cluster does not take.
        """
        ...


@runtime_checkable
class CallbackInspector(Protocol):
    """What a cluster may be able to report about how its quotas take effect. Ask with ``isinstance``."""

    def quota_callback(self) -> str | None:
        """The class that a broker uses in place of Kafka's own resolution. ``None`` when it uses Kafka's.

        Raises ``BackendError`` when the broker does not answer this.
        """
        ...


@runtime_checkable
class LeftoverInspector(Protocol):
    """What a cluster may be able to report about work that has ended. Ask with ``isinstance``."""

    def replication_throttles(self) -> ReplicationThrottles:
        """The throttles of replication that stand, and the reassignments that run. Raises ``BackendError``."""
        ...

    def scram_users(self) -> frozenset[str]:
        """The users with SCRAM credentials. Raises ``BackendError``, for want of the right to see them, too."""
        ...

    def nodes_without_quotas(self) -> Mapping[str, int | None]:
        """The nodes in ZooKeeper of entities without any setting, by path with their versions, in the order to remove them.

        A folder has no version. Raises ``BackendError``.
        """
        ...


@runtime_checkable
class LeaderInspector(Protocol):
    """A reader that can report which brokers lead partitions. Ask with ``isinstance``."""

    def leader_spread(self) -> LeaderSpread | None:
        """Read how many partitions each broker leads now. ``None`` when no broker can report it. Raises ``BackendError``."""
        ...


@runtime_checkable
class ModeInspector(Protocol):
    """What a cluster may be able to report about where its quotas are kept. Ask with ``isinstance``."""

    def keeps_quotas_in_zookeeper(self) -> bool:
        """True when brokers write quotas to ZooKeeper themselves. Validating there checks less than writing."""
        ...


@runtime_checkable
class ExclusiveRuns(Protocol):
    """A cluster that keeps two runs of this tool apart. Ask with ``isinstance``."""

    def exclusive(self, holder: str) -> AbstractContextManager[None]:
        """Keep the cluster's lock inside. ``holder`` states who and since when, for a run that finds the lock taken.

        Entering raises ``LockedError`` when another run has it, ``BackendError`` when that is unknown. The lock of a run that
        dies is released.
        """
        ...


class Clock(Protocol):
    """Time, so that tests can own it."""

    def now(self) -> datetime.datetime:
        """Return the present moment, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class StepWatcher(Protocol):
    """Looks at the clients of a run that changes limits in steps: at exactly the quota groups whose limits it changes."""

    @property
    def source(self) -> str:
        """The source of the figures, for a person."""
        ...

    def begin(self, changes: Sequence[Change]) -> None:
        """Look at the groups of all changes once, before the first step is written.

        Raises ``TrafficError`` for a source that cannot show them, ``UsageError`` for another thing than a source or for limits
        that cannot be known, and ``BackendError``.
        """
        ...

    def watch(self, changes: Sequence[Change], *, step: int, since: datetime.datetime, seconds: float) -> WatchedStep:
        """Look until the source shows ``seconds`` from now on, or until a group is throttled more than is accepted.

        ``changes``: of this step, which was written after ``since`` (UTC) and is verified. Raises ``TrafficError`` when the
        source is lost.
        """
        ...


class Progress(Protocol):
    """Where a long run reports how far it is, also from threads. Never part of a result."""

    def step(self, message: str) -> None:
        """Begin a step. ``message``: what the program does in it; empty where it waits for something else."""
        ...

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        """Report how much of the step is done, as often as is convenient. ``unit``: the counted things, or bytes."""
        ...


class NoProgress:
    """A ``Progress`` without a reader."""

    def step(self, message: str) -> None:
        """Ignore the report."""

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        """Ignore the report."""


NO_PROGRESS: Final = NoProgress()


class SystemClock:
    """Wall clock in UTC, monotonic seconds, and real waiting."""

    def now(self) -> datetime.datetime:
        """Return the present moment, in UTC."""
        return datetime.datetime.now(datetime.UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
