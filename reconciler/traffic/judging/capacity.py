"""What brokers would have to do if everybody recorded there used the whole limit at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.model import CapacityUse
from reconciler.resolution import Bucket
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.kinds import KEY_OF_KIND, Kind


@dataclass(slots=True)
class _Sum:
    limits: float = 0.0
    buckets: int = 0
    unlimited: int = 0

    def add(self, limit: float | None) -> None:
        if limit is None:
            self.unlimited += 1
        else:
            self.limits += limit
            self.buckets += 1


def capacity_uses(grouping: Grouping, capacity: Mapping[str, float]) -> tuple[CapacityUse, ...]:
    """For each broker and each key that has a capacity, in order; a bucket counts where it has recorded clients."""
    return tuple(_uses(grouping, capacity)) if capacity else ()


def _uses(grouping: Grouping, capacity: Mapping[str, float]) -> Iterator[CapacityUse]:
    after: dict[tuple[int, Kind], _Sum] = {}
    before: dict[tuple[int, Kind], _Sum] = {}
    seen: set[tuple[int, Kind, Bucket]] = set()
    for target in grouping.targets:
        if target.undecided:
            continue
        after.setdefault((target.broker, target.kind), _Sum()).add(target.after.value)
        for member in target.members:
            earlier = grouping.before_of_series[member]
            if earlier is None or (target.broker, target.kind, earlier.bucket) in seen:
                continue
            seen.add((target.broker, target.kind, earlier.bucket))
            before.setdefault((target.broker, target.kind), _Sum()).add(earlier.value)
    for (broker, kind), found in sorted(after.items(), key=lambda item: (item[0][0], item[0][1].value)):
        key = KEY_OF_KIND[kind].value
        if key in capacity:
            known = before.get((broker, kind))
            yield CapacityUse(
                broker=broker,
                key=key,
                capacity=capacity[key],
                before=known.limits if known else None,
                after=found.limits,
                buckets=found.buckets,
                unlimited=found.unlimited,
            )
