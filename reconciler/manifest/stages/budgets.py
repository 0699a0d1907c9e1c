"""Budgets of owners: which applies on a cluster, how much of it is allocated, and who is above it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.manifest.collector import finding
from reconciler.manifest.documents import BudgetRule
from reconciler.manifest.stages.stage import Stage
from reconciler.model import (
    ClusterSpec,
    DesiredEntity,
    DesiredQuota,
    Finding,
    QuotaKey,
    Related,
    compose,
    display_name,
    key_part,
    name_part,
)
from reconciler.text import amount_part


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerBudget:
    """The budget of one owner for one key on one cluster, and what its entities have of it on each broker."""

    owner: str
    key: QuotaKey
    budget: DesiredQuota
    allocated: float = 0.0
    entities: int = 0

    @property
    def free(self) -> float:
        """What is left; negative above the budget."""
        return self.budget.value - self.allocated


def budgets_of(budgets: Iterable[BudgetRule], cluster: ClusterSpec) -> dict[tuple[str, QuotaKey], DesiredQuota]:
    """The budget of each owner and key on a cluster: the smallest of all that are for it."""
    chosen: dict[tuple[str, QuotaKey], DesiredQuota] = {}
    for budget in budgets:
        if budget.clusters is not None and not budget.clusters.chooses(cluster):
            continue
        for key, quota in budget.quotas.items():
            known = chosen.get((budget.owner, key))
            if known is None or quota.value < known.value:
                chosen[budget.owner, key] = quota
    return chosen


def allocations(
    budgets: Mapping[tuple[str, QuotaKey], DesiredQuota], entities: Iterable[DesiredEntity]
) -> tuple[OwnerBudget, ...]:
    """How much of each budget the entities of its owner have, by owner and key. An entity counts once, also a default."""
    if not budgets:
        return ()
    values: dict[tuple[str, QuotaKey], list[float]] = {place: [] for place in budgets}
    for declared in entities:
        if declared.owner is not None:
            for key, quota in declared.quotas.items():
                if (declared.owner, key) in values:
                    values[declared.owner, key].append(quota.value)
    return tuple(
        OwnerBudget(owner=owner, key=key, budget=budgets[owner, key], allocated=math.fsum(some), entities=len(some))
        for (owner, key), some in sorted(values.items())
    )


def budget_findings(
    budgets: Mapping[tuple[str, QuotaKey], DesiredQuota], entities: Sequence[DesiredEntity], cluster: ClusterSpec
) -> Iterator[Finding]:
    """Owners above their budgets, at the entity in the order of the manifests with which the sum is above it."""
    above = {(each.owner, each.key): each for each in allocations(budgets, entities) if each.free < 0}
    sums = dict.fromkeys(above, 0.0)
    for declared in entities if above else ():
        for key, quota in declared.quotas.items():
            place = declared.owner or "", key
            allocation = above.get(place)
            if allocation is None:
                continue
            sums[place] += quota.value
            if sums[place] > allocation.budget.value:
                del above[place]
                yield _above(declared, quota, allocation, cluster)


def _above(declared: DesiredEntity, quota: DesiredQuota, allocation: OwnerBudget, cluster: ClusterSpec) -> Finding:
    key = allocation.key.value
    message = compose(
        "{owner} has {allocated} of {key} on each broker of {cluster}, {more} more than its budget of {budget}. Lower limits of "
        "the owner, or ask for a larger budget",
        owner=name_part(display_name(allocation.owner)),
        allocated=amount_part(key, allocation.allocated),
        key=key_part(key),
        cluster=name_part(f"cluster {display_name(cluster.name)}" if cluster.name else "the cluster"),
        more=amount_part(key, -allocation.free),
        budget=amount_part(key, allocation.budget.value),
    )
    related = [Related(span=allocation.budget.source, message="the budget")]
    place = declared.source if quota.profile is not None else quota.source
    return finding("above-budget", message, place, related=related, entity=declared.entity, key=key)


BUDGETS: Final = Stage(
    applies=lambda manifests, _: bool(manifests.budgets),
    run=lambda manifests, entities: budget_findings(
        budgets_of(manifests.budgets, manifests.cluster), tuple(entities.values()), manifests.cluster
    ),
)
