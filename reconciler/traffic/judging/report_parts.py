"""What a report has beside its rows, as parts of shards that can be joined: counts, worst rows, and entities of quotas.

A part does not grow with the quota groups of its shard, but with the quotas that limit them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from reconciler.model import BucketVerdict, CapacityUse, Entity, Verdict, worst_of_buckets
from reconciler.resolution import QuotaTable
from reconciler.traffic.judging.finding_parts import (
    HitQuota,
    Hits,
    Inconclusive,
    Unkept,
    UnkeptQuota,
    hits_of,
    join_hits,
    join_reasons,
    join_unkept,
    reasons_of,
)
from reconciler.traffic.judging.findings import UnkeptLimits
from reconciler.traffic.judging.grouping import Grouping, Series, Tables, has_unlimited
from reconciler.traffic.judging.judged_quotas import (
    Quota,
    UsedQuotas,
    limiting_entities,
    rows_of_quotas,
    states_of_quotas,
    used_quotas,
)
from reconciler.traffic.judging.recommendations import LimitedRows, capacity_uses, join_limited, join_uses, rows_of_limits
from reconciler.traffic.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportParts:
    """Of the rows of some quota groups, on all of their brokers.

    ``groups``: how many quota groups there are, by whether the change touches them and the verdict of the worst row.
    """

    series: int
    rows: int
    is_unlimited: bool
    groups: Mapping[tuple[bool, Verdict], int]
    hits: Mapping[HitQuota, Hits]
    unkept: Mapping[UnkeptQuota, Unkept]
    reasons: Mapping[str, Inconclusive]
    limited: Mapping[tuple[Entity, str], LimitedRows]
    capacity: tuple[CapacityUse, ...]
    limiting: Mapping[Kind, frozenset[Entity]]
    used: Mapping[Kind, UsedQuotas]
    states: Mapping[Quota, frozenset[Verdict]]

    @classmethod
    def of(
        cls,
        verdicts: Sequence[BucketVerdict],
        unkept: UnkeptLimits,
        series: Sequence[Series],
        grouping: Grouping,
        tables: Sequence[Tables],
        *,
        proposed: QuotaTable,
        changed: Collection[Quota],
        capacity: Mapping[str, float],
    ) -> Self:
        """``verdicts``: worst first. ``tables``: those of before, if known, and of after. ``changed``: quotas that differ."""
        return cls(
            series=len(series),
            rows=len(verdicts),
            is_unlimited=has_unlimited(grouping),
            groups=Counter((group.changed, group.verdict) for group in worst_of_buckets(verdicts)),
            hits=hits_of(verdicts),
            unkept=unkept.worst(verdicts, grouping),
            reasons=reasons_of(verdicts),
            limited=rows_of_limits(verdicts),
            capacity=capacity_uses(grouping, capacity),
            limiting=limiting_entities(series, grouping, tables),
            used=used_quotas(series, proposed, tables[-1]),
            states=states_of_quotas(changed, rows_of_quotas(series, grouping, tables), verdicts),
        )

    @classmethod
    def join(cls, parts: Iterable[ReportParts]) -> ReportParts:
        """Of shards, no two of which have rows of one quota group."""
        some = list(parts)
        return cls(
            series=sum(part.series for part in some),
            rows=sum(part.rows for part in some),
            is_unlimited=any(part.is_unlimited for part in some),
            groups=_counts(part.groups for part in some),
            hits=join_hits(part.hits for part in some),
            unkept=join_unkept(part.unkept for part in some),
            reasons=join_reasons(part.reasons for part in some),
            limited=join_limited(part.limited for part in some),
            capacity=join_uses(part.capacity for part in some),
            limiting=_union(part.limiting for part in some),
            used=_used(part.used for part in some),
            states=_union(part.states for part in some),
        )


def _counts(parts: Iterable[Mapping[tuple[bool, Verdict], int]]) -> Counter[tuple[bool, Verdict]]:
    counts = Counter[tuple[bool, Verdict]]()
    for part in parts:
        counts.update(part)
    return counts


Key = TypeVar("Key")
Value = TypeVar("Value")


def _union(parts: Iterable[Mapping[Key, frozenset[Value]]]) -> dict[Key, frozenset[Value]]:
    union: dict[Key, set[Value]] = {}
    for key, values in itertools.chain.from_iterable(part.items() for part in parts):
        union.setdefault(key, set()).update(values)
    return {key: frozenset(values) for key, values in union.items()}


def _used(parts: Iterable[Mapping[Kind, UsedQuotas]]) -> dict[Kind, UsedQuotas]:
    some = list(parts)
    winning = _union({kind: used.winning for kind, used in part.items()} for part in some)
    hidden = _union({kind: used.hidden for kind, used in part.items()} for part in some)
    return {kind: UsedQuotas(winning[kind], hidden[kind]) for kind in winning}
