"""The result of a backtest: which buckets the proposed quotas would have throttled, and what the recorded traffic can prove."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Span
from reconciler.model.metric_samples import JudgedQuotas, MetricSamples, Observations
from reconciler.model.plan import ManifestCommit
from reconciler.model.quota_use import UnjudgedChange, UnusedQuota

if TYPE_CHECKING:
    from reconciler.model.simulation import Simulation

NOT_RECORDED: Final = "traffic-not-recorded"
"""Id of the finding about a changed quota that limits no recorded traffic."""
HISTORY_INCOMPLETE: Final = "history-incomplete"
"""Id of the finding about changed quota groups that are inconclusive for one reason."""
CONTROLLER: Final = -1
"""The broker number of mutations, which the active controller counts. Brokers' logs do not name the controller."""


def _minutes(count: int) -> str:
    """``6 h 47 min``, ``2 h``, ``47 min``."""
    parts = (f"{count // 60} h" if count >= 60 else "", f"{count % 60} min" if count % 60 else "")
    return " ".join(part for part in parts if part)


def broker_words(broker: int) -> str:
    """A broker's number as text: ``broker 3``, or ``the controller`` for ``CONTROLLER``."""
    return "the controller" if broker == CONTROLLER else f"broker {broker}"


class Verdict(enum.StrEnum):
    """What the history states about one bucket on one broker under the proposed limit."""

    THROTTLED = "throttled"
    """Requests of the history would have been throttled."""
    POSSIBLE = "possible"
    """Seconds alone do not decide: it depends on the requests within them."""
    CLEAR = "clear"
    """No request of the history would have been throttled."""
    INCONCLUSIVE = "inconclusive"
    """No client is seen to be throttled, and the history does not show enough to prove that none is."""


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
    """A request reached it: proven by a mean."""

    @property
    def words(self) -> str:
        """What stands before the rate: nothing, ``at most`` or ``at least``, and a blank."""
        return {PeakBound.EXACT: "", PeakBound.UPPER: "at most ", PeakBound.LOWER: "at least "}[self]


class Regrouped(enum.StrEnum):
    """How the clients of a bucket shared limits before."""

    SAME = "same"
    MERGED = "merged"
    """They had several buckets."""
    SPLIT = "split"
    """They shared theirs with clients that are now in others."""
    REGROUPED = "regrouped"
    """Both."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BucketName:
    """The tags of a bucket. An empty one is absent."""

    user: str
    client_id: str
    other: tuple[tuple[str, str], ...] = ()
    """Further tags, sorted by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSeries:
    """A bucket's rate over time, in equal intervals of ``step_s`` seconds from ``start`` on. One item an interval.

    ``rate`` is the largest estimate from whole seconds, ``upper`` what no request can have exceeded, both in the unit of the key.
    ``over`` and ``possible`` count seconds that are probably and possibly over the proposed limit, ``over_before`` those
    that were probably over an earlier one (``None``: not known).
    """

    start: datetime.datetime
    step_s: int
    rate: tuple[float, ...]
    upper: tuple[float, ...]
    over: tuple[int, ...]
    possible: tuple[int, ...]
    over_before: tuple[int, ...] | None
    recorded: tuple[bool, ...]
    """Whether the broker was recorded in the interval. A rate of an interval without recording means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One client of a bucket. ``share``: its part of the bytes, 0 to 1. ``limit_before`` ``None``: unlimited, or not known.

    A ``user`` or ``client_id`` of ``None`` was not recorded. An empty client id is really empty.
    ``share_of_excess``: its part of the bytes charged in the seconds that are over. ``None`` when there are none, or not known.
    """

    user: str | None
    client_id: str | None
    share: float
    requests: int
    limit_before: float | None = None
    share_of_excess: float | None = None


