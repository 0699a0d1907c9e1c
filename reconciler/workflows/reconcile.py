"""One pass of the long-running reconciler: drift and plan from a single read of the cluster, and the write that may follow.

No person attends, so ``prune: confirm`` counts as ``never`` here, and the number of entities that it would remove is reported.
Only ``prune: always`` removes entities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.apply import ApplySettings
from reconciler.model import ApplyReport, CurrentState, Drift, Plan, Prune
from reconciler.planning import difference
from reconciler.ports import Clock, Progress, QuotaCluster, QuotaReader
from reconciler.workflows.apply import Approval, write
from reconciler.workflows.baselines import GivenBaseline
from reconciler.workflows.drift import drift_from
from reconciler.workflows.load import stop_on
from reconciler.workflows.plan import Intent, plan_from
from reconciler.workflows.units import at_brokers, read_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Drift and plan of one moment. ``withheld_prunes``: how many entities ``prune: confirm`` would remove when confirmed."""

    drift: Drift
    plan: Plan
    withheld_prunes: int = 0


def observe(intent: Intent, reader: QuotaReader, given: GivenBaseline | None = None, *, clock: Clock) -> Observation:
    """Read once, and compare. Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does."""
    current = read_for(intent, reader)
    source = intent.source()
    drift = drift_from(intent, current, given, source=source)
    withheld_prunes = _count_pruned(intent, current) if intent.spec.prune is Prune.CONFIRM else 0
    plan = plan_from(intent, current, accepted=(), source=source, clock=clock, given=given, attended=False)
    return Observation(drift=drift, plan=plan, withheld_prunes=withheld_prunes)


def write_observed(
    intent: Intent, observation: Observation, cluster: QuotaCluster, settings: ApplySettings, *, clock: Clock, progress: Progress
) -> ApplyReport:
    """Write the plan as ``apply`` does, under the same guards.

    Raises ``BackendError``, ``WrongClusterError`` and ``ManifestError``, only when nothing was written.
    """
    stop_on(observation.plan.findings, intent.fail_on)
    approval = Approval(settings=settings)
    report = write(observation.plan, cluster, approval, confirm=lambda _: True, clock=clock, progress=progress)
    return replace(report, divided_among=observation.plan.brokers, leaders=observation.plan.leaders)


def _count_pruned(intent: Intent, current: CurrentState) -> int:
    intent = at_brokers(intent, current)
    differences = difference(intent.desired, current, scope=intent.spec.scope, prune=Prune.CONFIRM)
    return sum(1 for change in differences.changes if change.entity not in intent.desired.entities)
