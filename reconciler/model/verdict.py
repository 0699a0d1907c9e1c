"""One row of a backtest: a quota group on one broker, its limits, the evidence about it, and what is recommended.

Each broker judges for itself, and people ask once: a figure of a quota group is the largest of any of its brokers.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from reconciler.model.cluster import Verdict
from reconciler.model.effect import BucketName
from reconciler.model.entity import Entity, display_name
from reconciler.model.message import Message, compose, join_messages, name_part
from reconciler.model.metric_samples import MetricSamples

CONTROLLER: Final = -1
"""The broker number of mutations, which the active controller counts. Brokers' logs do not name the controller."""


def broker_words(broker: int) -> str:
    """A broker's number as text: ``broker 3``, or ``the controller`` for ``CONTROLLER``."""
    return "the controller" if broker == CONTROLLER else f"broker {broker}"


class Form(enum.StrEnum):
    """How closely the history was judged."""

    EXACT = "exact"
    """Request by request."""
    SECONDS = "seconds"
    """From sums of whole seconds, with what is proven about the requests in them."""


class PeakBound(enum.StrEnum):
    """What a peak is: the largest rate itself, or a bound of it."""

    EXACT = "exact"
    UPPER = "upper"
    """No request can have exceeded it: judged from whole seconds."""
    LOWER = "lower"
    """A request reached it: proven by a sample."""

    @property
    def words(self) -> str:
        """The words before the rate: nothing, ``at most`` or ``at least``, and a blank."""
        return {PeakBound.EXACT: "", PeakBound.UPPER: "at most ", PeakBound.LOWER: "at least "}[self]


def bucket_words(name: BucketName) -> Message:
    """Name whose traffic shares the limit: ``user payments``, ``user payments with client-id app``, ``client-id app``."""
    tags = [(tag, value) for tag, value in (("user", name.user), ("client-id", name.client_id), *name.other) if value]
    named = (
        compose(
            "{tag} {value}",
            tag=tag if tag in ("user", "client-id", "ip") else name_part(display_name(tag)),
            value=name_part(display_name(value)),
        )
        for tag, value in tags or [("client-id", "")]
    )
    return join_messages(named, " with ")


class RowPlace(NamedTuple):
    """What identifies a row of a report. ``undecided``: as ``BucketVerdict`` has it."""

    key: str
    broker: int
    name: BucketName
    undecided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSeries:
    """The rate of a quota group over time. One item for each of equal intervals."""

    start: datetime.datetime
    """Begin of the first interval, UTC."""
    step_s: int
    """Length of an interval in seconds."""
    rate: tuple[float, ...]
    """The largest estimate from whole seconds in each interval, in the unit of the key."""
    upper: tuple[float, ...]
    """What no request of the interval can have exceeded, in the same unit."""
    over: tuple[int, ...]
    """Seconds that are probably over the proposed limit."""
    possible: tuple[int, ...]
    """Seconds that are possibly over it."""
    over_before: tuple[int, ...] | None
    """Seconds that were probably over an earlier limit. ``None``: not known."""
    recorded: tuple[bool, ...]
    """Whether the broker was recorded in the interval. A rate of an interval without recording means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One client of a quota group."""

    user: str | None
    """``None``: not recorded."""
    client_id: str | None
    """``None``: not recorded. Empty: the client sends none."""
    share: float
    """Its part of the quota group's amount, 0 to 1."""
    requests: int
    """Counted requests of this client."""
    limit_before: float | None = None
    """``None``: unlimited, or not known."""
    share_of_excess: float | None = None
    """Its part of the amount in the seconds that are over. ``None``: none are, or they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    """The limits of a row. ``None`` is unlimited."""

    entity: Entity | None
    """Whose proposed quota applies. ``None``: unlimited."""
    before: tuple[float | None, ...]
    """All earlier limits of the members, lowest first and unlimited last. Empty when not known."""
    after: float | None
    """``None``: unlimited, or not known."""
    entities_before: tuple[Entity, ...] = ()
    """Other entities that set earlier limits of the members: some of many, sorted."""
    buckets_before: tuple[BucketName, ...] = ()
    """The limited buckets that the members had before, of those that are not this one: some of many, sorted."""

    @property
    def lowest_before(self) -> float | None:
        """The lowest, when members came from different limits. ``None``: unlimited, or not known."""
        return self.before[0] if self.before else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGroup:
    """What was recorded of a quota group on one broker."""

    requests: int = 0
    """Counted requests of the quota group on this broker."""
    members: tuple[Member, ...] = ()
    """The largest first."""
    throttled: int = 0
    """Requests that were throttled when they were recorded."""
    uncharged: int = 0
    """Recorded rows of it that could not be charged: their amount or their time is not known. Then no value is recommended."""
    first: datetime.datetime | None = None
    """When its first request was, UTC. ``None``: not known. ``last``: its last one."""
    last: datetime.datetime | None = None
    censored: bool = False
    """A quota throttled these clients when they were recorded: the peak, and what is safe and recommended, are lower bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsOver:
    """How long a row is over the proposed limit, in seconds.

    A second is active when the bucket had a request in it, over when one of its requests would have been throttled. Judged by
    seconds, it is certainly, probably or possibly over. Judged exactly, the three are one. An episode is a run of active seconds
    that are all over, with no pause longer than the rate's window. Its length counts both ends.
    """

    active: int = 0
    """Seconds with a request."""
    certain: int = 0
    """Seconds that are proven to be over."""
    seconds: int = 0
    """The best estimate, never below ``certain``."""
    possible: int = 0
    """Seconds that are not proven to be clear."""
    before: int | None = None
    """Under the earlier limits. ``None``: the earlier quotas are not known."""
    first: datetime.datetime | None = None
    """Charge time of the first throttled request, or its second, UTC."""
    longest_s: int = 0
    """The longest run of seconds with traffic that are all over."""
    longest_from: datetime.datetime | None = None
    """Begin of the longest run of seconds over, UTC. ``None`` when there is none."""

    @property
    def share(self) -> float:
        """Seconds over, of the active seconds, 0 to 1."""
        return self.seconds / self.active if self.active else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakRate:
    """The largest open-loop sampled rate, in the unit of the key."""

    rate: float = 0.0
    """The largest open-loop rate, in the unit of the key."""
    bound: PeakBound = PeakBound.EXACT
    """Whether the peak is the largest rate itself, a bound that no request can have exceeded, or one that a request reached."""
    enough: float | None = None
    """The smallest limit at which this broker would have throttled nothing, or its upper bound. ``None``: the peak.

    It is below the peak for mutations only: a broker lets a request overdraw the bucket, and refuses the next one.
    """

    @property
    def least_safe(self) -> float:
        """The smallest limit at which this broker would have throttled nothing, or its upper bound."""
        return self.rate if self.enough is None else self.enough


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCounts:
    """How many requests the limits would have throttled, where every request was replayed."""

    throttled: int
    """Under the proposed limit."""
    before: int | None
    """Under the earlier limits. ``None``: the earlier quotas are not known."""
    refused: int | None = None
    """Of what is throttled, what is sent away: topics, connections. ``None``: nothing of this key is, or it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to write for a quota group: one value, good for all of its brokers."""

    recommended: float | None = None
    """A limit at which no request of this history would have been throttled, on any broker, with a margin."""
    reason: str | None = None
    """Why this value is recommended, or why none is."""
    safe: float | None = None
    """The smallest round limit at which no request of this history would have been throttled, on any broker."""
    margin: float = 0.0
    """What ``recommended`` adds to the peak, as a share: for the shortness of the history, and for the loss of a broker."""


