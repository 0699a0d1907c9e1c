"""Make a plan: desired state from the manifests, current state from a cluster or snapshot, the difference, and its judges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from reconciler.documents import PLAN, plan_digest
from reconciler.logs import log_event
from reconciler.model import BrokerFacts, CurrentState, GuardStatus, ManifestCommit, Plan, Prune, in_order
from reconciler.planning import Difference, difference, sort_for_writing
from reconciler.policy import (
    GuardContext,
    Judgement,
    OwnerView,
    PolicyInput,
    by_option,
    check_accepted_policies,
    in_manifest,
    judge,
    judge_owners,
    judge_policies,
)
from reconciler.ports import Clock, QuotaReader
from reconciler.workflows.connect import judge_callback
from reconciler.workflows.drift import GivenBaseline
from reconciler.workflows.intent import Intent, claimed_elsewhere, lint_change
from reconciler.workflows.owners import errors_by_owner, owner_lookup, withheld_in_stage
from reconciler.workflows.plan_effects import with_effects
from reconciler.workflows.undeclared import DeclaredEarlier, judge_undeclared
from reconciler.workflows.units import accepted_fallbacks, divide_totals, fallback_notes, read_for

_log: Final = logging.getLogger(__name__)


def make_plan(
    intent: Intent,
    reader: QuotaReader,
    *,
    accepted: Sequence[str],
    clock: Clock,
    given: GivenBaseline | None = None,
    show_unmanaged: bool = False,
    show_effects: bool = False,
) -> Plan:
    """Read once, compare and judge.

    Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does, and as ``plan_from``.
    """
    current = read_for(intent, reader)
    plan = plan_from(
        intent,
        current,
        accepted=accepted,
        source=intent.source(),
        clock=clock,
        given=given,
        show_unmanaged=show_unmanaged,
    )
    return with_effects(plan, current, source=reader, spec=intent.spec) if show_effects else plan


def plan_from(
    intent: Intent,
    current: CurrentState,
    *,
    accepted: Sequence[str],
    source: ManifestCommit,
    clock: Clock,
    given: GivenBaseline | None = None,
    show_unmanaged: bool = False,
) -> Plan:
    """The plan from two states, without reading anything; ``clock`` states which guards and acceptances are in effect.

    ``source``: the commit of the manifests. In a run that no person attends, ``prune: confirm`` counts as ``never``, and guards
    are accepted in the Cluster manifest. Raises ``BaselineError`` for the baseline of another cluster, and ``ManifestError``.
    """
    if intent.desired.with_units:
        intent = divide_totals(intent, current)
    earlier_plan = None
    if intent.before is not None and intent.attended:
        from reconciler.workflows.as_before import EarlierPlan

        def plan_base(base: Intent) -> Plan:
            return plan_from(base, current, accepted=(), source=source, clock=clock)

        earlier_plan = EarlierPlan(intent, intent.before, plan_base)
        read = earlier_plan.mark_findings(Judgement(findings=intent.findings))
        intent = replace(intent, findings=read.findings, notes=(*intent.notes, *earlier_plan.notes))
    spec, desired = intent.spec, intent.desired
    prune = spec.prune if intent.attended or spec.prune is not Prune.CONFIRM else Prune.NEVER
    differences = difference(desired, current, scope=spec.scope, prune=prune)
    changes = sort_for_writing(differences.changes, current.entities)
    context = GuardContext(
        changes=changes,
        desired=desired,
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=claimed_elsewhere(spec, intent.loaded, current.cluster) if len(intent.loaded.clusters) > 1 else {},
        accepted_fallbacks=(
            accepted_fallbacks(changes, intent.before, current)
            if any(key.expiry is not None for change in changes for key in change.keys)
            else frozenset()
        ),
    )
    identity = current.cluster.named(spec.name)
    unmanaged = tuple(sorted(differences.unmanaged, key=lambda entity: entity.sort_key)) if show_unmanaged else None
    plan = Plan(
        cluster=identity,
        source=source,
        observed=current.observed,
        complete=desired.complete,
        summary=differences.summary,
        changes=changes,
        guards=(),
        digest=plan_digest(identity.id, changes),
        notes=(*current.notes, *intent.notes),
        findings=intent.findings,
        unmanaged=unmanaged,
        totals=BrokerFacts(brokers=current.brokers, leaders=current.leaders) if intent.has_totals else BrokerFacts(),
    )
    has_undeclared = bool(differences.unmanaged) or any(change.entity not in desired.entities for change in changes)
    earlier = DeclaredEarlier(base=intent.before, baseline=given.of(spec.name, current) if given is not None else None)
    for judge_it in _judges(intent, context, accepted=accepted, earlier=earlier, has_undeclared=has_undeclared):
        judgement = judge_it(plan)
        if earlier_plan is not None:
            judgement = earlier_plan.mark_findings(judgement)
        plan = _with_judgement(plan, judgement, differences)
    if earlier_plan is not None:
        plan = earlier_plan.mark_changes(plan)
    plan = replace(plan, findings=in_order(plan.findings))
    log_event(
        _log,
        "plan made",
        level=logging.INFO,
        cluster=spec.name,
        digest=plan.digest,
        create=plan.summary.create,
        update=plan.summary.update,
        delete=plan.summary.delete,
        unchanged=plan.summary.unchanged,
        guards_tripped=[guard.id for guard in plan.tripped],
        guards_accepted=[guard.id for guard in plan.guards if guard.status is GuardStatus.ACCEPTED],
        withheld=[each.owner for each in plan.withheld],
    )
    return plan


Judge: TypeAlias = Callable[[Plan], Judgement]
"""Judges the plan so far, which has the findings of the judges before."""


def _judges(
    intent: Intent, context: GuardContext, *, accepted: Sequence[str], earlier: DeclaredEarlier, has_undeclared: bool
) -> Iterator[Judge]:
    """Those that this plan needs, in their order: a judge that nothing declares is not asked."""
    spec, current, desired = intent.spec, context.current, intent.desired
    advice = by_option if intent.attended else in_manifest
    severities = intent.loaded.repository.lint
    yield lambda plan: Judgement(findings=lint_change(spec, desired, current, plan.changes, severities=severities))
    if intent.isolates:
        yield lambda plan: judge_owners(context, _owner_view(intent, plan), accepted=accepted, advice=advice)
    else:
        yield lambda _: judge(context, accepted=accepted, advice=advice)
    if context.accepted_fallbacks:
        yield lambda _: Judgement(notes=tuple(fallback_notes(context.accepted_fallbacks)))
    if current.cluster.quota_callback is not None:
        yield lambda plan: judge_callback(spec, plan.cluster)
    if has_undeclared:
        yield lambda plan: judge_undeclared(spec, desired, current, earlier, source=plan.source)
    policies = intent.loaded.repository.policies
    # One command may plan many clusters, and an accepted policy need not be about each of them.
    if policies or accepted:
        check_accepted_policies([entry.policy for entry in policies], accepted)
    if chosen := [entry.policy for entry in policies if entry.clusters is None or entry.clusters.chooses(spec)]:
        owner_of = owner_lookup(desired, intent.owners)
        yield lambda plan: judge_policies(
            chosen,
            PolicyInput(document=PLAN.write(plan), changes=plan.changes, owner_of=owner_of, spec=spec, now=context.now),
            accepted=accepted,
            advice=advice,
        )


def _with_judgement(plan: Plan, judgement: Judgement, differences: Difference) -> Plan:
    """The plan with what one judge found. Findings that withhold an owner are in the reasons for that, and nowhere else."""
    if judgement.changes is not None and judgement.changes != plan.changes:
        digest = plan_digest(plan.cluster.id, judgement.changes)
        plan = replace(plan, changes=judgement.changes, digest=digest, summary=differences.summary_of(judgement.changes))
    findings = (*plan.findings, *judgement.findings)
    if judgement.withheld:
        named = {finding for each in judgement.withheld for finding in each.findings}
        findings = tuple(finding for finding in findings if finding not in named)
    return replace(
        plan,
        guards=(*plan.guards, *judgement.guards),
        findings=findings,
        notes=(*plan.notes, *judgement.notes),
        withheld=(*plan.withheld, *judgement.withheld),
        kept=(*plan.kept, *judgement.kept),
    )


def _owner_view(intent: Intent, plan: Plan) -> OwnerView:
    """Who owns which change, and whose changes are withheld whatever the guards measure."""
    scope = intent.scope
    owner_of = owner_lookup(intent.desired, intent.owners)
    errors = errors_by_owner(plan.findings, owner_of, intent.fail_on)
    for owner, findings in scope.errors.items():
        errors[owner] = (*findings, *errors.get(owner, ()))
    for owner in {owner_of(change.entity) for change in plan.changes} & scope.withheld_before.keys():
        errors[owner] = (*errors.get(owner, ()), withheld_in_stage(scope.withheld_before[owner]))
    unread = frozenset(owner for owner in scope.errors if owner is not None)
    return OwnerView(owner_of=owner_of, selected=scope.chosen, errors=errors, unread=unread)