RowPlace: TypeAlias = tuple[str, int, str, str, tuple[tuple[str, str], ...], bool]
"""Quota key, broker, user, client id and further tags of a row, and whether it is undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketVerdict:
    """One bucket of the proposed quotas on one broker, for one key.

    A second is active when the bucket had a request in it, over when one of its requests would have been throttled. Judged by
    seconds, it is certainly, probably or possibly over, and requests are not counted. Judged exactly, the three are one. An
    episode is a run of active seconds that are all over, with no pause longer than the rate's window. Its length counts both
    ends.
    """

    user: str
    """The bucket's user tag. Empty: none, the bucket is of a client id of any user."""
    client_id: str
    """The bucket's client-id tag. Empty: none, the bucket is of a user whatever its client ids."""
    key: str
    broker: int
    entity: Entity | None
    """Whose proposed quota applies. ``None``: unlimited."""
    limit_before: float | None
    """``None``: unlimited, or not known. The lowest, when members came from different limits."""
    limits_before: tuple[float | None, ...]
    """All earlier limits of the members, lowest first and unlimited last. Empty when not known."""
    limit_after: float | None
    changed: bool
    """The limit differs for a member, or its members do; when the earlier quotas are not known: there is one."""
    verdict: Verdict
    requests: int
    throttled_before: int | None
    """``None``: the earlier quotas are not known."""
    throttled: int | None
    active_seconds: int
    seconds_certain: int
    seconds_over: int
    """The best estimate."""
    seconds_possible: int
    seconds_over_before: int | None
    """``None``: the earlier quotas are not known."""
    first: datetime.datetime | None
    """Charge time of the first throttled request, or its second, UTC."""
    longest_s: int
    longest_from: datetime.datetime | None
    peak: float
    """The largest open-loop sampled rate, in the unit of the key. Judged by seconds, what it cannot exceed."""
    recommended: float | None
    """A limit at which no request of this history would have been throttled, on any broker, with a margin."""
    recommended_reason: str | None
    members: tuple[Member, ...]
    """The largest first."""
    reason: str | None = None
    """Why a verdict is inconclusive, or how a broker does not keep the limit."""
    p999: float = 0.0
    """What the rate does not exceed in 99.9 % of the active seconds."""
    least_safe: float | None = None
    """The smallest limit at which this broker would have throttled nothing, or its upper bound. ``None``: the peak.

    It is below the peak for mutations only: a broker lets a request overdraw the bucket, and refuses the next one.
    """
    safe: float | None = None
    """The smallest round limit at which no request of this history would have been throttled, on any broker."""
    safe_p999: float | None = None
    """The same for 99.9 % of the active seconds of each broker. ``None``: too few seconds for such a share."""
    margin: float = 0.0
    """What ``recommended`` adds to the peak, as a share: for the shortness of the history, and for the loss of a broker."""
    margin_reason: str | None = None
    """The parts of the margin. ``None``: there is none, or nothing is recommended."""
    regrouped: Regrouped = Regrouped.SAME
    entities_before: tuple[Entity, ...] = ()
    """Other entities that set earlier limits of the members: some of many, sorted."""
    buckets_before: tuple[BucketName, ...] = ()
    """The limited buckets that the members had before, of those that are not this one: some of many, sorted."""
    rates: RateSeries | None = None
    tags: tuple[tuple[str, str], ...] = ()
    """Further tags of the bucket, which a quota callback gave, sorted by their names."""
    undecided: bool = False
    """Who sent this was not recorded well enough to state which quota applies: names and limits here are what is known."""
    refused: int | None = None
    """Of what is throttled, what is sent away: topics, connections. ``None``: nothing of this key is, or it is not known."""
    partly_refused: int | None = None
    """Requests for several topics of which only some are refused. ``None`` as ``refused``."""
    throttled_then: int = 0
    """Requests that were throttled when they were recorded."""
    uncharged: int = 0
    """Recorded rows of it that could not be charged: their amount or their time is not known. Then no value is recommended."""
    censored: bool = False
    """A quota throttled these clients when they were recorded: the peak, and what is safe and recommended, are lower bounds."""
    peak_bound: PeakBound = PeakBound.EXACT
    metrics: MetricSamples | None = None
    """What metrics show. ``None``: the history has none of this quota group."""

    @property
    def name(self) -> BucketName:
        """All tags of the bucket."""
        return BucketName(user=self.user, client_id=self.client_id, other=self.tags)

    @property
    def place(self) -> RowPlace:
        """What identifies the row in a report."""
        return self.key, self.broker, self.user, self.client_id, self.tags, self.undecided

    @property
    def group(self) -> tuple[object, ...]:
        """What identifies the quota group, which has a row for each broker."""
        return self.key, self.user, self.client_id, self.tags, self.undecided

    @property
    def keeps_limit(self) -> bool:
        """Whether the present limit is recommended."""
        return self.recommended is not None and self.limits_before == (self.recommended,)

    @property
    def share_over(self) -> float:
        """Seconds over, of the active seconds, 0 to 1."""
        return self.seconds_over / self.active_seconds if self.active_seconds else 0.0

    @property
    def headroom(self) -> float | None:
        """The proposed limit, divided by the peak."""
        return None if self.limit_after is None or not self.peak else self.limit_after / self.peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What one broker's history has. Times are of the first and last charged request, UTC."""

    broker: int
    requests: int
    start: datetime.datetime
    end: datetime.datetime
    minutes: int = 0
    """Whole minutes between the first and the last request of the whole history."""
    minutes_missing: int = 0
    """Those of them that are in a hole of this broker's recording."""
    first_missing: datetime.datetime | None = None
    """The first minute of the first hole."""
    is_moved: bool = False
    """Whether it gets traffic of other brokers. Then a hole is that of any of them."""

    @property
    def share(self) -> float:
        """Of the whole minutes, those that are in no hole: 0 to 1."""
        return 1 - self.minutes_missing / self.minutes if self.minutes else 1.0

    @property
    def gap_words(self) -> str | None:
        """How much of the history this broker lacks, as a clause without its end mark. ``None``: nothing."""
        if not self.minutes_missing or self.first_missing is None:
            return None
        if self.is_moved:
            return (
                f"broker {self.broker} takes over traffic that was not recorded for {_minutes(self.minutes_missing)} of "
                f"{_minutes(self.minutes)}, first from {self.first_missing:%Y-%m-%d %H:%M} UTC on"
            )
        return (
            f"broker {self.broker} has no lines for {_minutes(self.minutes_missing)} of {_minutes(self.minutes)}, first from "
            f"{self.first_missing:%Y-%m-%d %H:%M} UTC on"
        )


