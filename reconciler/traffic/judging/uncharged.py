"""Recorded rows that could not be charged: what is missing of a quota group is never taken for nothing.

A line of the night of a clock change has two times, and a topic may have been deleted without a line that shows its partitions.
Such rows are counted for each client. Their quota groups are not clear, and get no value to write, since all that is known of
them is too little. A group that is throttled by what was charged stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model import BucketVerdict, PeakBound, PeakRate, RecordedGroup, SecondsOver, Verdict
from reconciler.text import count_of
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.verdicts import target_fields, target_members


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncharged:
    """Rows of a quota group on one broker that were not charged; the fields mean what they do in ``Series``."""

    unplaced: int
    uncounted: int

    @classmethod
    def of(cls, members: Iterable[Series]) -> Uncharged:
        """Of all of these clients."""
        some = list(members)
        return cls(unplaced=sum(client.unplaced for client in some), uncounted=sum(client.uncounted for client in some))

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.unplaced + self.uncounted

    @property
    def reason(self) -> str:
        """Why a group of these rows is not clear."""
        parts = []
        if self.uncounted:
            count = count_of(self.uncounted, "mutation of a topic is", "mutations of topics are")
            parts.append(f"{count} not counted, since no recorded line shows how many partitions the topic had")
        if self.unplaced:
            count = count_of(self.unplaced, "line")
            parts.append(f"{count} of the night of the clock change not judged, since the local time occurs twice or never")
        return " and ".join(parts)


def withhold_clear(
    verdicts: Mapping[int, BucketVerdict], judged: Iterable[int], series: Sequence[Series], grouping: Grouping
) -> dict[int, BucketVerdict]:
    """The same with rows for those ``judged`` targets of which nothing was charged. None that lacks charges is clear."""
    made = dict(verdicts)
    if not any(client.unplaced or client.uncounted for client in series):
        return made
    for target in judged:
        if target >= len(grouping.targets):
            continue
        uncharged = Uncharged.of(series[member] for member in grouping.targets[target].members)
        if uncharged.rows:
            known = made.get(target)
            made[target] = _without_charges(target, uncharged, series, grouping) if known is None else _withheld(known, uncharged)
    return dict(sorted(made.items()))


def _withheld(verdict: BucketVerdict, uncharged: Uncharged) -> BucketVerdict:
    """A verdict of what was charged, where that is not all."""
    row = replace(verdict, recorded=replace(verdict.recorded, uncharged=uncharged.rows))
    if verdict.verdict is Verdict.CLEAR and verdict.limits.after is not None:
        return replace(row, verdict=Verdict.INCONCLUSIVE, reason=uncharged.reason)
    return row


def _without_charges(index: int, uncharged: Uncharged, series: Sequence[Series], grouping: Grouping) -> BucketVerdict:
    """The row of a quota group that was recorded, and of which nothing was charged."""
    target = grouping.targets[index]
    is_open = target.after.value is not None or target.undecided
    return BucketVerdict(
        **target_fields(index, grouping),
        verdict=Verdict.INCONCLUSIVE if is_open else Verdict.CLEAR,
        reason=uncharged.reason if is_open else None,
        recorded=RecordedGroup(members=target_members(index, series, grouping), uncharged=uncharged.rows),
        over=SecondsOver(),
        peak=PeakRate(bound=PeakBound.LOWER),
    )
