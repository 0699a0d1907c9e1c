"""What quotas did to a quota group while it was recorded.

A throttled client sends less than it would. So the recorded rates of a group that its old limit throttled are lower bounds of its
need, and no higher limit is ``clear`` from them. Nor is a limit that stays: what a quota refused has no size in a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from reconciler.model import BucketVerdict, Verdict, broker_words
from reconciler.text import count_of, rate
from reconciler.traffic.judging.grouping import Grouping, Series, groups_before

ENOUGH: Final = 0.01
"""Of the requests, the samples or the active seconds: from here on a group counts as throttled when it was recorded."""
_NOTHING_FOUND: Final = (Verdict.CLEAR, Verdict.INCONCLUSIVE)
WHAT_DECIDES: Final = "Raise the limit in steps and judge the traffic of each step, or record at a higher limit"


def are_enough(throttled: int, observed: int) -> bool:
    """Whether so many throttled requests, samples or seconds of those observed show what a limit did."""
    return throttled > 0 and throttled >= ENOUGH * observed


def old_limit_reason(key: str, old: float, new: float | None, seen: str, *, peak: float) -> str:
    """Why a limit that throttled clients shows nothing about a higher one (``None``: no limit), and what would.

    ``seen``: what it throttled, such as ``these clients in 3 of 10 samples``. ``peak``: a rate that they certainly had.
    """
    more = "how much they send without a limit" if new is None else "how much more"
    need = rate(key, max(old, peak))
    return (
        f"the old limit of {rate(key, old)} throttled {seen}. They need at least {need}, and the history does not show {more}. "
        f"{WHAT_DECIDES}"
    )


def recorded_reason(seen: str) -> str:
    """Why clients that some quota throttled are not clear where no old limit explains it. ``seen``: as ``old_limit_reason``."""
    return (
        f"quotas throttled {seen} when they were recorded. The history does not show how much they would have sent. Record them "
        "again without throttles"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Whether a quota throttled the quota group of a row on some broker. ``reason``: why the row is not clear then."""

    censored: bool = False
    reason: str | None = None

    def applied_to(self, row: BucketVerdict) -> BucketVerdict:
        """The row with this."""
        if self.censored and not row.recorded.censored:
            row = replace(row, recorded=replace(row.recorded, censored=True))
        return row if self.reason is None else replace(row, verdict=Verdict.INCONCLUSIVE, reason=self.reason)


_NOT_HELD_BACK: Final = HeldBack()


def held_back_changes(verdicts: Sequence[BucketVerdict]) -> Iterator[HeldBack]:
    """One for each verdict.

    The values of a quota group are good for all brokers, so those are lower bounds on each, and it is clear on none.
    """
    held_back: dict[tuple[object, ...], BucketVerdict] = {}
    for row in sorted(verdicts, key=lambda row: (row.verdict is not Verdict.INCONCLUSIVE, row.broker)):
        if row.recorded.censored:
            held_back.setdefault(row.group, row)
    return (_held_back(verdict, held_back.get(verdict.group)) for verdict in verdicts)


def _held_back(verdict: BucketVerdict, held: BucketVerdict | None) -> HeldBack:
    """``held``: the row of its quota group that was throttled, if one was."""
    if held is None:
        return _NOT_HELD_BACK
    if verdict.recorded.censored or held.verdict is not Verdict.INCONCLUSIVE or verdict.verdict not in _NOTHING_FOUND:
        return HeldBack(censored=True)
    return HeldBack(censored=True, reason=f"on {broker_words(held.broker)}, {held.reason}")


class GroupSeconds(Protocol):
    """What is known of a group that was judged."""

    @property
    def active(self) -> int:
        """Seconds with traffic."""
        ...

    @property
    def near(self) -> int:
        """Seconds near its old limit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Clients that shared an old limit. ``limit``: ``None`` where there was none, or it is not known."""

    limit: float | None
    requests: int
    throttled: int
    active: int = 0
    near: int = 0

    def proves(self, after: float | None, *, stated: bool) -> bool:
        """Whether a quota throttled them. ``after``: the proposed limit. ``stated``: each request states it.

        Where requests do not, seconds near an old limit that rises may be what it let through.
        """
        near = are_enough(self.near, self.active)
        if self.throttled:
            return near or are_enough(self.throttled, self.requests)
        return not stated and near and self.is_raised(after)

    def is_raised(self, after: float | None) -> bool:
        """Whether their limit rises, or goes."""
        return self.limit is not None and (after is None or after > self.limit)

    def reason(self, key: str, after: float | None, peak: float) -> str:
        """Why they are not clear. ``peak``: a rate that they certainly had."""
        requests = f"{self.throttled:,} of {count_of(self.requests, 'request')} of these clients"
        seconds = f"in {self.near:,} of {count_of(self.active, 'active second')}"
        if self.limit is None or not self.is_raised(after):
            return recorded_reason(requests)
        if not self.throttled:
            return (
                f"these clients were near the old limit of {rate(key, self.limit)} {seconds}, and this traffic does not state "
                f"whether it throttled them. Give traffic that does, such as request logs. {WHAT_DECIDES}"
            )
        if self.active and not self.near:
            # Time of requests throttles, too, and the answers of all throttled fetches are empty.
            return (
                f"the old limit of {rate(key, self.limit)} or another quota throttled {requests}, whose recorded rate was in no "
                f"second near this limit. The history does not show how much they would have sent. {WHAT_DECIDES}"
            )
        seen = f"{requests}, and their rate was near it {seconds}" if self.near else requests
        return old_limit_reason(key, self.limit, after, seen, peak=peak)


def throttled_recording(
    index: int, series: Sequence[Series], grouping: Grouping, judged: Mapping[int, GroupSeconds], *, stated: bool
) -> Recording | None:
    """Of a target's members those, of one old limit, that a quota throttled most; ``None``: it throttled none of them.

    ``judged``: by group. ``stated``: each request states whether it was throttled.
    """
    target = grouping.targets[index]
    after = target.after.value
    some = [part for part in _recordings(index, series, grouping, judged) if part.proves(after, stated=stated)]
    # No limit throttles no request. That is a doubt only where the change takes one away.
    some = [part for part in some if after is not None or part.is_raised(after)]
    return max(some, key=lambda part: (part.is_raised(after), part.throttled / max(part.requests, 1), part.near), default=None)


def _recordings(index: int, series: Sequence[Series], grouping: Grouping, judged: Mapping[int, GroupSeconds]) -> list[Recording]:
    members_of: dict[int, list[int]] = {}
    groups = groups_before(grouping, index)
    for member in grouping.targets[index].members:
        group = next((number for number in grouping.groups_of_series[member] if number in groups), -1)
        members_of.setdefault(group, []).append(member)
    recordings = []
    for group, members in members_of.items():
        before, whole = grouping.before_of_series[members[0]], judged.get(group)
        recordings.append(
            Recording(
                limit=None if before is None else before.value,
                requests=sum(series[member].requests for member in members),
                throttled=sum(series[member].throttled for member in members),
                active=0 if whole is None else whole.active,
                near=0 if whole is None else whole.near,
            )
        )
    return recordings
