"""Recorded rows that could not be charged: what is missing of a quota group is never taken for nothing.

A line of the night of a clock change has two times, and a topic may have been deleted without a line that shows its partitions.
Such rows are counted for each client. Their quota groups are not clear, and get no value to write, since all that is known of
them is too little. A group that is throttled by what was charged stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model import BucketVerdict, PeakBound, Verdict
from reconciler.text import count_of
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.verdicts import alter_verdict, target_fields, target_members
from reconciler.traffic.kinds import Kind


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
    changes: dict[str, object] = {"uncharged": uncharged.rows}
    if verdict.verdict is Verdict.CLEAR and verdict.limit_after is not None:
        changes |= {"verdict": Verdict.INCONCLUSIVE, "reason": uncharged.reason}
    return alter_verdict(verdict, **changes)


def _without_charges(index: int, uncharged: Uncharged, series: Sequence[Series], grouping: Grouping) -> BucketVerdict:
    """The row of a quota group that was recorded, and of which nothing was charged."""
    target = grouping.targets[index]
    limited = target.after.value is not None
    return BucketVerdict(
        **target_fields(index, grouping),
        verdict=Verdict.INCONCLUSIVE if limited or target.undecided else Verdict.CLEAR,
        reason=uncharged.reason if limited or target.undecided else None,
        requests=0,
        throttled_before=None,
        throttled=None,
        active_seconds=0,
        seconds_certain=0,
        seconds_over=0,
        seconds_possible=0,
        seconds_over_before=None,
        first=None,
        longest_s=0,
        longest_from=None,
        peak=0.0,
        peak_bound=PeakBound.LOWER,
        members=target_members(index, series, grouping),
        uncharged=uncharged.rows,
    )


def unplaced_targets(series: Sequence[Series], grouping: Grouping) -> set[int]:
    """The targets that have lines of the night of a clock change. Not those of mutations: half of a topic proves nothing."""
    return {
        grouping.target_of_series[index]
        for index, client in enumerate(series)
        if client.unplaced and client.kind is not Kind.MUTATION
    }


def add_night(verdict: BucketVerdict, night: BucketVerdict) -> BucketVerdict:
    """A row with what that night proves. ``night``: throttled by half of each amount, so the whole is at most twice as much."""
    by_day = verdict.longest_s >= night.longest_s
    return alter_verdict(
        verdict,
        verdict=Verdict.THROTTLED,
        reason="lines of the night of the clock change are over the limit, whichever of the two hours they are of",
        active_seconds=verdict.active_seconds + night.active_seconds,
        seconds_certain=verdict.seconds_certain + night.seconds_certain,
        seconds_over=verdict.seconds_over + night.seconds_certain,
        seconds_possible=verdict.seconds_possible + night.seconds_possible,
        first=verdict.first or night.first,
        longest_s=verdict.longest_s if by_day else night.longest_s,
        longest_from=verdict.longest_from if by_day else night.longest_from,
        peak=max(verdict.peak, 2 * night.peak),
        peak_bound=PeakBound.UPPER,
    )
