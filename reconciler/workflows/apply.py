"""Apply: plan again, refuse what must be refused, ask, take the cluster's lock, write, verify, and add a line to the audit file.

The audit file has one line for every run, however it ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler import documents
from reconciler.apply import ApplySettings, Executor
from reconciler.errors import FrozenError, GuardRefusedError, NotConfirmedError, RefusedError, StalePlanError, UsageError
from reconciler.files import append_line, require_appendable
from reconciler.hooks import added, load
from reconciler.logs import log_event
from reconciler.model import (
    UNALTERABLE,
    ApplyReport,
    ApplyResult,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    ClusterSpec,
    Finding,
    ManifestCommit,
    Plan,
)
from reconciler.planning import is_applied, quotas_after, require_current, undeclared_in_scope
from reconciler.policy import FREEZE_WINDOW, LONGEST_SECONDS, REDUCTION_THROTTLES, WINDOW_SECONDS
from reconciler.ports import Clock, ExclusiveRuns, Progress, QuotaCluster
from reconciler.text import all_changes, count_of
from reconciler.workflows.connect import read_for
from reconciler.workflows.intent import Intent
from reconciler.workflows.load import stop_on
from reconciler.workflows.plan import plan_from

if TYPE_CHECKING:
    from reconciler.apply import StepDown
    from reconciler.model import BacktestReport, Prediction, RunContext
    from reconciler.ports import StepWatcher
    from reconciler.workflows.drift import GivenBaseline

_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"


def holder(clock: Clock) -> str:
    """Identifies this run to a run that finds the lock taken: ``user@host, process 123, since 2026-11-21T16:00:00Z``."""
    return f"{os_user()}@{socket.gethostname()}, process {os.getpid()}, since {clock.now().strftime(_FORMAT)}"


_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What the caller approves: guards by name, a digest that was reviewed, a saved plan that carries one."""

    accepted: tuple[str, ...] = ()
    expected_digest: str | None = None
    saved: Plan | None = None
    settings: ApplySettings = field(default_factory=ApplySettings)
    step_down: StepDown | None = None
    """Lower large reductions in steps."""
    watch: tuple[str, ...] = ()
    """Sources that show the clients of each step, as ``apply --watch`` names them. Empty: the steps are not watched."""
    backtest: BacktestReport | None = None
    """A backtest of this plan. Its predictions are what a watched step may throttle, and stay in the report."""


def _unseen(_: Plan) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """How a run shows its plan, and asks about it.

    ``confirm`` is asked once, with the plan, when there is something to write and not only validation is wanted. ``show`` gets
    each plan without errors, before anything else is decided about it. ``on_refusal`` gets a plan that is refused before the
    question about it was asked.
    """

    confirm: Callable[[Plan], bool]
    show: Callable[[Plan], None] = _unseen
    on_refusal: Callable[[Plan], None] = _unseen


UNASKED: Final = Dialogue(confirm=lambda _: True)
"""Of a run whose caller has decided."""


def apply_manifests(
    intent: Intent,
    cluster: QuotaCluster,
    approval: Approval,
    *,
    dialogue: Dialogue,
    clock: Clock,
    progress: Progress,
    given: GivenBaseline | None = None,
) -> ApplyReport:
    """Write what the manifests want, if everything agrees.

    What is refused comes back as a report too. A saved plan is not stale when the cluster has all its values: nothing is left to
    do.

    Raises ``BackendError``, ``WrongClusterError``, ``BaselineError``, (for findings that the live state brings)
    ``ManifestError``, or as ``StepWatcher.begin``, only when nothing was written.
    """
    progress.step("reading the cluster's quotas")
    current = read_for(intent, cluster)
    plan = plan_from(intent, current, accepted=approval.accepted, source=intent.source(), clock=clock, given=given)
    predictions: tuple[Prediction, ...] = ()
    if approval.backtest is not None:
        try:
            predictions = predictions_in(approval.backtest, plan)
        except StalePlanError as error:
            return refused(plan, error)
    if approval.step_down is not None:
        if approval.watch:
            watcher = _watcher(intent, cluster, approval.watch, predictions)
            approval = replace(approval, step_down=replace(approval.step_down, watcher=watcher))
        plan = in_steps(plan, approval.step_down)
    stop_on(plan.findings, intent.fail_on)
    dialogue.show(plan)
    saved = approval.saved
    if saved is not None and approval.expected_digest in (None, saved.digest) and is_applied(saved, current):
        return already_applied(plan)
    report = write(plan, cluster, approval, dialogue=dialogue, clock=clock, progress=progress)
    unmanaged = undeclared_in_scope(intent.desired, quotas_after(current.entities, plan.changes), intent.spec.scope)
    facts = replace(report.facts, totals=plan.totals, unmanaged=unmanaged, predictions=predictions)
    return replace(report, findings=_about_the_rest(plan), facts=facts)


