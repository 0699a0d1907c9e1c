"""One pass over one cluster: compare it with the manifests, and write when writing is on and no check refuses.

The outcome of a pass is words and counts, never entities, so that keeping one costs nothing.
"""

from __future__ import annotations

import contextlib
import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.apply import ApplySettings
from reconciler.cli.traffic_options import configured_backtest
from reconciler.documents import headline
from reconciler.errors import BackendError, ManifestError, ReconcilerError, RefusedError, VanishedError, WrongClusterError
from reconciler.features.service.audit_sink import AuditSink
from reconciler.features.service.observation import Observation, observe, write_observed
from reconciler.model import (
    Action,
    ApplyResult,
    BacktestReport,
    Change,
    ChangeStatus,
    ClusterIdentity,
    ClusterTotal,
    CurrentState,
    Drift,
    DriftClass,
    EntityDrift,
    escaped,
)
from reconciler.ports import Clock, Progress, QuotaCluster
from reconciler.render import rule_sentences
from reconciler.text import count_of, list_some
from reconciler.workflows import GivenBaseline, Intent, proposal_of, run_backtest

_MOST_NAMED: Final = 10
_LONGEST_MESSAGE: Final = 2_000
_MOST_FINDINGS: Final = 20


class PassResult(enum.StrEnum):
    """The word for a whole pass.

    ``DIFFERS``: the cluster differs, and the service does not write it: it only looks, or a person has to decide.
    ``INVALID``, ``VANISHED``: the manifests cannot be used, and nothing is written. ``CLUSTER``: it does
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

    @property
    def is_success(self) -> bool:
        """True when manifests and cluster were read and every change that the service may make was made."""
        return self in (PassResult.IN_SYNC, PassResult.DIFFERS, PassResult.APPLIED)

    @property
    def manifests_are_good(self) -> bool:
        """True when the manifests were read and have no error."""
        return self not in (PassResult.INVALID, PassResult.VANISHED)


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


_RESULTS: Final = {
    ApplyResult.DONE: PassResult.APPLIED,
    ApplyResult.NOTHING_TO_DO: PassResult.IN_SYNC,
    ApplyResult.REFUSED: PassResult.REFUSED,
    ApplyResult.PARTIAL: PassResult.PARTIAL,
    ApplyResult.FAILED: PassResult.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is outside of a pass. ``connect`` raises ``ReconcilerError``; ``given`` reads the baseline, if there is any."""

    connect: Callable[[Intent], QuotaCluster]
    given: Callable[[Intent], GivenBaseline | None]
    recorder: AuditSink
    clock: Clock
    progress: Progress
    hold: Callable[[], None] = lambda: None
    """Called before a write: from then on, no interrupt ends the process before the write is recorded."""


