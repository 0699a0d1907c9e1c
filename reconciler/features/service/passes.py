"""One pass over one cluster: compare it with the manifests, and write when writing is on and no check refuses.

The outcome of a pass is words and counts, never entities, so that keeping one costs nothing.
"""

from __future__ import annotations

import contextlib
import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reconciler.apply import ApplySettings
from reconciler.cli.traffic_options import configured_backtest
from reconciler.documents import APPLY_REPORT, headline
from reconciler.errors import (
    BackendError,
    ManifestError,
    ReconcilerError,
    RefusedError,
    StalePlanError,
    VanishedError,
    WrongClusterError,
)
from reconciler.files import write_whole
from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    BacktestReport,
    Change,
    ChangeStatus,
    ClusterIdentity,
    CurrentState,
    Drift,
    DriftClass,
    Plan,
    Prediction,
    escaped,
)
from reconciler.ports import NO_PROGRESS, Clock, QuotaCluster
from reconciler.render import rule_sentences
from reconciler.text import count_of, list_some
from reconciler.workflows import (
    UNASKED,
    Access,
    Approval,
    AuditFile,
    GivenBaseline,
    Intent,
    TrustedTree,
    drift_from,
    known_principal,
    plan_from,
    predictions_in,
    proposal_of,
    read_for,
    run_backtest,
    stop_on,
    write,
)