def predictions_in(backtest: BacktestReport, plan: Plan) -> tuple[Prediction, ...]:
    """Return what a backtest predicts of a plan. Raises ``StalePlanError`` for a backtest of other values."""
    from reconciler.policy import predictions_of

    return predictions_of(backtest, plan.changes, plan.cluster.name)


def _watcher(intent: Intent, cluster: QuotaCluster, sources: tuple[str, ...], predictions: tuple[Prediction, ...]) -> StepWatcher:
    """The feature that looks at clients. Raises ``UsageError`` without one, and for a source that is none."""
    for place in added("STEP_WATCHERS"):
        watcher: StepWatcher = load(place)(intent, cluster, sources, predictions)
        return watcher
    raise UsageError("--watch needs the feature insight, and its folder is not installed")


def write(
    plan: Plan, cluster: QuotaCluster, approval: Approval, *, dialogue: Dialogue, clock: Clock, progress: Progress
) -> ApplyReport:
    """Write a plan that was just made, if what was approved is what it does.

    Where only validation is wanted, the cluster is asked about a plan that guards refuse, too, and the report has both answers.
    Raises ``BackendError`` and ``WrongClusterError``, only when nothing was written.
    """
    try:
        if approval.saved is not None or approval.expected_digest is not None:
            _require_reviewed(plan, approval)
        if plan.tripped:
            raise _refusal(plan)
    except RefusedError as error:
        log_event(_log, "write refused", level=logging.INFO, reason=error.failure_reason, digest=plan.digest)
        dialogue.on_refusal(plan)
        report = refused(plan, error)
        if isinstance(error, StalePlanError) or not approval.settings.validate_only or not plan.changes:
            return report
        checked = Executor(cluster, clock=clock, progress=progress, settings=approval.settings).run(plan)
        return replace(
            report, outcomes=checked.outcomes, message=f"{report.message} {_cluster_answer(checked)}", validate_only=True
        )
    log_event(
        _log,
        "write allowed",
        level=logging.INFO,
        digest=plan.digest,
        changes=len(plan.changes),
        validate_only=approval.settings.validate_only,
        saved_plan=approval.saved is not None,
        in_steps=approval.step_down is not None,
    )
    writes = bool(plan.changes) and not approval.settings.validate_only
    try:
        if writes and not dialogue.confirm(plan):
            raise NotConfirmedError("not confirmed")
        with contextlib.ExitStack() as held:
            if writes and isinstance(cluster, ExclusiveRuns):
                held.enter_context(cluster.exclusive(holder(clock)))
            if approval.step_down is not None:
                from reconciler.apply import SteppedExecutor

                stepped = SteppedExecutor(
                    cluster, clock=clock, progress=progress, settings=approval.settings, step_down=approval.step_down
                )
                report = stepped.run(plan)
            else:
                report = Executor(cluster, clock=clock, progress=progress, settings=approval.settings).run(plan)
            ended = clock.now() if report.wrote else None
            return replace(report, facts=replace(report.facts, ended=ended))
    except RefusedError as error:
        return refused(plan, error)


def _cluster_answer(checked: ApplyReport) -> str:
    if checked.result is ApplyResult.DONE:
        return f"Apart from that, the cluster would accept {all_changes(len(checked.outcomes))}"
    refused_changes = checked.count(ChangeStatus.FAILED)
    if not refused_changes:
        return f"Also, {checked.message}"
    return f"The cluster itself refuses {count_of(refused_changes, 'change')} of {len(checked.outcomes)}, too"


