"""Which buckets a change merges or splits: who shares a limit with whom, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from reconciler.model import BucketName, Regrouped
from reconciler.resolution import Bucket, Resolved
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.kinds import Kind

_MOST_NAMED: Final = 20

_Place: TypeAlias = tuple[int, Kind, Bucket]


def regroupings(grouping: Grouping) -> Mapping[int, tuple[Regrouped, tuple[BucketName, ...]]]:
    """By target, of those whose clients shared limits otherwise: how, and the limited buckets they come from.

    Who was unlimited shared nothing, and neither does who becomes so.
    """
    targets_of: dict[_Place, set[int]] = {}
    for series, number in enumerate(grouping.target_of_series):
        if grouping.groups[number].before is not None:
            # Its members are those of one earlier bucket, all of them.
            continue
        place = _limited(grouping, number, grouping.before_of_series[series])
        if place is not None:
            targets_of.setdefault(place, set()).add(number)
    places_of: dict[int, list[_Place]] = {}
    for place, numbers in targets_of.items():
        for number in numbers:
            places_of.setdefault(number, []).append(place)
    found = {}
    for index, places in places_of.items():
        target = grouping.targets[index]
        merged, split = len(places) > 1, any(targets_of[place] != {index} for place in places)
        if target.after.value is None or not (merged or split):
            continue
        how = Regrouped.REGROUPED if merged and split else Regrouped.MERGED if merged else Regrouped.SPLIT
        names = sorted(
            {BucketName(user=b.user, client_id=b.client_id, other=b.other) for _, _, b in places if b != target.bucket}
        )
        found[index] = how, tuple(names[:_MOST_NAMED])
    return found


def _limited(grouping: Grouping, target: int, before: Resolved | None) -> _Place | None:
    one = grouping.targets[target]
    return None if one.undecided or before is None or before.value is None else (one.broker, one.kind, before.bucket)
