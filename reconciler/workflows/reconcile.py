"""One pass of the long-running reconciler: drift and plan from a single read of the cluster, and the write that may follow.

No person attends, so ``prune: confirm`` counts as ``never`` here, and the number of entities that it would remove is reported.
Only ``prune: always`` removes entities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.apply import ApplySettings
from reconciler.model import AppliedState, ApplyReport, Drift, Plan, Prune
from reconciler.planning import undeclared_in_scope
from reconciler.ports import Clock, Progress, QuotaCluster, QuotaReader
from reconciler.workflows.apply import UNASKED, Approval, write
from reconciler.workflows.baselines import GivenBaseline
from reconciler.workflows.drift import drift_from
from reconciler.workflows.intent import Intent
from reconciler.workflows.load import stop_on
from reconciler.workflows.plan import plan_from
from reconciler.workflows.units import read_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Drift and plan of one moment. ``withheld_prunes``: how many entities ``prune: confirm`` would remove when confirmed."""

    drift: Drift
    plan: Plan
    withheld_prunes: int = 0


def observe(intent: Intent, reader: QuotaReader, given: GivenBaseline | None = None, *, clock: Clock) -> Observation:
    """Read once, and compare. Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does."""
    current = read_for(intent, reader)
    source, spec = intent.source(), intent.spec
    drift = drift_from(intent, current, given, source=source)
    withheld = undeclared_in_scope(intent.desired, current.entities, spec.scope) if spec.prune is Prune.CONFIRM else ()
    unattended = replace(intent, attended=False)
    plan = plan_from(unattended, current, accepted=(), source=source, clock=clock, given=given)
    return Observation(drift=drift, plan=plan, withheld_prunes=len(withheld))


def write_observed(
    intent: Intent, observation: Observation, cluster: QuotaCluster, settings: ApplySettings, *, clock: Clock, progress: Progress
) -> ApplyReport:
    """Write the plan as ``apply`` does, under the same guards.

    Raises ``BackendError``, ``WrongClusterError`` and ``ManifestError``, only when nothing was written.
    """
    stop_on(observation.plan.findings, intent.fail_on)
    approval = Approval(settings=settings)
    report = write(observation.plan, cluster, approval, dialogue=UNASKED, clock=clock, progress=progress)
    return replace(report, applied=AppliedState(totals=observation.plan.totals))