class Fit(enum.StrEnum):
    """How a limit fits the traffic under it."""

    NEAR = "near"
    """Little is left."""
    LOOSE = "loose"
    """It is many times what any client used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFit:
    """A proposed quota that is nearly reached, or far from it. ``share``: of the limit, what its fullest bucket used."""

    entity: Entity
    key: str
    limit: float
    fit: Fit
    share: float
    buckets: int
    """How many buckets, each on a broker, it limits in this history."""
    fullest: BucketName
    broker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityUse:
    """One broker, if all that were recorded there used all of their limits at once."""

    broker: int
    key: str
    capacity: float
    before: float | None
    """``None``: the earlier quotas are not known."""
    after: float
    buckets: int
    """How many limits are added up."""
    unlimited: int
    """Buckets without a limit, which are not in the sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBucket:
    """A bucket that a rule does not allow, where it is worst."""

    bucket: BucketName
    key: str
    broker: int
    verdict: Verdict
    seconds: int
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """One rule of the policy. ``words`` is the rule as a sentence."""

    words: str
    reason: str | None
    span: Span | None
    failed: tuple[FailedBucket, ...] = ()
    unjudged: tuple[UnjudgedChange, ...] = ()
    """Changes without recorded traffic, where the rule forbids ``inconclusive``."""

    @property
    def holds(self) -> bool:
        """Whether nothing violates the rule."""
        return not (self.failed or self.unjudged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the verdicts come from and what they rest on."""

    source: str
    """``request-log``, ``normal-form`` or ``cells``."""
    form: Form
    files: tuple[str, ...]
    semantics: str
    start: datetime.datetime
    end: datetime.datetime
    coverage: tuple[Coverage, ...]
    requests: int
    series: int
    """Distinct (broker, kind, user, client id)."""
    throttled_then: int
    """Requests that the broker throttled when the history was written, with fetches answered empty and topics refused."""
    not_charged: Mapping[str, int] = field(default_factory=dict)
    """Lines that are not charges, by kind."""
    observations: tuple[Observations, ...] = ()
    """What the rows are. Each meaning is judged by itself."""
    named_brokers: tuple[int, ...] = ()
    """Brokers of the cluster, as recorded answers name them. Empty where none does."""
    cluster_brokers: tuple[int, ...] = ()
    """Brokers of the cluster when its quotas were read. Empty: not known."""
    request_step: float | None = None
    """The usual distance between consecutive correlation ids of one client, 1 in a whole log. ``None``: not known."""
    unreadable: int = 0
    unreadable_samples: tuple[str, ...] = ()
    current_known: bool = True
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """All quota groups of a backtest by their worst verdict: those that the change touches, and the others.

    ``rows``: one for each quota group on each broker.
    """

    changed: Mapping[Verdict, int]
    unchanged: Mapping[Verdict, int]
    rows: int

    @classmethod
    def of(cls, verdicts: Sequence[BucketVerdict]) -> Self:
        """Of all rows, worst first."""
        groups = worst_of_buckets(verdicts)
        changed, unchanged = (
            {verdict: sum(group.verdict is verdict and group.changed is is_changed for group in groups) for verdict in Verdict}
            for is_changed in (True, False)
        )
        return cls(changed=changed, unchanged=unchanged, rows=len(verdicts))

    @property
    def groups(self) -> int:
        """How many quota groups there are."""
        return sum(self.changed.values()) + sum(self.unchanged.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestReport:
    """The whole result. Verdicts are sorted worst first."""

    provenance: Provenance
    verdicts: tuple[BucketVerdict, ...] = ()
    group_counts: GroupCounts | None = None
    """Of all quota groups, where ``verdicts`` has the worst ones only. ``None``: it has all of them."""
    unjudged: tuple[UnjudgedChange, ...] = ()
    """Changed quotas that limit no recorded traffic, sorted by entity and key."""
    judged: JudgedQuotas | None = None
    """``None``: not known, as where a quota callback decides."""
    unused: tuple[UnusedQuota, ...] = ()
    findings: tuple[Finding, ...] = ()
    fits: tuple[QuotaFit, ...] = ()
    capacity: tuple[CapacityUse, ...] = ()
    rules: tuple[RuleOutcome, ...] = ()
    cluster: str | None = None
    """The name of the Cluster manifest."""
    notes: tuple[str, ...] = ()
    """What of the manifests counts only after merge."""
    commit: ManifestCommit = field(default_factory=ManifestCommit)
    sources: Mapping[tuple[Entity, str], Span] = field(default_factory=dict)
    """Where the manifests declare a quota, by entity and key."""
    owner_of: Mapping[Entity, str] = field(default_factory=dict)
    """Who declares an entity, where an owner is set."""
    simulation: Simulation | None = None
    """The situation that the traffic was changed to. ``None``: it is as it was recorded."""

    @property
    def counts(self) -> GroupCounts:
        """Of all quota groups, those without a row here included."""
        return self.group_counts or GroupCounts.of(self.verdicts)

    @property
    def refused(self) -> bool:
        """Whether a rule of the policy fails."""
        return any(not rule.holds for rule in self.rules)


def worst_of_buckets(verdicts: Sequence[BucketVerdict]) -> tuple[BucketVerdict, ...]:
    """Of verdicts in the order of a report, the first of each bucket and key: brokers judge for themselves, people ask once."""
    worst: dict[tuple[object, ...], BucketVerdict] = {}
    for verdict in verdicts:
        worst.setdefault(verdict.group, verdict)
    return tuple(worst.values())
