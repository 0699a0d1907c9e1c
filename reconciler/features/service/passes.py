"""One pass: read the manifests and the cluster, and write when writing is on and no check refuses.

The outcome of a pass is words and counts, never entities, so that keeping one costs nothing.
"""

from __future__ import annotations

import datetime
import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from reconciler.apply import ApplySettings
from reconciler.errors import (
    BackendError,
    ManifestError,
    ReconcilerError,
    RefusedError,
    VanishedError,
    WrongClusterError,
)
from reconciler.features.service.replay import Replay
from reconciler.features.service.watch import Fingerprint, Manifests
from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeStatus,
    ClusterIdentity,
    ClusterTotal,
    CurrentState,
    Drift,
    DriftClass,
    EntityDrift,
    Plan,
    escaped,
)
from reconciler.ports import Clock, Progress, QuotaCluster
from reconciler.text import count_of, list_some
from reconciler.workflows import GivenBaseline, Intent, Observation, observe, write_observed

_MOST_NAMED: Final = 10
_LONGEST_MESSAGE: Final = 2_000
_MOST_FINDINGS: Final = 20


class PassResult(enum.StrEnum):
    """The word for a whole pass.

    ``DIFFERS``: the cluster differs, and the service does not write it: it only looks, or a person has to decide.
    ``CHANGING``: the manifests changed while they were read. ``INVALID``, ``VANISHED``: nothing is written. ``CLUSTER``: it does
    not answer, or not to this. ``FAILED``: nothing was written; ``PARTIAL``: something may be.
    """

    IN_SYNC = "in_sync"
    DIFFERS = "differs"
    APPLIED = "applied"
    REFUSED = "refused"
    FAILED = "failed"
    PARTIAL = "partial"
    CLUSTER = "cluster"
    INVALID = "invalid"
    VANISHED = "vanished"
    CHANGING = "changing"

    @property
    def is_success(self) -> bool:
        """True when manifests and cluster were read and every change that the service may make was made."""
        return self in (PassResult.IN_SYNC, PassResult.DIFFERS, PassResult.APPLIED)

    @property
    def manifests_are_good(self) -> bool:
        """True when the manifests were read and have no error."""
        return self not in (PassResult.INVALID, PassResult.VANISHED, PassResult.CHANGING)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityCounts:
    """What manifests and cluster showed, in numbers of entities. ``tripped``: ids of guards that are not accepted."""

    drift: Mapping[DriftClass, int]
    planned: Mapping[Action, int]
    tripped: tuple[str, ...] = ()
    held_back: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOutcome:
    """One pass. ``counts`` is absent when it did not get as far as the cluster.

    ``reason`` is the ``failure_reason`` of the error tree; ``message`` and ``details`` (one finding each, the first of many) are
    for people, escaped. ``written`` counts entities by action and status. ``again``: the very same values were written as in the
    write before, so another writer undoes them.
    """

    result: PassResult
    reason: str | None = None
    message: str = ""
    details: tuple[str, ...] = ()
    counts: EntityCounts | None = None
    written: Mapping[tuple[Action, ChangeStatus], int] = field(default_factory=dict)
    again: bool = False
    seconds: float = 0.0

    def written_by_status(self) -> dict[str, int]:
        """Count the entities that ended in each status, without statuses that none ended in."""
        counts = {
            status.value: sum(count for (_, written), count in self.written.items() if written is status)
            for status in ChangeStatus
        }
        return {status: count for status, count in counts.items() if count}

    next_expiry: datetime.datetime | None = None
    """When a value of the manifests expires next, as far as it is known."""


_RESULTS: Final = {
    ApplyResult.DONE: PassResult.APPLIED,
    ApplyResult.NOTHING_TO_DO: PassResult.IN_SYNC,
    ApplyResult.REFUSED: PassResult.REFUSED,
    ApplyResult.PARTIAL: PassResult.PARTIAL,
    ApplyResult.FAILED: PassResult.FAILED,
}


class WriteRecorder(Protocol):
    """What a write leaves behind for people and auditors."""

    def begin(self, intent: Intent, plan: Plan) -> None:
        """Record that a write begins. Raises ``FileAccessError``, and then nothing is written."""
        ...

    def ended(self, report: ApplyReport) -> None:
        """Record how the write ended. Raises ``FileAccessError``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is outside of the service. ``connect`` raises ``ReconcilerError``; ``given`` reads the baseline, if there is any."""

    connect: Callable[[Intent], QuotaCluster]
    given: Callable[[Intent], GivenBaseline | None]
    recorder: WriteRecorder
    clock: Clock
    progress: Progress
    replay: Callable[[Intent, CurrentState], Replay | None] = lambda *_: None
    """What recorded traffic shows of a plan."""
    hold: Callable[[], None] = lambda: None
    """Called before a write: from then on, no interrupt is raised but where the executor allows it."""