_MOST_NAMED: Final = 10
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityCounts:
    """What manifests and cluster showed, in numbers of entities. ``tripped``: ids of guards that are not accepted."""

    drift: Mapping[DriftClass, int]
    planned: Mapping[Action, int]
    tripped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOutcome:
    """One pass. ``counts`` is absent when it did not get as far as the cluster.

    ``reason`` is the ``failure_reason`` of the error tree; ``message`` and ``details`` (one finding each, the first of many) are
    for people. ``written`` counts entities by action and status. ``again``: the very same values were written as in the write
    before, so another writer undoes them.
    """

    result: PassResult
    reason: str | None = None
    message: str = ""
    details: tuple[str, ...] = ()
    counts: EntityCounts | None = None
    written: Mapping[tuple[Action, ChangeStatus], int] = field(default_factory=dict)
    again: bool = False
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Passes:
    """The passes over one cluster, one at a time. ``connect`` and ``given`` raise ``ReconcilerError``."""

    connect: Callable[[Intent], QuotaCluster]
    clock: Clock
    given: Callable[[TrustedTree | None], GivenBaseline | None] = lambda _: None
    """Reads the baseline, if there is any."""
    settings: ApplySettings | None = None
    """How to write, or ``None`` when nothing shall be written."""
    hold: Callable[[], None] = lambda: None
    """Called before a write: from then on, no interrupt ends the process before the write is recorded."""
    access: Access = field(default_factory=Access)
    audit: Path | None = None
    report: Path | None = None
    """Has always the last run that wrote something; ``revert`` reads it."""
    _answered: ClusterIdentity | None = None
    _written: str | None = ""
    _refused: tuple[str | None, str | None] | None = None
    _replayed: tuple[str, BacktestReport | str | None] = ("", None)
    """A digest, and the backtest of its plan, or why there is none."""
    _counts: EntityCounts | None = None
    """What this pass saw, kept when something breaks after that."""

    def run(self, intent: Intent) -> PassOutcome:
        """Run one pass. Raises nothing that a later pass could do better."""
        started = self.clock.monotonic()
        self._counts = None
        try:
            given = self.given(intent.trusted)
            with contextlib.closing(self.connect(intent)) as cluster:
                outcome = self._reconcile(intent, cluster, given)
        except ReconcilerError as error:
            outcome = ended_by(error)
        return replace(outcome, counts=self._counts, seconds=self.clock.monotonic() - started)

    def _reconcile(self, intent: Intent, cluster: QuotaCluster, given: GivenBaseline | None) -> PassOutcome:
        current = read_for(intent, cluster)
        self._require_known(intent, current.cluster)
        drift, plan = self._compare(intent, current, given)
        if not plan.changes:
            return _nothing_to_write(drift, plan)
        backtest = self._replay(intent, current, plan)
        words, failed = _about_traffic(backtest)
        if self.settings is None:
            message = f"not written without --apply: {_list_changes(plan.changes)}"
            return PassOutcome(result=PassResult.DIFFERS, message=message, details=words)
        if failed:
            message = f"nothing was written: {list_some(failed, _MOST_NAMED)}"
            return PassOutcome(result=PassResult.REFUSED, reason="backtest", message=message, details=words)
        stop_on(plan.findings, intent.fail_on)
        self.hold()
        outcome = self._write(intent, cluster, plan, backtest, self.settings)
        if outcome.result is PassResult.APPLIED:
            # It was verified a moment ago; what this look could not tell, the next pass will.
            with contextlib.suppress(ReconcilerError):
                self._compare(intent, read_for(intent, cluster), given)
        return replace(outcome, details=words)

    def _compare(self, intent: Intent, current: CurrentState, given: GivenBaseline | None) -> tuple[Drift, Plan]:
        source = intent.source()
        drift = drift_from(intent, current, given, source=source)
        unattended = replace(intent, attended=False)
        plan = plan_from(unattended, current, accepted=(), source=source, clock=self.clock, given=given)
        summary = plan.summary
        self._counts = EntityCounts(
            drift=dict(drift.counts),
            planned={Action.CREATE: summary.create, Action.UPDATE: summary.update, Action.DELETE: summary.delete},
            tripped=tuple(guard.id for guard in plan.tripped),
        )
        return drift, plan

    def _require_known(self, intent: Intent, answers: ClusterIdentity) -> None:
        """Require the cluster that answered first, where no manifest names the id. Raises ``WrongClusterError``."""
        known = self._answered = self._answered or answers
        if intent.spec.cluster_id is None and known.id != answers.id:
            expected, actual = (escaped(identity.id or "unknown") for identity in (known, answers))
            msg = f"cluster {expected} answered before, and now {actual} does. Nothing was written. Start again if that is meant"
            raise WrongClusterError(msg)

    def _replay(self, intent: Intent, current: CurrentState, plan: Plan) -> BacktestReport | str | None:
        """Replay recorded traffic once for each plan, and again while it cannot be read."""
        digest, backtest = self._replayed
        if digest != plan.digest or isinstance(backtest, str):
            backtest = replay_plan(intent, current)
            self._replayed = plan.digest, backtest
        return backtest

    def _write(
        self, intent: Intent, cluster: QuotaCluster, plan: Plan, backtest: BacktestReport | str | None, settings: ApplySettings
    ) -> PassOutcome:
        """Write the plan as ``apply`` does, under the same guards, and record it.

        Raises ``FileAccessError`` where no line of audit can be added, and as ``write``, only when nothing was written.
        """
        audit = None
        if self.audit is not None:
            audit = AuditFile(self.audit, command="run", validate_only=False, clock=self.clock)
            who = known_principal(intent.spec, self.access, trusted=intent.trusted)
            audit.about(intent.spec, source=plan.source, principal=who)
        predictions: tuple[Prediction, ...] = ()
        if isinstance(backtest, BacktestReport):
            # A backtest of other values than the plan's predicts nothing of it.
            with contextlib.suppress(StalePlanError):
                predictions = predictions_in(backtest, plan)
        approval = Approval(settings=settings)
        report = write(plan, cluster, approval, dialogue=UNASKED, clock=self.clock, progress=NO_PROGRESS)
        report = replace(report, facts=replace(report.facts, totals=plan.totals, predictions=predictions))
        tried = [outcome for outcome in report.outcomes if outcome.status is not ChangeStatus.NOT_ATTEMPTED]
        outcome = PassOutcome(
            result=PassResult.APPLIED if report.result is ApplyResult.DONE else PassResult(report.result.value),
            reason=report.failure_reason,
            message=report.message or f"applied and read back: {_list_changes(plan.changes)}",
            written=Counter((each.change.action, each.status) for each in tried),
            again=report.wrote and report.digest == self._written,
        )
        if report.wrote:
            self._written = report.digest
        try:
            self._record(report, audit)
        except ReconcilerError as error:
            message = f"{outcome.message}. The report of this could not be written: {error}"
            result = PassResult.PARTIAL if report.wrote else outcome.result
            return replace(outcome, result=result, reason=error.failure_reason, message=message)
        return outcome

    def _record(self, report: ApplyReport, audit: AuditFile | None) -> None:
        """End the line of audit and write the report. A refusal that repeats is one line. Raises ``FileAccessError``."""
        summary = report.digest, report.failure_reason
        if audit is not None and (report.wrote or summary != self._refused):
            audit.ended(report)
        self._refused = summary
        if self.report is not None and report.wrote:
            write_whole(self.report, [APPLY_REPORT.text(report)])


