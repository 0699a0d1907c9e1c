"""Which values are proposed: inside the limits and the budget of their owner, and one for all that share a value. Pure."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reconciler.features.rightsizing.sizing import LEAST_CHANGE, WEEKS, SizedQuota, Sizing
from reconciler.formats import declarable
from reconciler.manifest import allocations, budgets_of
from reconciler.model import DesiredEntity, QuotaKey, Span, ValueType, display_name
from reconciler.text import count_of, list_some, percent_text, rate
from reconciler.traffic import safe_limit

if TYPE_CHECKING:
    from reconciler.workflows import Intent

_MOST_NAMED: Final = 3
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBounds:
    """What a change has to keep."""

    intent: Intent
    """What is declared for the cluster."""
    end: datetime.datetime
    """The end of the history, UTC."""
    shared: Mapping[Span, tuple[str, ...]]
    """The other clusters that take a value from a place."""
    changed_at: Callable[[Span], datetime.datetime | None]
    """When the value at a place was written. ``None``: not known."""

    def entity(self, quota: SizedQuota) -> DesiredEntity:
        """Return what the manifests declare for the entity of a quota."""
        return self.intent.desired.entities[quota.entity]


def propose(quotas: Sequence[SizedQuota], bounds: ChangeBounds) -> tuple[SizedQuota, ...]:
    """Return the quotas in another order, each with the value that is written or the reason why none is.

    One value in a manifest gets one new value, for all that share it.
    """
    places: dict[Span, list[SizedQuota]] = {}
    for quota in quotas:
        places.setdefault(quota.source, []).append(quota)
    settled = [_settle(some, bounds) for some in places.values()]
    return tuple(quota for some in _accept(settled, bounds) for quota in some)


def _settle(quotas: list[SizedQuota], bounds: ChangeBounds) -> list[SizedQuota]:
    """Give one value to all that take theirs from one place: the largest raise, or what all can be lowered to."""
    is_raise = any(quota.sizing is Sizing.RAISE and quota.value is not None for quota in quotas)
    direction = Sizing.RAISE if is_raise else Sizing.LOWER
    wanted = [quota for quota in quotas if quota.value is not None and quota.sizing is direction]
    if not wanted:
        return quotas
    neediest = max(wanted, key=lambda quota: (quota.value, quota.entity.sort_key))
    value, left = neediest.value or 0.0, _unchangeable(quotas, bounds, is_raise=is_raise)
    if left is None and not is_raise and len(wanted) < len(quotas):
        others = [str(quota.entity) for quota in quotas if quota.sizing is not direction]
        left = f"the value is also that of {list_some(others, _MOST_NAMED)}, which a lower one may not fit"
    if left is None:
        value, left = _within_bounds(value, quotas, is_raise=is_raise, bounds=bounds)
    if left is not None:
        return [quota if quota.value is None else replace(quota, left=left) for quota in quotas]
    why = ". The limits of its owner allow no more" if value < (neediest.value or 0.0) else ""
    if clusters := bounds.shared.get(neediest.source):
        why += f". The limit rises on {_named(clusters)} too"
    return [
        replace(
            quota,
            value=value,
            sizing=Sizing.FITS if quota.sizing is Sizing.LOWER and is_raise else quota.sizing,
            reason=f"{quota.reason}{_sharing(quota, neediest)}{why if quota.sizing is direction else ''}",
        )
        for quota in quotas
    ]


def _sharing(quota: SizedQuota, neediest: SizedQuota) -> str:
    """Return whose use decides about a value that several quotas take from one place, as a further sentence."""
    if quota is neediest:
        return ""
    needed = rate(neediest.key.value, neediest.value or 0.0)
    return f". {neediest.entity} takes its value from the same place, and needs {needed}"


def _named(clusters: Sequence[str]) -> str:
    return list_some([display_name(name) for name in clusters], _MOST_NAMED)


def _unchangeable(quotas: Sequence[SizedQuota], bounds: ChangeBounds, *, is_raise: bool) -> str | None:
    first = quotas[0]
    excluded = next((quota for quota in quotas if quota.sizing is Sizing.EXCLUDED), None)
    if excluded is not None:
        return f"the value is also that of {excluded.entity}, which the manifest excludes"
    if not is_raise and (clusters := bounds.shared.get(first.source)):
        return f"the value also applies on {_named(clusters)}, which a lower one may not fit. Add an override for this cluster"
    if any(first.key in bounds.entity(quota).expiries for quota in quotas):
        return "the value expires, or follows one that expired. Change it by hand"
    if any(bounds.entity(quota).quotas[first.key].unit is not None for quota in quotas):
        return "the value is computed from a total or a share. Change that by hand"
    return None


def _within_bounds(
    value: float, quotas: Sequence[SizedQuota], *, is_raise: bool, bounds: ChangeBounds
) -> tuple[float, str | None]:
    """The value inside the limits of all its owners, and no deeper than the guard of large reductions allows."""
    limit, key = quotas[0].limit, quotas[0].key
    if not is_raise:
        least_kept = bounds.intent.spec.safety.guards.large_reduction.of(key.value)
        value = max(value, safe_limit(key, limit * least_kept)[0])
    ranges = [_range_of(quota, bounds) for quota in quotas]
    least, most = max(low for low, _ in ranges), min(high for _, high in ranges)
    value = min(max(value, least), most)
    if is_raise and value < limit * (1 + LEAST_CHANGE) and value == most:
        return value, f"the limits of its owner allow {rate(key.value, most)} at most. Raise that first"
    if not is_raise and value > limit * (1 - LEAST_CHANGE):
        return value, f"a value that is allowed would be less than {percent_text(LEAST_CHANGE, digits=0)} below the limit"
    if not declarable(key, value):
        return value, "a manifest cannot declare the value"
    return value, None


def _range_of(quota: SizedQuota, bounds: ChangeBounds) -> tuple[float, float]:
    least, most = 0.0, math.inf
    intent = bounds.intent
    for limit in intent.loaded.repository.limits:
        known = limit.keys.get(quota.key)
        if known is None or limit.owner not in (None, quota.owner) or (limit.match and not limit.match.matches(quota.entity)):
            continue
        if limit.clusters is None or limit.clusters.chooses(intent.spec):
            least = max(least, known.least.value if known.least is not None else least)
            most = min(most, known.most.value if known.most is not None else most)
    return least, most


def _accept(settled: Iterable[list[SizedQuota]], bounds: ChangeBounds) -> Iterator[list[SizedQuota]]:
    """The worst first: as many as an owner gets at once, and as its budget has room for."""
    intent = bounds.intent
    rules = intent.loaded.repository.rightsize
    budgets = budgets_of(intent.loaded.repository.budgets, intent.spec)
    free = {(each.owner, each.key): each.free for each in allocations(budgets, intent.desired.entities.values())}
    count: Counter[str | None] = Counter()
    for quotas in sorted(settled, key=lambda some: min(quota.urgency for quota in some)):
        if not any(quota.is_proposed for quota in quotas):
            yield quotas
            continue
        owner = owner_of_change(quotas)
        left = _recent_change(quotas, bounds)
        if count[owner] >= rules.changes:
            verb = "comes" if rules.changes == 1 else "come"
            left = f"{count_of(rules.changes, 'change')} of its owner {verb} first"
        value = next(quota.value or 0.0 for quota in quotas if quota.value is not None)
        less = value
        if left is None:
            less, left = _within_budget(value, quotas, free)
        count[owner] += left is None
        more = ". The budget of its owner has no room for more" if less < value else ""
        yield [
            quota if quota.value is None else replace(quota, value=less, left=left, reason=f"{quota.reason}{more}")
            for quota in quotas
        ]


def _recent_change(quotas: Sequence[SizedQuota], bounds: ChangeBounds) -> str | None:
    changed = bounds.changed_at(quotas[0].source)
    if changed is None or bounds.end - changed >= WEEKS:
        return None
    return f"the value was changed on {changed:%Y-%m-%d}, and two whole weeks of traffic decide about it"


def owner_of_change(quotas: Sequence[SizedQuota]) -> str | None:
    """Return the one owner that declares all of them. ``None``: several owners, or none."""
    owners = {quota.owner for quota in quotas}
    return owners.pop() if len(owners) == 1 else None


def _within_budget(
    value: float, quotas: Sequence[SizedQuota], free: dict[tuple[str, QuotaKey], float]
) -> tuple[float, str | None]:
    """Return a smaller raise where a budget has no room for all of it, or the reason why there is none.

    ``free``: by owner and key, in the unit of the key. What is lowered counts in the next run.
    """
    limit, key = quotas[0].limit, quotas[0].key
    if value <= limit:
        return value, None
    sharing = Counter(quota.owner or "" for quota in quotas)
    for owner, count in sharing.items():
        room = max(free.get((owner, key), math.inf), 0.0)
        if (value - limit) * count > room:
            less = _rounded_down(key, limit + room / count)
            if less < limit * (1 + LEAST_CHANGE):
                words = f"the budget of {display_name(owner)} has {rate(key.value, room)} left"
                return value, f"{words}. Lower another of its limits, or ask for a larger budget"
            value = less
    for owner, count in sharing.items():
        if (owner, key) in free:
            free[owner, key] -= (value - limit) * count
    return value, None


def _rounded_down(key: QuotaKey, value: float) -> float:
    """A value that a manifest can declare, and a short text."""
    if key.is_bytes:
        return float(value // _KIB * _KIB) if value >= _KIB else float(int(value))
    return float(int(value)) if key.value_type is ValueType.INT else math.floor(value * 10) / 10