def in_steps(plan: Plan, step_down: StepDown | None) -> Plan:
    """The plan with notes about steps, and without the advice to take them where they are taken."""
    if step_down is None:
        return plan
    from reconciler.apply import stepping_notes

    if not (notes := tuple(stepping_notes(plan.changes, step_down))):
        return plan
    findings = plan.findings
    if (step_down.factor - 1) * WINDOW_SECONDS <= LONGEST_SECONDS:
        findings = tuple(finding for finding in findings if finding.id != REDUCTION_THROTTLES)
    return replace(plan, notes=(*plan.notes, *notes), findings=findings)


def already_applied(plan: Plan) -> ApplyReport:
    """The report of a saved plan whose values the cluster has; changes that this plan would make now are not attempted."""
    count = len(plan.changes)
    more = f". {'1 other change is' if count == 1 else f'{count} other changes are'} planned now. Plan again" if count else ""
    return ApplyReport(
        cluster=plan.cluster,
        digest=plan.digest,
        result=ApplyResult.NOTHING_TO_DO,
        outcomes=_not_attempted(plan),
        message=f"the saved plan is already applied{more}",
        findings=_about_the_rest(plan),
    )


def _about_the_rest(plan: Plan) -> tuple[Finding, ...]:
    """Findings about entities that differ from the manifests and that the plan leaves."""
    return (*plan.undecided, *(finding for finding in plan.findings if finding.id == UNALTERABLE))


def refused(plan: Plan, error: RefusedError) -> ApplyReport:
    """The report of a run that wrote nothing because the tool refused to."""
    return ApplyReport(
        cluster=plan.cluster,
        digest=plan.digest,
        result=ApplyResult.REFUSED,
        outcomes=_not_attempted(plan),
        failure_reason=error.failure_reason,
        message=str(error),
        guards=plan.guards,
    )


def _not_attempted(plan: Plan) -> tuple[ChangeOutcome, ...]:
    return tuple(ChangeOutcome(change=change, status=ChangeStatus.NOT_ATTEMPTED) for change in plan.changes)


def _require_reviewed(plan: Plan, approval: Approval) -> None:
    if approval.saved is not None:
        require_current(approval.saved, plan)
    if approval.expected_digest is not None and approval.expected_digest != plan.digest:
        msg = f"the plan is now {plan.digest}, not the expected {approval.expected_digest}. Plan again"
        raise StalePlanError(msg)


def _refusal(plan: Plan) -> GuardRefusedError:
    msg = " ".join(f"Guard {g.id}: {g.message} {g.advice or ''}".rstrip() for g in plan.tripped)
    refused_by = [g.id for g in plan.tripped]
    kind = FrozenError if refused_by == [FREEZE_WINDOW] else GuardRefusedError
    return kind(msg, guard_ids=refused_by)


class AuditFile:
    """The line that this run is going to add; it learns what goes in as the run does."""

    def __init__(self, path: Path, *, command: str, validate_only: bool, clock: Clock) -> None:
        """Raise ``FileAccessError`` when no line could be added."""
        require_appendable(path)
        self._path = path
        self._clock = clock
        self._run = documents.AuditedRun(command=command, started=clock.now(), os_user=os_user(), validate_only=validate_only)

    def about(self, spec: ClusterSpec, *, source: ManifestCommit, principal: str | None) -> None:
        """The manifests and the connection settings."""
        cluster = ClusterIdentity(name=spec.name, id=spec.cluster_id)
        self._run = replace(self._run, cluster=cluster, source=source, principal=principal)

    def ended(self, report: ApplyReport) -> None:
        """Add the line of a run with a report. Raises ``FileAccessError``; then the file is as it was."""
        self._add(report, report.facts.context)

    def broke_off(self, error: BaseException, *, context: RunContext | None = None) -> None:
        """Add the line of a run that wrote nothing. Raises ``FileAccessError``."""
        self._add(error, context)

    def _add(self, ending: ApplyReport | BaseException, context: RunContext | None) -> None:
        run = replace(self._run, context=context)
        append_line(self._path, documents.audit_line(run, ending, at=self._clock.now()))


def os_user() -> str:
    """The account that this process runs as, by the system's own list: any program can set environment variables."""
    try:
        import pwd
    except ImportError:  # Windows
        return os.getlogin()
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