def replay_plan(intent: Intent, current: CurrentState) -> BacktestReport | str | None:
    """Replay ``spec.traffic``; ``None`` without it. Traffic that cannot be read stops nothing: the text is for the log."""
    if intent.spec.traffic is None:
        return None
    try:
        return run_backtest(proposal_of(intent, current), configured_backtest(intent.spec, intent.trusted))
    except ReconcilerError as error:
        return f"Nothing was checked against traffic: {error}"


def ended_by(error: ReconcilerError, *, in_manifests: bool = False) -> PassOutcome:
    """Return the outcome of a pass that an error ended. ``in_manifests``: the manifests could not be read."""
    result = PassResult.FAILED
    if isinstance(error, VanishedError):
        result = PassResult.VANISHED
    elif in_manifests or isinstance(error, ManifestError):
        result = PassResult.INVALID
    elif isinstance(error, BackendError):
        result = PassResult.CLUSTER
    elif isinstance(error, RefusedError):
        result = PassResult.REFUSED
    findings = error.findings[:_MOST_FINDINGS] if isinstance(error, ManifestError) else ()
    details = tuple(
        f"{finding.span or 'the manifests'}: {finding.severity.value}: {finding.message} [{finding.id}]" for finding in findings
    )
    return PassOutcome(result=result, reason=error.failure_reason, message=str(error), details=details)


def _about_traffic(backtest: BacktestReport | str | None) -> tuple[tuple[str, ...], list[str]]:
    """Return what recorded traffic shows, and a sentence for each rule that fails."""
    if not isinstance(backtest, BacktestReport):
        return (() if backtest is None else (backtest,)), []
    failed = [f"rule fails: {sentence}" for sentence, passes in rule_sentences(backtest.rules) if not passes]
    return (f"Backtest: {headline(backtest)[0]}",), failed


def _nothing_to_write(drift: Drift, plan: Plan) -> PassOutcome:
    rest = f"{plan.summary.unchanged} unchanged, {plan.summary.unmanaged} unmanaged"
    if not drift.differs:
        return PassOutcome(result=PassResult.IN_SYNC, message=f"the cluster has what the manifests declare: {rest}")
    texts = [f"{entity.entity} ({entity.drift.value})" for entity in drift.entities if entity.drift.is_difference]
    differing = f"{count_of(len(texts), 'entity differs', 'entities differ')}: {list_some(texts, _MOST_NAMED)}"
    return PassOutcome(result=PassResult.DIFFERS, message=f"nothing to write, but {differing} ({rest})")


def _list_changes(changes: Iterable[Change]) -> str:
    texts = [f"{change.action.value} {change.entity}" for change in changes]
    return f"{count_of(len(texts), 'change')}: {list_some(texts, _MOST_NAMED)}"
