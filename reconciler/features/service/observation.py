"""One look at a cluster for a pass: state, drift and plan of one moment, and the write of that plan."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from reconciler.apply import ApplySettings
from reconciler.errors import StalePlanError
from reconciler.model import ApplyReport, BacktestReport, CurrentState, Drift, Plan, Prediction, Prune
from reconciler.planning import undeclared_in_scope
from reconciler.ports import Clock, Progress, QuotaCluster, QuotaReader
from reconciler.workflows import (
    UNASKED,
    Approval,
    GivenBaseline,
    Intent,
    drift_from,
    plan_from,
    predictions_in,
    read_for,
    stop_on,
    write,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """State, drift and plan of one moment. ``withheld_prunes``: how many entities ``prune: confirm`` would remove."""

    current: CurrentState
    drift: Drift
    plan: Plan
    withheld_prunes: int = 0
    backtest: BacktestReport | None = None
    """A backtest of the plan, whose predictions stay in the report of a write."""


def observe(intent: Intent, reader: QuotaReader, given: GivenBaseline | None = None, *, clock: Clock) -> Observation:
    """Read once, and compare. Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does."""
    current = read_for(intent, reader)
    source, spec = intent.source(), intent.spec
    drift = drift_from(intent, current, given, source=source)
    withheld = undeclared_in_scope(intent.desired, current.entities, spec.scope) if spec.prune is Prune.CONFIRM else ()
    unattended = replace(intent, attended=False)
    plan = plan_from(unattended, current, accepted=(), source=source, clock=clock, given=given)
    return Observation(current=current, drift=drift, plan=plan, withheld_prunes=len(withheld))


def write_observed(
    intent: Intent, observation: Observation, cluster: QuotaCluster, settings: ApplySettings, *, clock: Clock, progress: Progress
) -> ApplyReport:
    """Write the plan as ``apply`` does, under the same guards.

    Raises ``BackendError``, ``WrongClusterError`` and ``ManifestError``, only when nothing was written.
    """
    stop_on(observation.plan.findings, intent.fail_on)
    approval = Approval(settings=settings)
    predictions: tuple[Prediction, ...] = ()
    if observation.backtest is not None:
        # A backtest of other values than the plan's predicts nothing of it.
        with contextlib.suppress(StalePlanError):
            predictions = predictions_in(observation.backtest, observation.plan)
    report = write(observation.plan, cluster, approval, dialogue=UNASKED, clock=clock, progress=progress)
    return replace(report, facts=replace(report.facts, totals=observation.plan.totals, predictions=predictions))