class Passes:
    """Runs passes, one at a time. ``settings``: how to write, or ``None`` when nothing shall be written."""

    def __init__(self, manifests: Manifests, world: World, settings: ApplySettings | None) -> None:
        self._manifests = manifests
        self._world = world
        self._settings = settings
        self._answered: ClusterIdentity | None = None
        self._written = ""
        self._replayed: tuple[str, Replay | None] | None = None

    def run(self, files: Fingerprint) -> PassOutcome:
        """One pass over these files. Raises nothing that a later pass could do better."""
        started = self._world.clock.monotonic()
        outcome = self._run(files)
        seconds = self._world.clock.monotonic() - started
        return replace(outcome, message=_short(outcome.message), details=tuple(map(_short, outcome.details)), seconds=seconds)

    def _run(self, files: Fingerprint) -> PassOutcome:
        self._world.progress.step("reading the manifests")
        try:
            intent = self._manifests.load(files)
        except VanishedError as error:
            return _ended(PassResult.VANISHED, error)
        except ReconcilerError as error:
            return _ended(PassResult.INVALID, error)
        if self._manifests.fingerprint() != files:
            return PassOutcome(
                result=PassResult.CHANGING, reason="changing", message="the manifests changed while they were read"
            )
        return replace(_AtCluster(self, intent).run(), next_expiry=intent.desired.next_expiry())

    def require_known(self, intent: Intent, answers: ClusterIdentity) -> None:
        """Require the cluster that answered first, where no manifest names the id. Raises ``WrongClusterError``."""
        known = self._answered = self._answered or answers
        if intent.spec.cluster_id is None and known.id != answers.id:
            expected, actual = (escaped(identity.id or "unknown") for identity in (known, answers))
            msg = f"cluster {expected} answered before, and now {actual} does. Nothing was written. Start again if that is meant"
            raise WrongClusterError(msg, expected=expected, actual=actual)

    def written_again(self, digest: str) -> bool:
        """True when the write before did the very same: it found the same values and left the same."""
        again = digest == self._written
        self._written = digest
        return again

    def replayed(self, intent: Intent, observation: Observation) -> Replay | None:
        """Replay recorded traffic once for each plan, and again while it cannot be read. ``None`` without traffic."""
        digest, before = observation.plan.digest, self._replayed
        if before is None or before[0] != digest or (before[1] is not None and not before[1].was_read):
            self._world.progress.step("replaying recorded traffic")
            before = self._replayed = (digest, self._world.replay(intent, observation.current))
        return before[1]

    @property
    def world(self) -> World:
        """The connections, recorders and clock that the passes use."""
        return self._world

    @property
    def settings(self) -> ApplySettings | None:
        """The settings of a write, or ``None`` where nothing is written."""
        return self._settings