class Passes:
    """The passes over one cluster, one at a time. ``settings``: how to write, or ``None`` when nothing shall be written."""

    def __init__(self, world: World, settings: ApplySettings | None) -> None:
        self._world = world
        self._settings = settings
        self._answered: ClusterIdentity | None = None
        self._written = ""
        self._replayed: tuple[str, Replay | None] | None = None
        self._counts: EntityCounts | None = None
        """What this pass saw, kept when something breaks after that."""

    def run(self, intent: Intent) -> PassOutcome:
        """Run one pass. Raises nothing that a later pass could do better."""
        started = self._world.clock.monotonic()
        self._counts = None
        try:
            outcome = self._connected(intent)
        except ReconcilerError as error:
            outcome = ended_by(error)
        seconds = self._world.clock.monotonic() - started
        return replace(shortened(outcome), counts=self._counts, seconds=seconds)

    def _connected(self, intent: Intent) -> PassOutcome:
        given = self._world.given(intent)
        self._world.progress.step("connecting to the cluster")
        with contextlib.closing(self._world.connect(intent)) as cluster:
            return self._compared(intent, cluster, given)

    def _compared(self, intent: Intent, cluster: QuotaCluster, given: GivenBaseline | None) -> PassOutcome:
        self._world.progress.step("reading the cluster's quotas")
        observation = observe(intent, cluster, given, clock=self._world.clock)
        plan = observation.plan
        self._require_known(intent, plan.cluster)
        self._counts = _counts(observation)
        if not plan.changes:
            return _nothing_to_write(observation)
        replay = self._replay(intent, observation)
        words = () if replay is None else (replay.words,)
        if self._settings is None:
            message = f"not written without --apply: {_list_changes(plan.changes)}"
            return PassOutcome(result=PassResult.DIFFERS, message=message, details=words)
        if replay is not None and replay.failed:
            message = f"nothing was written: {list_some(replay.failed, _MOST_NAMED)}"
            return PassOutcome(result=PassResult.REFUSED, reason="backtest", message=message, details=words)
        if replay is not None:
            observation = replace(observation, backtest=replay.report)
        self._world.hold()
        outcome = self._write(intent, cluster, observation, self._settings)
        if outcome.result is PassResult.APPLIED:
            # It was verified a moment ago; what this look could not tell, the next pass will.
            with contextlib.suppress(ReconcilerError):
                self._counts = _counts(observe(intent, cluster, given, clock=self._world.clock))
        return replace(outcome, details=(*words, *outcome.details))

    def _require_known(self, intent: Intent, answers: ClusterIdentity) -> None:
        """Require the cluster that answered first, where no manifest names the id. Raises ``WrongClusterError``."""
        known = self._answered = self._answered or answers
        if intent.spec.cluster_id is None and known.id != answers.id:
            expected, actual = (escaped(identity.id or "unknown") for identity in (known, answers))
            msg = f"cluster {expected} answered before, and now {actual} does. Nothing was written. Start again if that is meant"
            raise WrongClusterError(msg)

    def _replay(self, intent: Intent, observation: Observation) -> Replay | None:
        """Replay recorded traffic once for each plan, and again while it cannot be read. ``None`` without traffic."""
        digest, before = observation.plan.digest, self._replayed
        if before is None or before[0] != digest or (before[1] is not None and before[1].report is None):
            self._world.progress.step("replaying recorded traffic")
            before = self._replayed = (digest, replay_plan(intent, observation.current))
        return before[1]

    def _write(self, intent: Intent, cluster: QuotaCluster, observation: Observation, settings: ApplySettings) -> PassOutcome:
        world, plan = self._world, observation.plan
        world.recorder.begin(intent, plan)
        report = write_observed(intent, observation, cluster, settings, clock=world.clock, progress=world.progress)
        again = report.wrote and report.digest == self._written
        if report.wrote:
            self._written = report.digest
        outcome = PassOutcome(
            result=_RESULTS[report.result],
            reason=report.failure_reason,
            message=report.message or f"applied and read back: {_list_changes(plan.changes)}",
            written=Counter((outcome.change.action, outcome.status) for outcome in report.outcomes if _was_tried(outcome.status)),
            again=again,
        )
        try:
            world.recorder.ended(report)
        except ReconcilerError as error:
            message = f"{outcome.message}. The report of this could not be written: {error}"
            result = PassResult.PARTIAL if report.wrote else outcome.result
            return replace(outcome, result=result, reason=error.failure_reason, message=message)
        return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What recorded traffic shows of a plan. ``failed``: a sentence for each rule that fails. ``report``: unless unread."""

    words: str
    failed: tuple[str, ...] = ()
    report: BacktestReport | None = None


def replay_plan(intent: Intent, current: CurrentState) -> Replay | None:
    """Replay ``spec.traffic`` against the manifests; ``None`` without it. Traffic that cannot be read stops nothing."""
    if intent.spec.traffic is None:
        return None
    try:
        report = run_backtest(proposal_of(intent, current), configured_backtest(intent.spec, intent.trusted))
    except ReconcilerError as error:
        return Replay(words=f"Nothing was checked against traffic: {error}")
    failed = tuple(f"rule fails: {sentence}" for sentence, passes in rule_sentences(report.rules) if not passes)
    return Replay(words=f"Backtest: {headline(report)[0]}", failed=failed, report=report)


def ended_by(error: ReconcilerError, *, in_manifests: bool = False) -> PassOutcome:
    """Return the outcome of a pass that an error ended. ``in_manifests``: the manifests could not be read."""
    by_error = ((VanishedError, PassResult.VANISHED), (BackendError, PassResult.CLUSTER), (RefusedError, PassResult.REFUSED))
    result = PassResult.INVALID if in_manifests or isinstance(error, ManifestError) else PassResult.FAILED
    if not in_manifests or isinstance(error, VanishedError):
        result = next((each for kind, each in by_error if isinstance(error, kind)), result)
    findings = error.findings[:_MOST_FINDINGS] if isinstance(error, ManifestError) else ()
    details = tuple(
        f"{finding.span or 'the manifests'}: {finding.severity.value}: {finding.message} [{finding.id}]" for finding in findings
    )
    return shortened(PassOutcome(result=result, reason=error.failure_reason, message=str(error), details=details))


def shortened(outcome: PassOutcome) -> PassOutcome:
    """Return the outcome with texts that are escaped, and cut where they are long."""
    return replace(outcome, message=_short(outcome.message), details=tuple(map(_short, outcome.details)))


def _nothing_to_write(observation: Observation) -> PassOutcome:
    plan = observation.plan
    rest = f"{plan.summary.unchanged} unchanged, {plan.summary.unmanaged} unmanaged"
    if observation.drift.differs:
        return PassOutcome(result=PassResult.DIFFERS, message=f"nothing to write, but {_drifted(observation.drift)} ({rest})")
    return PassOutcome(result=PassResult.IN_SYNC, message=f"the cluster has what the manifests declare: {rest}")


def _was_tried(status: ChangeStatus) -> bool:
    return status is not ChangeStatus.NOT_ATTEMPTED


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
