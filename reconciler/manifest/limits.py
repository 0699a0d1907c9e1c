"""Stages of a desired state, and the first two: bounds of values, and budgets of owners."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from reconciler.manifest.documents import BudgetRule, ClientQuotasDocument, ValueBounds, ValueLimit
from reconciler.manifest.reading import finding
from reconciler.model import (
    ClusterSpec,
    DesiredEntity,
    DesiredQuota,
    Entity,
    Finding,
    Message,
    QuotaKey,
    QuotaProfile,
    Related,
    compose,
    display_name,
    key_part,
    name_part,
)
from reconciler.text import amount_part, shown_part

Entities: TypeAlias = dict[Entity, DesiredEntity]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterManifests:
    """All that decides what one cluster shall have."""

    documents: Sequence[ClientQuotasDocument]
    """Those for this cluster, in their order."""
    cluster: ClusterSpec
    limits: Sequence[ValueLimit] = ()
    profiles: Sequence[Mapping[str, QuotaProfile]] = ()
    """Those of the repository, then those of the cluster."""
    budgets: Sequence[BudgetRule] = ()
    at: datetime.datetime | None = None
    """The moment that decides about values that expire. ``None``: before every expiry."""


def _without_notes(_: Entities) -> Iterable[Message]:
    return ()


class Stage(NamedTuple):
    """A step from entries to the desired state."""

    applies: Callable[[ClusterManifests, Entities], bool]
    run: Callable[[ClusterManifests, Entities], Iterable[Finding]]
    """Changes the entities, and returns what is wrong."""
    notes: Callable[[Entities], Iterable[Message]] = _without_notes
    """What a reader of the values has to know about them."""


def limit_findings(entities: Iterable[DesiredEntity], limits: Sequence[ValueLimit], cluster: ClusterSpec) -> Iterator[Finding]:
    """Every value, overrides included, that is not within all limits that apply to it on this cluster."""
    here = [limit for limit in limits if limit.clusters is None or limit.clusters.chooses(cluster)]
    for declared in entities if here else ():
        for limit in here:
            if limit.owner is not None and limit.owner != declared.owner:
                continue
            if limit.match is None or limit.match.matches(declared.entity):
                for key, bounds in limit.keys.items():
                    quota = declared.quotas.get(key)
                    if quota is not None:
                        yield from _beyond(declared, key, quota, bounds, limit)


def _beyond(
    declared: DesiredEntity, key: QuotaKey, quota: DesiredQuota, bounds: ValueBounds, limit: ValueLimit
) -> Iterator[Finding]:
    whose = f" of {display_name(limit.owner)}" if limit.owner is not None else ""
    for rule_id, bound, beyond in (
        ("above-limit", bounds.most, bounds.most is not None and quota.value > bounds.most.value),
        ("below-limit", bounds.least, bounds.least is not None and quota.value < bounds.least.value),
    ):
        if bound is not None and beyond:
            direction = rule_id.partition("-")[0]
            message = compose(
                "{key} of {entity} is {quota}, {direction} the limit{whose}, {bound}",
                key=key,
                entity=declared.entity,
                quota=shown_part(quota.text) if quota.unit is None else amount_part(key.value, quota.value),
                direction=direction,
                whose=whose,
                bound=shown_part(bound.text),
            )
            related = [Related(span=bound.source, message="the limit")]
            place = quota.source
            if quota.profile is not None:
                # The entry is wrong: other entries may use the profile.
                related.append(Related(span=quota.source, message=f"the value of profile {display_name(quota.profile)}"))
                place = declared.source
            yield finding(rule_id, message, place, related=related, entity=declared.entity, key=key.value)


LIMITS: Final = Stage(
    applies=lambda manifests, _: bool(manifests.limits),
    run=lambda manifests, entities: limit_findings(entities.values(), manifests.limits, manifests.cluster),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerBudget:
    """The budget of one owner for one key on one cluster, and what its entities have of it on each broker."""

    owner: str
    """The owner."""
    key: QuotaKey
    """The quota key."""
    budget: DesiredQuota
    """What the limits may add up to on each broker."""
    allocated: float = 0.0
    """What they add up to."""
    entities: int = 0
    """How many entities have a limit of this key."""

    @property
    def free(self) -> float:
        """Return the rest of the budget. A negative number is above it."""
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
    """Return how much of each budget its owner's entities use, by owner and key. An entity counts once, also a default."""
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
