"""What a report has beside its rows, as parts of shards that are merged: counts, worst rows, and entities of quotas.

A local run is one shard. A part does not grow with the quota groups of its shard, but with the quotas that limit them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from reconciler.model import BucketVerdict, CapacityUse, Entity, RowPlace, Verdict, worst_of_buckets
from reconciler.traffic.backtest_request import BacktestRequest
from reconciler.traffic.judging.finding_parts import (
    HitQuota,
    Hits,
    Inconclusive,
    Unkept,
    UnkeptQuota,
    hits_of,
    reasons_of,
)
from reconciler.traffic.judging.findings import UnkeptLimits
from reconciler.traffic.judging.grouping import has_unlimited
from reconciler.traffic.judging.judged_quotas import (
    Quota,
    UsedQuotas,
    changed_quotas,
    limiting_entities,
    rows_of_quotas,
    states_of_quotas,
    used_quotas,
)
from reconciler.traffic.judging.recommendations import BrokerKind, LimitedRows, capacity_uses, rows_of_limits
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind
from reconciler.traffic.quota_groups import QuotaGroups

Key = TypeVar("Key")
Value = TypeVar("Value")


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
    capacity: Mapping[BrokerKind, CapacityUse]
    limiting: Mapping[Kind, frozenset[Entity]]
    used: Mapping[Kind, UsedQuotas]
    states: Mapping[Quota, frozenset[Verdict]]

    @classmethod
    def of(
        cls,
        verdicts: Sequence[BucketVerdict],
        groups: QuotaGroups,
        question: BacktestRequest,
        of_metrics: Mapping[Quota, Collection[RowPlace]],
    ) -> Self:
        """``verdicts``: worst first. ``of_metrics``: the rows of quotas that limit clients of metrics, before or after."""
        series, grouping, tables, calls_back = groups.series, groups.grouping, groups.tables, question.calls_back
        limiting = limiting_entities(series, grouping, tables, calls_back=calls_back)
        # Which quota a callback computed a limit from is its own affair.
        used = {} if calls_back else used_quotas(series, question.proposed, tables[-1])
        rows = {} if calls_back else rows_of_quotas(series, grouping, tables)
        for (entity, key), places in of_metrics.items():
            rows.setdefault((entity, key), set()).update(places)
        for kind, key in KEY_OF_KIND.items():
            entities = frozenset(entity for entity, of_key in of_metrics if of_key == key)
            if entities and kind in limiting:
                limiting[kind] |= entities
            if entities and (kind in used or kind in BYTES):
                used[kind] = used.get(kind, UsedQuotas()).joined(UsedQuotas(winning=entities))
        return cls(
            series=len(series),
            rows=len(verdicts),
            is_unlimited=has_unlimited(grouping),
            groups=Counter((group.changed, group.verdict) for group in worst_of_buckets(verdicts)),
            hits=hits_of(verdicts),
            unkept=UnkeptLimits.of(series, grouping, question.broker.window).worst(verdicts, grouping),
            reasons=reasons_of(verdicts),
            limited=rows_of_limits(verdicts),
            capacity=capacity_uses(grouping, question.capacity),
            limiting=limiting,
            used=used,
            states=states_of_quotas(changed_quotas(*question.change), rows, verdicts),
        )

    @classmethod
    def merge(cls, parts: Iterable[ReportParts]) -> ReportParts:
        """Of shards, no two of which have rows of one quota group."""
        some = list(parts)
        return cls(
            series=sum(part.series for part in some),
            rows=sum(part.rows for part in some),
            is_unlimited=any(part.is_unlimited for part in some),
            groups=_merged((part.groups for part in some), int.__add__),
            hits=_merged((part.hits for part in some), Hits.joined),
            unkept=_merged((part.unkept for part in some), Unkept.joined),
            reasons=_merged((part.reasons for part in some), Inconclusive.joined),
            limited=_merged((part.limited for part in some), LimitedRows.joined),
            capacity=_merged((part.capacity for part in some), CapacityUse.joined),
            limiting=_merged((part.limiting for part in some), frozenset.union),
            used=_merged((part.used for part in some), UsedQuotas.joined),
            states=_merged((part.states for part in some), frozenset.union),
        )


def _merged(parts: Iterable[Mapping[Key, Value]], join: Callable[[Value, Value], Value]) -> dict[Key, Value]:
    whole: dict[Key, Value] = {}
    for key, value in itertools.chain.from_iterable(part.items() for part in parts):
        whole[key] = join(whole[key], value) if key in whole else value
    return whole
