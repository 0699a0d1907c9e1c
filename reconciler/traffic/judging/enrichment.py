"""What a verdict says beside its counts: who shared before, what to write, and whether the history shows enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from reconciler.model import CONTROLLER, BucketName, BucketVerdict, HistoryNeeds, Provenance, Regrouped, Verdict
from reconciler.resolution import Bucket, Resolved
from reconciler.traffic.judging.assumptions import judged_by_logged_time
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.judging.history_gaps import judged_by_history
from reconciler.traffic.judging.recommendations import recommended
from reconciler.traffic.judging.verdicts import worst_first
from reconciler.traffic.kinds import KEY_OF_KIND, Kind

_CENSORED_SHARE: Final = 0.01
"""Of the requests, those that were throttled when recorded, from which on a recommendation is called a lower bound."""
_DAY_S: Final = 86_400

_Row: TypeAlias = tuple[object, ...]


def enrich_verdicts(
    verdicts: Sequence[BucketVerdict], grouping: Grouping, provenance: Provenance, needs: HistoryNeeds
) -> tuple[BucketVerdict, ...]:
    """The same verdicts with everything that the report says of them, worst first."""
    target_of, moved = target_numbers(grouping), regroupings(grouping)
    found = []
    for one in verdicts:
        how = None if one.undecided else moved.get(target_of[row_of(one)])
        found.append(one if how is None else replace(one, regrouped=how[0], buckets_before=how[1]))
    days = (provenance.end - provenance.start).total_seconds() / _DAY_S
    held_back = provenance.throttled_then + provenance.censored
    advised = recommended(
        found,
        days=days,
        censored=held_back > _CENSORED_SHARE * provenance.requests,
        brokers=sum(one.broker != CONTROLLER for one in provenance.coverage),
        source=provenance.source,
    )
    logged = judged_by_logged_time(advised, provenance.source)
    return tuple(sorted(judged_by_history(logged, provenance, needs), key=worst_first))


def worth_a_plot(verdicts: Sequence[BucketVerdict], most: int) -> tuple[BucketVerdict, ...]:
    """The worst of those that the change touches, or that are over a limit."""
    return tuple(
        [one for one in verdicts if (one.changed or one.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)) and not one.undecided][
            :most
        ]
    )


def target_numbers(grouping: Grouping) -> Mapping[_Row, int]:
    """By row of the report, of those whose clients are known."""
    return {
        (KEY_OF_KIND[target.kind].value, target.broker, target.bucket.user, target.bucket.client_id, target.bucket.other): number
        for number, target in enumerate(grouping.targets)
        if not target.undecided
    }


def row_of(one: BucketVerdict) -> _Row:
    """What tells the rows of a report apart, of those whose clients are known."""
    return one.key, one.broker, one.user, one.client_id, one.tags


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
