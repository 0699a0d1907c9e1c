"""Apply to many clusters: stage by stage, some at a time within a stage, and no further after the first failure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from reconciler.errors import UsageError
from reconciler.model import ApplyReport, ApplyResult, ClusterFailure, ClusterIdentity, display_name
from reconciler.text import count_of, list_some
from reconciler.workflows.every_cluster import for_every
from reconciler.workflows.intent import Intent

STAGE_LABEL: Final = "stage"
_MOST_NAMED: Final = 5
_GOOD: Final = (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO)

RolloutResult: TypeAlias = ApplyReport | ClusterFailure
Stage: TypeAlias = tuple[Intent | ClusterFailure, ...]
Withheld: TypeAlias = Mapping[str | None, str]
"""Owners that an earlier stage withheld, with the cluster where it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """Stages in their order with their clusters; one stage without a name where the Repository manifest has none."""

    names: tuple[str | None, ...]
    stages: tuple[Stage, ...]


def plan_rollout(intents: Sequence[Intent | ClusterFailure]) -> RolloutPlan:
    """Sort clusters into ``stages`` of the Repository manifest, by their label ``stage``.

    Raises ``UsageError`` when a cluster has no such label, or one that is not among the stages. A cluster with errors in its
    manifests is in the first stage, so that nothing is written before it is corrected.
    """
    names = next((stages for intent in intents if isinstance(intent, Intent) and (stages := intent.loaded.repository.stages)), ())
    if not names:
        return RolloutPlan(names=(None,), stages=(tuple(intents),))
    unknown = [
        display_name(intent.spec.name)
        for intent in intents
        if isinstance(intent, Intent) and intent.spec.name and intent.spec.labels.get(STAGE_LABEL) not in names
    ]
    if unknown:
        raise UsageError(
            f"{count_of(len(unknown), 'cluster')} of no stage: {list_some(unknown, _MOST_NAMED)}. Give each the label "
            f"{STAGE_LABEL} with one of {list_some(list(names), _MOST_NAMED)}"
        )
    by_stage: dict[str, list[Intent | ClusterFailure]] = {name: [] for name in names}
    for intent in intents:
        name = intent.spec.labels[STAGE_LABEL] if isinstance(intent, Intent) else names[0]
        by_stage[name].append(intent)
    return RolloutPlan(names=names, stages=tuple(tuple(by_stage[name]) for name in names))


@dataclass(slots=True)
class Rollout:
    """One run over all stages. ``keep_going``: a failure stops nothing. ``parallel``: how many clusters at once."""

    work: Callable[[Intent, Withheld], ApplyReport]
    ended: Callable[[str | None, RolloutResult], None]
    """Called with each result as soon as it is there, one at a time."""
    parallel: int = 1
    keep_going: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    """Set after the first failure; then no further cluster is begun."""
    stop_wanted: Callable[[], bool] = lambda: False
    """True after a signal: no further cluster is begun. Those that are being written ask it, too."""
    _failed: str | None = None

    def run(self, planned: RolloutPlan) -> tuple[RolloutResult, ...]:
        """Each cluster's result, in the order of the stages."""
        results: list[RolloutResult] = []
        withheld: dict[str | None, str] = {}
        for name, stage in zip(planned.names, planned.stages, strict=True):
            of_stage = for_every(
                stage,
                partial(self._write, earlier=dict(withheld)),
                parallel=self.parallel,
                done=partial(self._note, name),
            )
            results += of_stage
            for result in of_stage:
                if isinstance(result, ApplyReport):
                    withheld.update({each.owner: display_name(result.cluster.name or "") for each in result.withheld})
        return tuple(results)

    def _write(self, intent: Intent, *, earlier: Withheld) -> RolloutResult:
        if self.stop.is_set() or self.stop_wanted():
            return _not_begun(intent.spec.name, intent.spec.cluster_id, self._failed)
        return self.work(intent, earlier)

    def _note(self, stage: str | None, result: RolloutResult) -> None:
        if is_failure(result) and not (self.keep_going or self.stop.is_set() or self.stop_wanted()):
            self._failed = result.cluster.name
            self.stop.set()
        self.ended(stage, result)


NOT_BEGUN: Final = "not-begun"


def _not_begun(name: str | None, cluster_id: str | None, failed: str | None) -> ClusterFailure:
    after = f"cluster {display_name(failed)} failed before" if failed else "the run was stopped before"
    return ClusterFailure(
        cluster=ClusterIdentity(name=name, id=cluster_id), failure_reason=NOT_BEGUN, message=f"not begun: {after}", skipped=True
    )


def is_failure(result: RolloutResult) -> bool:
    """True for a result that stops a rollout. Withheld owners do not: they stay withheld in later stages."""
    if isinstance(result, ClusterFailure):
        return not result.skipped
    only_withheld = bool(result.withheld) and not result.outcomes and result.result is ApplyResult.REFUSED
    return result.result not in _GOOD and not only_withheld
