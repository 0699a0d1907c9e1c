"""Alter: change one entity by hand, under the guards of ``apply``, and write and verify as it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from reconciler.documents import plan_digest
from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    CurrentState,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    Plan,
    QuotaKey,
    Span,
    Summary,
)
from reconciler.planning import change_of_one, nothing_to_do_notes
from reconciler.policy import GuardContext, judge
from reconciler.ports import Clock, Progress, QuotaCluster
from reconciler.resolution import needs_broker
from reconciler.workflows.alter_request import AlterRequest
from reconciler.workflows.alter_target import AlterTarget
from reconciler.workflows.apply import Approval, write
from reconciler.workflows.connect import read_state

_NOT_ABOUT_ONE_ENTITY: Final = frozenset({"empty-desired-state", "too-many-changes", "too-many-removals"})
"""Guards about all that manifests declare, or about how much changes: the user named one entity."""
_BY_HAND: Final = Span(file="command line", line=1, column=1)


def alter_entity(
    cluster: QuotaCluster,
    request: AlterRequest,
    approval: Approval,
    *,
    target: AlterTarget,
    confirm: Callable[[Plan], bool],
    preview: Callable[[Plan], None],
    clock: Clock,
    progress: Progress,
) -> ApplyReport:
    """Write what is asked for, if everything agrees.

    ``preview`` is shown the plan first, whatever then becomes of it; ``confirm`` is asked as in ``apply``. An entity inside the
    managed scope of ``target`` trips the guard ``managed-entity``. What is refused comes back as a report. Raises
    ``WrongClusterError`` when another cluster answers, and ``BackendError``, only when nothing was written.
    """
    progress.step("reading the cluster's quotas")
    current = read_state(target.spec, cluster)
    plan = alter_plan(request, current, approval, target=target, clock=clock)
    preview(plan)
    return _explained(write(plan, cluster, approval, confirm=confirm, clock=clock, progress=progress), request.entity)


def alter_plan(request: AlterRequest, current: CurrentState, approval: Approval, *, target: AlterTarget, clock: Clock) -> Plan:
    """The pure part: the plan of one entity, or of nothing when it is as asked for already."""
    entity, spec = request.entity, target.spec
    live = current.entities.get(entity, {})
    change = change_of_one(entity, live, add=request.add, delete=request.delete)
    changes = () if change is None else (change,)
    owned = target.managed_at(entity)
    context = GuardContext(
        changes=changes,
        desired=_desired(request),
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=target.others.claimed(current.cluster),
        managed={} if owned is None else {entity: owned},
    )
    judgement = judge(context, accepted=approval.accepted, leave_out=_NOT_ABOUT_ONE_ENTITY)
    return Plan(
        cluster=current.cluster.named(spec.name),
        source=target.source,
        observed=current.observed,
        complete=True,
        summary=_summary(change),
        changes=changes,
        guards=judgement.guards,
        digest=plan_digest(current.cluster.id, changes),
        notes=(*judgement.notes, *nothing_to_do_notes(entity, live, add=request.add, delete=request.delete)),
    )


def _summary(change: Change | None) -> Summary:
    if change is None:
        return Summary(unchanged=1)
    return Summary(
        create=int(change.action is Action.CREATE),
        update=int(change.action is Action.UPDATE),
        delete=int(change.action is Action.DELETE),
    )


def _desired(request: AlterRequest) -> DesiredState:
    """What the request leads to, for guards that look at it; the command line stands where manifests would."""
    quotas = {QuotaKey(key): DesiredQuota(value=value, source=_BY_HAND, text=str(value)) for key, value in request.add.items()}
    entity = DesiredEntity(entity=request.entity, quotas=quotas, source=_BY_HAND)
    return DesiredState(entities={request.entity: entity}, complete=False)


def _explained(report: ApplyReport, entity: Entity) -> ApplyReport:
    """A refusal by the cluster, with what we know about it behind its words."""
    if report.result is not ApplyResult.FAILED or not needs_broker(entity):
        return report
    ours = "an ip that is no literal address is looked up by the controller, and by every broker for itself; give the address"
    return replace(report, message=f"{report.message}; {ours}")
