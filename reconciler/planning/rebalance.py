"""Values that change because brokers came or went: parts of a total, computed for another number of brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reconciler.model import (
    Change,
    ClusterTotal,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    Proportional,
    QuotaKey,
    Quotas,
    QuotaUnit,
)

MOST_BROKERS: Final = 1000
"""A value is compared with the parts for at most so many brokers."""


def brokers_of_part(unit: QuotaUnit | None, value: float | None) -> int | None:
    """For how many brokers a value on the cluster is the part of this total, if for another number than now.

    The whole total is not a part: a limit of 10 MiB/s that becomes a total of 10 MiB/s is a change of the author.
    """
    if not isinstance(unit, ClusterTotal) or value is None or not 0 < value < unit.value:
        return None
    total = int(unit.value)
    count = int(total // value)
    return count if 2 <= count <= MOST_BROKERS and count != unit.brokers and total // count == value else None


def keep_parts(desired: DesiredState, live: Mapping[Entity, Quotas]) -> tuple[DesiredState, int]:
    """The state with the cluster's own value where it is the part of the same total for another number of brokers.

    The number of such values is the second result.
    """
    kept = 0
    entities: dict[Entity, DesiredEntity] = {}
    for entity, declared in desired.entities.items():
        present = live.get(entity)
        if present is None:
            continue
        parts = {key: part for key, quota in declared.quotas.items() if (part := _kept(key, quota, present)) is not None}
        if parts:
            kept += len(parts)
            entities[entity] = replace(declared, quotas={**declared.quotas, **parts})
    return (replace(desired, entities={**desired.entities, **entities}), kept) if kept else (desired, 0)


def keep_leader_parts(desired: DesiredState, live: Mapping[Entity, Quotas]) -> tuple[DesiredState, int]:
    """The state with the cluster's own value where it is the part of the same total for other leaders of as many partitions.

    The number of such values is the second result. Units of kept values have no leaders.
    """
    kept = 0
    entities: dict[Entity, DesiredEntity] = {}
    for entity, declared in desired.entities.items():
        present = live.get(entity, {})
        parts = {
            key: replace(quota, value=value, unit=replace(quota.unit, leaders=None, partitions=None))
            for key, quota in declared.quotas.items()
            if isinstance(quota.unit, Proportional)
            and (value := present.get(key.value)) is not None
            and value != quota.value
            and is_leader_part(quota.unit, value)
        }
        if parts:
            kept += len(parts)
            entities[entity] = replace(declared, quotas={**declared.quotas, **parts})
    return (replace(desired, entities={**desired.entities, **entities}), kept) if kept else (desired, 0)


def is_leader_part(unit: Proportional, value: float) -> bool:
    """Whether a value is the rounded part of this total for some number of its partitions."""
    if not unit.partitions or not 0 < value <= unit.value or not value.is_integer():
        return False
    total = int(unit.value)
    led = -(-int(value) * unit.partitions // total)
    return led <= unit.partitions and total * led // unit.partitions == value


def _kept(key: QuotaKey, quota: DesiredQuota, present: Quotas) -> DesiredQuota | None:
    if not isinstance(quota.unit, ClusterTotal):
        return None
    value = present.get(key.value)
    count = brokers_of_part(quota.unit, value)
    if count is None or value is None:
        return None
    return replace(quota, value=value, unit=replace(quota.unit, brokers=count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """Changes of one key for the same reason. ``values``: how many; ``before``: for how many brokers they were computed."""

    before: int
    now: int
    values: int

    @property
    def more(self) -> bool:
        """True when fewer brokers share a total, so that each of them allows more."""
        return self.now < self.before


def rebalances(changes: Iterable[Change]) -> tuple[Rebalance, ...]:
    """How many values of a plan change because of the number of brokers, by that number before."""
    counts: dict[tuple[int, int], int] = {}
    for change in changes:
        for key in change.keys:
            if key.brokers_before is not None and isinstance(key.unit, ClusterTotal) and key.unit.brokers is not None:
                pair = key.brokers_before, key.unit.brokers
                counts[pair] = counts.get(pair, 0) + 1
    return tuple(Rebalance(before=before, now=now, values=count) for (before, now), count in sorted(counts.items()))
