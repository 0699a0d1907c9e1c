"""One look of the long-running reconciler at a cluster: drift and plan from a single read, and the write that may follow.

Nobody is there to say yes, so what needs a person is left alone: ``prune: confirm`` counts as ``never`` here, and how many
entities it would remove is told. Only ``prune: always`` removes.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.apply import ApplySettings
from reconciler.model import ApplyReport, CurrentState, Drift, Plan, Prune
from reconciler.planning import difference
from reconciler.policy import in_manifest
from reconciler.ports import Clock, Progress, QuotaCluster, QuotaReader
from reconciler.workflows.apply import Approval, write
from reconciler.workflows.baselines import GivenBaseline
from reconciler.workflows.connect import check_cluster_id
from reconciler.workflows.drift import find_drift
from reconciler.workflows.load import stop_on
from reconciler.workflows.plan import Intent, plan_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one read of the cluster showed. ``held_back``: entities that ``prune: confirm`` would remove if a person said yes."""

    drift: Drift
    plan: Plan
    held_back: int = 0


def look(intent: Intent, reader: QuotaReader, given: GivenBaseline | None = None, *, clock: Clock) -> Sight:
    """Read once, and compare. Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does."""
    current = reader.current_state()
    check_cluster_id(intent.spec, current.cluster)
    drift = find_drift(intent, _AlreadyRead(current), given)
    held_back = 0
    confirms = intent.spec.prune is Prune.CONFIRM
    if confirms:
        held_back = _would_go(intent, current)
    plan = plan_from(intent, current, accepted=(), clock=clock, given=given, prunes=not confirms, advice=in_manifest)
    return Sight(drift=drift, plan=plan, held_back=held_back)


def write_seen(
    intent: Intent, sight: Sight, cluster: QuotaCluster, settings: ApplySettings, *, clock: Clock, progress: Progress
) -> ApplyReport:
    """Write the plan as ``apply`` does, under the same guards. Raises as it: only when nothing was written."""
    stop_on(sight.plan.findings, intent.fail_on)
    approval = Approval(settings=settings)
    return write(sight.plan, cluster, approval, confirm=lambda _: True, clock=clock, progress=progress)


class _AlreadyRead:
    """A ``QuotaReader`` of a state that is known."""

    def __init__(self, current: CurrentState) -> None:
        self._current = current

    def current_state(self) -> CurrentState:
        """What was read."""
        return self._current


def _would_go(intent: Intent, current: CurrentState) -> int:
    found = difference(intent.desired, current, scope=intent.spec.scope, prune=Prune.CONFIRM)
    return sum(1 for change in found.changes if change.entity not in intent.desired.entities)
