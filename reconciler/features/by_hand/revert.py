"""Revert: plan the way back from an apply report, then write it as ``apply`` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.documents import read_apply_report
from reconciler.errors import ChangedSinceError, OutOfScopeError, RefusedError, WrongClusterError
from reconciler.model import (
    ApplyReport,
    Change,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    CurrentState,
    Entity,
    KeyChange,
    Plan,
    Quotas,
    Reason,
    Scope,
    Span,
    escaped,
    same_value,
)
from reconciler.planning import action_of, sort_for_writing
from reconciler.policy import GuardContext
from reconciler.ports import Clock, Progress, QuotaCluster
from reconciler.text import list_some, number_text
from reconciler.workflows import (
    Approval,
    ClusterTarget,
    Dialogue,
    claimed_elsewhere,
    in_steps,
    load_target,
    plan_of_changes,
    read_state,
    read_trusted_files,
    refused,
    stated_by,
    write,
)

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """A report to go back from, and what limits that on its cluster."""

    report: ApplyReport
    file: str
    target: ClusterTarget = field(default_factory=ClusterTarget)


def load_undoing(text: str, *, file: str, paths: Sequence[str], cluster: str | None, trusted_ref: str | None = None) -> Undoing:
    """The report, and the Cluster manifest where a path or a name (or a trusted reference) is given.

    Raises ``FileAccessError`` for a file that is not a report, ``UntrustedError`` for one that git tracks and that differs from
    the reference, and as ``load_target``.
    """
    if trusted_ref is not None:
        read_trusted_files(trusted_ref, next(iter(paths), ".")).require_same(file)
    report = read_apply_report(text, name=file)
    return Undoing(report=report, file=file, target=load_target(paths, cluster=cluster, trusted_ref=trusted_ref))


def revert_report(
    undoing: Undoing, cluster: QuotaCluster, approval: Approval, *, dialogue: Dialogue, clock: Clock, progress: Progress
) -> ApplyReport:
    """Write the values before the reported run, unless the cluster was changed since.

    The plan is shown only for validation, and then a refusal of it is not. What is refused comes back as a report. Raises
    ``WrongClusterError`` for a report of another cluster, and ``BackendError``, only when nothing was written.
    """
    progress.step("reading the cluster's quotas")
    current = read_state(undoing.target.spec, cluster)
    _require_same_cluster(undoing, current.cluster)
    try:
        back, already_back = plan_way_back(undoing.report, current.entities, scope=undoing.target.spec.scope)
    except RefusedError as error:
        return refused(_plan(undoing, current, (), accepted=approval.accepted, clock=clock), error)
    changes = sort_for_writing(back, current.entities)
    plan = _plan(undoing, current, changes, accepted=approval.accepted, clock=clock)
    if already_back:
        plan = replace(plan, notes=(*plan.notes, f"{already_back} of the report's entities are as they were before it already"))
    plan = in_steps(plan, approval.step_down)
    if approval.settings.validate_only:
        dialogue.show(plan)
        dialogue = Dialogue(confirm=dialogue.confirm)
    return write(plan, cluster, approval, dialogue=dialogue, clock=clock, progress=progress)


def _require_same_cluster(undoing: Undoing, answers: ClusterIdentity) -> None:
    expected = undoing.report.cluster.id
    if expected == answers.id:
        return
    of, actual = (escaped(cluster_id or "unknown") for cluster_id in (expected, answers.id))
    msg = f"the report {undoing.file} is of cluster {of}, and {actual} answers. Nothing was written"
    raise WrongClusterError(msg)


def _plan(undoing: Undoing, current: CurrentState, changes: tuple[Change, ...], *, accepted: Sequence[str], clock: Clock) -> Plan:
    spec = undoing.target.spec
    context = GuardContext(
        changes=changes,
        desired=stated_by(changes, Span(file=undoing.file, line=1, column=1)),
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=claimed_elsewhere(spec, undoing.target.loaded, current.cluster),
    )
    return plan_of_changes(context, undoing.target, accepted=accepted)


def plan_way_back(report: ApplyReport, live: Mapping[Entity, Quotas], *, scope: Scope) -> tuple[tuple[Change, ...], int]:
    """Plan every key that the report's run wrote, or may have written, back to its value before: unsorted changes.

    Returns how many entities are as they were before already, too.

    A key that has its value from before again needs nothing. Raises ``ChangedSinceError`` when a key has neither that nor a
    value of the run, because another writer changed it since; and ``OutOfScopeError`` for entities outside of the scope.
    """
    touched = [outcome for outcome in report.outcomes if _may_be_written(outcome)]
    outside = [str(outcome.change.entity) for outcome in touched if not scope.contains(outcome.change.entity)]
    if outside:
        raise OutOfScopeError(f"the report changed what is outside the scope of the cluster: {list_some(outside, _SHOWN)}")
    foreign = [text for outcome in touched for text in _changed_since(outcome, live.get(outcome.change.entity, {}))]
    if foreign:
        raise ChangedSinceError(f"another writer changed it since: {list_some(foreign, _SHOWN, between='. ')}")
    changes = tuple(change for outcome in touched if (change := _back(outcome.change, live.get(outcome.change.entity, {}))))
    return changes, len(touched) - len(changes)


def _may_be_written(outcome: ChangeOutcome) -> bool:
    return outcome.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) or bool(outcome.reached)


def _changed_since(outcome: ChangeOutcome, live: Quotas) -> Iterator[str]:
    for key in outcome.change.keys:
        now = live.get(key.key)
        written: tuple[float | None, ...] = outcome.reached.get(key.key, (key.after,))
        if not any(same_value(now, value) for value in (*written, key.before)):
            left = " or ".join(number_text(value) for value in written)
            place = f"{outcome.change.entity} {key.key} is {number_text(now)}"
            yield f"{place}, the run left it at {left} (before it: {number_text(key.before)})"


def _back(change: Change, live: Quotas) -> Change | None:
    keys = tuple(
        KeyChange(key=key.key, before=live.get(key.key), after=key.before, reason=Reason.WAY_BACK)
        for key in change.keys
        if not same_value(live.get(key.key), key.before)
    )
    if not keys:
        return None
    return Change(entity=change.entity, action=action_of(live, keys), keys=keys)
