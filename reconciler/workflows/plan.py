"""Make a plan: desired state from the manifests, current state from a cluster or snapshot, the difference, and its judges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from reconciler.formats import plan_digest
from reconciler.logs import log_event
from reconciler.model import BrokerFacts, CurrentState, Entity, GuardStatus, ManifestCommit, Plan, Prune, in_order
from reconciler.planning import difference, sort_for_writing
from reconciler.policy import GuardContext, Judgement, by_option, in_manifest, judge
from reconciler.ports import Clock, QuotaReader
from reconciler.workflows.connect import judge_callback, read_for
from reconciler.workflows.intent import Intent, claimed_elsewhere, lint_change

if TYPE_CHECKING:
    from reconciler.model import Baseline
    from reconciler.workflows.drift import GivenBaseline

_log: Final = logging.getLogger(__name__)


def make_plan(
    intent: Intent,
    reader: QuotaReader,
    *,
    accepted: Sequence[str],
    clock: Clock,
    given: GivenBaseline | None = None,
    show_effects: bool = False,
) -> Plan:
    """Read once, compare and judge.

    Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does, and as ``plan_from``.
    """
    current = read_for(intent, reader)
    plan = plan_from(intent, current, accepted=accepted, source=intent.source(), clock=clock, given=given)
    if not show_effects:
        return plan
    from reconciler.workflows.plan_effects import with_effects

    return with_effects(plan, current, source=reader, spec=intent.spec)


def plan_from(
    intent: Intent,
    current: CurrentState,
    *,
    accepted: Sequence[str],
    source: ManifestCommit,
    clock: Clock,
    given: GivenBaseline | None = None,
) -> Plan:
    """The plan from two states, without reading anything; ``clock`` states which guards and acceptances are in effect.

    ``source``: the commit of the manifests. In a run that no person attends, ``prune: confirm`` counts as ``never``, and guards
    are accepted in the Cluster manifest. Raises ``BaselineError`` for the baseline of another cluster, and ``ManifestError``.
    """
    if intent.desired.with_units:
        from reconciler.workflows.units import divide_totals

        intent = divide_totals(intent, current)
    earlier_plan = None
    if intent.attended and (intent.before is not None or intent.loaded.proposed_baseline is not None):
        from reconciler.workflows.as_before import EarlierPlan

        def plan_base(base: Intent) -> Plan:
            return plan_from(base, current, accepted=(), source=source, clock=clock)

        earlier_plan = EarlierPlan(intent, plan_base)
        read = earlier_plan.mark_judgement(Judgement(findings=intent.findings))
        intent = replace(intent, findings=read.findings, notes=(*intent.notes, *earlier_plan.notes))
    spec, desired = intent.spec, intent.desired
    prune = spec.prune if intent.attended or spec.prune is not Prune.CONFIRM else Prune.NEVER
    differences = difference(desired, current, scope=spec.scope, prune=prune)
    changes = sort_for_writing(differences.changes, current.entities)
    fallbacks: frozenset[tuple[Entity, str]] = frozenset()
    if any(key.expiry is not None for change in changes for key in change.keys):
        from reconciler.workflows.units import accepted_fallbacks

        fallbacks = accepted_fallbacks(changes, intent.before, current)
    context = GuardContext(
        changes=changes,
        desired=desired,
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=claimed_elsewhere(spec, intent.loaded, current.cluster) if len(intent.loaded.clusters) > 1 else {},
        accepted_fallbacks=fallbacks,
    )
    identity = current.cluster.named(spec.name)
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
        totals=BrokerFacts(brokers=current.brokers, leaders=current.leaders) if intent.has_totals else BrokerFacts(),
    )
    has_undeclared = bool(differences.unmanaged) or any(change.entity not in desired.entities for change in changes)
    baseline = given.of(spec.name, current) if given is not None else None
    for judge_it in _judges(intent, context, accepted=accepted, baseline=baseline, has_undeclared=has_undeclared):
        judgement = judge_it(plan)
        if earlier_plan is not None:
            judgement = earlier_plan.mark_judgement(judgement)
        plan = _with_judgement(plan, judgement)
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
    )
    return plan


Judge: TypeAlias = Callable[[Plan], Judgement]
"""Judges the plan so far, which has the findings of the judges before."""


def _judges(
    intent: Intent, context: GuardContext, *, accepted: Sequence[str], baseline: Baseline | None, has_undeclared: bool
) -> Iterator[Judge]:
    """Yield the judges that this plan needs, in their order: one that nothing declares is neither asked nor loaded."""
    spec, current, desired = intent.spec, context.current, intent.desired
    advice = by_option if intent.attended else in_manifest
    severities = intent.loaded.repository.lint
    yield lambda plan: Judgement(findings=lint_change(desired, current, plan.changes, severities=severities))
    yield lambda _: judge(context, accepted=accepted, advice=advice)
    if context.accepted_fallbacks:
        from reconciler.workflows.units import fallback_notes

        yield lambda _: Judgement(notes=tuple(fallback_notes(context.accepted_fallbacks)))
    if current.cluster.quota_callback is not None:
        yield lambda plan: judge_callback(spec, plan.cluster)
    if has_undeclared:
        from reconciler.workflows.undeclared import DeclaredEarlier, judge_undeclared

        earlier = DeclaredEarlier(base=intent.before, baseline=baseline)
        yield lambda plan: judge_undeclared(spec, desired, current, earlier, source=plan.source)


def _with_judgement(plan: Plan, judgement: Judgement) -> Plan:
    return replace(
        plan,
        guards=(*plan.guards, *judgement.guards),
        findings=(*plan.findings, *judgement.findings),
        notes=(*plan.notes, *judgement.notes),
        kept=(*plan.kept, *judgement.kept),
    )
