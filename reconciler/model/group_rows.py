"""The rows of one quota group together: each broker judges for itself, and people ask once.

A figure of a quota group is the largest of any of its brokers. All outputs take their figures from here.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from reconciler.model.metric_samples import MetricSamples
from reconciler.model.verdict import BucketVerdict, PeakBound, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOver:
    """How long a quota group is over its limit: seconds, and shares of the active seconds from 0 to 1.

    ``certain`` is at least so, ``possible`` at most. All three are the same where requests were judged one by one.
    """

    seconds: int
    share: float
    certain: int
    possible: int
    possible_share: float
    before: int | None
    """Under the earlier limits. ``None``: not known."""
    before_share: float

    @classmethod
    def of(cls, rows: Iterable[BucketVerdict]) -> Self:
        """The largest of each over these rows."""
        known = list(rows)
        before = [row.over.before for row in known]
        return cls(
            seconds=max((max(row.over.seconds, row.over.certain) for row in known), default=0),
            share=max((_share(max(row.over.seconds, row.over.certain), row) for row in known), default=0.0),
            certain=max((row.over.certain for row in known), default=0),
            possible=max((row.over.possible for row in known), default=0),
            possible_share=max((_share(row.over.possible, row) for row in known), default=0.0),
            before=None if None in before else max((seconds or 0 for seconds in before), default=0),
            before_share=max((_share(row.over.before or 0, row) for row in known), default=0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRows:
    """The rows of one quota group, the worst broker first, as a report has them."""

    rows: tuple[BucketVerdict, ...]

    @classmethod
    def of_row(cls, row: BucketVerdict) -> Self:
        """One broker alone."""
        return cls(rows=(row,))

    @property
    def worst(self) -> BucketVerdict:
        """The row whose verdict is that of the quota group. Its figures are those of one broker."""
        return self.rows[0]

    @property
    def verdict(self) -> Verdict:
        """Of the worst broker."""
        return self.worst.verdict

    @property
    def changed(self) -> bool:
        """Whether the limit, or who shares it, changes on any broker."""
        return any(row.changed for row in self.rows)

    @property
    def highest(self) -> BucketVerdict:
        """The row with the largest peak."""
        return max(self.rows, key=peak_of)

    @property
    def time_over(self) -> TimeOver:
        """The largest time over the limit. Rows that only prove one throttle do not show how often there is one."""
        return TimeOver.of(row for row in self.rows if row.peak.bound is not PeakBound.LOWER)

    @property
    def samples(self) -> MetricSamples | None:
        """Of the rows with metrics, the one with the largest share of samples over the limit."""
        return max((row.metrics for row in self.rows if row.metrics is not None), key=_share_of_samples, default=None)

    @property
    def first(self) -> datetime.datetime | None:
        """The first moment over the limit, on any broker."""
        return min((row.over.first for row in self.rows if row.over.first is not None), default=None)

    @property
    def longest(self) -> BucketVerdict | None:
        """The row with the longest time over the limit without a break."""
        return max(
            (row for row in self.rows if row.over.longest_from is not None), key=lambda row: row.over.longest_s, default=None
        )


def group_verdicts(verdicts: Sequence[BucketVerdict]) -> tuple[GroupRows, ...]:
    """Every quota group once, in the order of a report."""
    groups: dict[tuple[object, ...], list[BucketVerdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.group, []).append(verdict)
    return tuple(GroupRows(rows=tuple(rows)) for rows in groups.values())


def peak_of(row: BucketVerdict) -> float:
    """The largest rate, or the highest sample where only metrics are known."""
    return row.peak.rate if row.metrics is None or row.recorded.requests else row.metrics.highest


def _share(seconds: int, row: BucketVerdict) -> float:
    return seconds / row.over.active if row.over.active else 0.0


def _share_of_samples(metrics: MetricSamples) -> float:
    return metrics.over / metrics.samples if metrics.over is not None and metrics.samples else -1.0