NO_ADVICE: Final = Advice()
_NO_PEAK: Final = PeakRate()


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketVerdict:
    """One bucket of the proposed quotas on one broker, for one key.

    The evidence is ``over`` and ``peak`` with what they rest on: the replay of every request, sums of seconds (no ``replay``),
    or metrics alone (no recorded requests).
    """

    key: str
    """The quota key."""
    broker: int
    """-1: the active controller, whichever node that was."""
    name: BucketName
    """Without a user's tag it is of a client id of any user, without a client-id's of a user whatever its client ids."""
    undecided: bool = False
    """Who sent this was not recorded well enough to state which quota applies: names and limits here are what is known."""
    limits: RowLimits
    changed: bool
    """The limit differs for a member, or its members do. When the earlier quotas are not known: there is one."""
    verdict: Verdict
    """The verdict for the proposed limit."""
    reason: str | None = None
    """Why a verdict is inconclusive, or how a broker does not keep the limit."""
    recorded: RecordedGroup
    over: SecondsOver
    peak: PeakRate = _NO_PEAK
    replay: ReplayCounts | None = None
    """``None``: not every request was judged."""
    metrics: MetricSamples | None = None
    """What metrics show. ``None``: the history has none of this quota group."""
    advice: Advice = NO_ADVICE
    rates: RateSeries | None = None
    """The rate over time in at most 240 intervals. ``None`` unless asked for, and for buckets of tokens."""

    @property
    def place(self) -> RowPlace:
        """The key that identifies the row in a report."""
        return RowPlace(self.key, self.broker, self.name, self.undecided)

    @property
    def group(self) -> tuple[object, ...]:
        """The key that identifies the quota group, which has a row for each broker."""
        return self.key, self.name, self.undecided

    @property
    def keeps_limit(self) -> bool:
        """Whether the present limit is recommended."""
        return self.advice.recommended is not None and self.limits.before == (self.advice.recommended,)

    @property
    def headroom(self) -> float | None:
        """The proposed limit, divided by the peak."""
        return None if self.limits.after is None or not self.peak.rate else self.limits.after / self.peak.rate


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
            seconds=max((row.over.seconds for row in known), default=0),
            share=max((row.over.share for row in known), default=0.0),
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
        """The verdict of the worst broker."""
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
        """The metrics of the row with the largest share of samples over the limit. ``None``: no row has any."""
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