class _AtCluster:
    """The part of one pass that reaches the cluster; keeps the counts when something breaks after that."""

    def __init__(self, passes: Passes, intent: Intent) -> None:
        self._passes = passes
        self._world = passes.world
        self._intent = intent
        self._counts: EntityCounts | None = None

    def run(self) -> PassOutcome:
        try:
            outcome = self._run_connected()
        except BackendError as error:
            outcome = _ended(PassResult.CLUSTER, error)
        except RefusedError as error:
            outcome = _ended(PassResult.REFUSED, error)
        except ManifestError as error:
            outcome = _ended(PassResult.INVALID, error)
        except ReconcilerError as error:
            outcome = _ended(PassResult.FAILED, error)
        return replace(outcome, counts=self._counts)

    def _run_connected(self) -> PassOutcome:
        given = self._world.given(self._intent)
        self._world.progress.step("connecting to the cluster")
        cluster = self._world.connect(self._intent)
        try:
            return self._looked(cluster, given)
        finally:
            cluster.close()

    def _looked(self, cluster: QuotaCluster, given: GivenBaseline | None) -> PassOutcome:
        self._world.progress.step("reading the cluster's quotas")
        observation = observe(self._intent, cluster, given, clock=self._world.clock)
        self._passes.require_known(self._intent, observation.plan.cluster)
        self._counts = _counts(observation)
        plan, settings = observation.plan, self._passes.settings
        if not plan.changes:
            rest = f"{plan.summary.unchanged} unchanged, {plan.summary.unmanaged} unmanaged"
            if observation.drift.differs:
                return PassOutcome(
                    result=PassResult.DIFFERS, message=f"nothing to write, but {_drifted(observation.drift)} ({rest})"
                )
            return PassOutcome(result=PassResult.IN_SYNC, message=f"the cluster has what the manifests declare: {rest}")
        replay = self._passes.replayed(self._intent, observation)
        words = () if replay is None else (replay.words,)
        if settings is None:
            message = f"not written without --apply: {_list_changes(plan.changes)}"
            return PassOutcome(result=PassResult.DIFFERS, message=message, details=words)
        if replay is not None and replay.failed:
            message = f"nothing was written: {list_some(replay.failed, _MOST_NAMED)}"
            return PassOutcome(result=PassResult.REFUSED, reason="backtest", message=message, details=words)
        if replay is not None:
            observation = replace(observation, backtest=replay.report)
        outcome = self._write(cluster, given, observation, settings)
        return replace(outcome, details=(*words, *outcome.details))

    def _write(
        self, cluster: QuotaCluster, given: GivenBaseline | None, observation: Observation, settings: ApplySettings
    ) -> PassOutcome:
        self._world.hold()
        outcome = self._write_and_record(cluster, observation, settings)
        if outcome.result is PassResult.APPLIED:
            try:
                self._counts = _counts(observe(self._intent, cluster, given, clock=self._world.clock))
            except ReconcilerError:
                # It was verified a moment ago; what this look could not tell, the next pass will.
                return outcome
        return outcome

    def _write_and_record(self, cluster: QuotaCluster, observation: Observation, settings: ApplySettings) -> PassOutcome:
        world = self._world
        world.recorder.begin(self._intent, observation.plan)
        report = write_observed(self._intent, observation, cluster, settings, clock=world.clock, progress=world.progress)
        outcome = PassOutcome(
            result=_RESULTS[report.result],
            reason=report.failure_reason,
            message=report.message or f"applied and read back: {_list_changes(observation.plan.changes)}",
            written=Counter((outcome.change.action, outcome.status) for outcome in report.outcomes if _was_tried(outcome.status)),
            again=report.wrote and self._passes.written_again(report.digest),
        )
        try:
            world.recorder.ended(report)
        except ReconcilerError as error:
            message = f"{outcome.message}. The report of this could not be written: {error}"
            result = PassResult.PARTIAL if report.wrote else outcome.result
            return replace(outcome, result=result, reason=error.failure_reason, message=message)
        return outcome


def _was_tried(status: ChangeStatus) -> bool:
    return status is not ChangeStatus.NOT_ATTEMPTED


def _ended(result: PassResult, error: ReconcilerError) -> PassOutcome:
    return PassOutcome(result=result, reason=error.failure_reason, message=str(error), details=finding_lines(error))


def finding_lines(error: ReconcilerError) -> tuple[str, ...]:
    """A line for each finding of an error, of the first of many."""
    findings = error.findings[:_MOST_FINDINGS] if isinstance(error, ManifestError) else ()
    return tuple(
        f"{finding.span or 'the manifests'}: {finding.severity.value}: {finding.message} [{finding.id}]" for finding in findings
    )


def _short(text: str) -> str:
    text = escaped(text)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}... ({len(text)} characters)"


def _counts(observation: Observation) -> EntityCounts:
    summary = observation.plan.summary
    return EntityCounts(
        drift=dict(observation.drift.counts),
        planned={Action.CREATE: summary.create, Action.UPDATE: summary.update, Action.DELETE: summary.delete},
        tripped=tuple(guard.id for guard in observation.plan.tripped),
        held_back=observation.withheld_prunes,
    )


def _drifted(drift: Drift) -> str:
    """The entities that differ and that only a person can decide about, with their classes."""
    texts = [f"{entity.entity} ({_why(entity)})" for entity in drift.entities if entity.drift.is_difference]
    return f"{count_of(len(texts), 'entity differs', 'entities differ')}: {list_some(texts, _MOST_NAMED)}"


def _why(entity_drift: EntityDrift) -> str:
    """The class, and the numbers of brokers where only those changed: under ``rebalance: confirm`` a person decides."""
    for key in entity_drift.keys:
        if key.brokers_before is not None and isinstance(key.unit, ClusterTotal):
            most = "up to " if key.live == key.unit.per_broker else ""
            return (
                f"{entity_drift.drift.value}, its total was divided by {most}{key.brokers_before} brokers and now by "
                f"{key.unit.brokers}"
            )
    return entity_drift.drift.value


def _list_changes(changes: Iterable[Change]) -> str:
    texts = [f"{change.action.value} {change.entity}" for change in changes]
    return f"{count_of(len(texts), 'change')}: {list_some(texts, _MOST_NAMED)}"
