"""The result of a backtest: which buckets the proposed quotas would have throttled, and what the recorded traffic can prove."""

from __future__ import annotations

import datetime
import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.model.effect import BucketName
from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Span
from reconciler.model.metric_samples import JudgedQuotas, Observations
from reconciler.model.plan import ManifestCommit
from reconciler.model.quota import QuotaKey
from reconciler.model.verdict import CONTROLLER, BucketVerdict, Form, Verdict, group_verdicts

NOT_RECORDED: Final = "traffic-not-recorded"
"""Id of the finding about a changed quota that limits no recorded traffic."""
HISTORY_INCOMPLETE: Final = "history-incomplete"
"""Id of the finding about changed quota groups that are inconclusive for one reason."""


def _minutes(count: int) -> str:
    """``6 h 47 min``, ``2 h``, ``47 min``."""
    parts = (f"{count // 60} h" if count >= 60 else "", f"{count % 60} min" if count % 60 else "")
    return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What one broker's history has. Times are of the first and last charged request, UTC."""

    broker: int
    """Broker id."""
    requests: int
    """Requests of this broker that count against a quota."""
    start: datetime.datetime
    """Time of its first counted request, UTC."""
    end: datetime.datetime
    """Time of its last counted request, UTC."""
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
        """The share of whole minutes that are in no hole: 0 to 1."""
        return 1 - self.minutes_missing / self.minutes if self.minutes else 1.0

    @property
    def gap_words(self) -> str:
        """A clause, without its end mark, about the part of the history that this broker lacks: some minutes are missing."""
        lacks = "takes over traffic that was not recorded" if self.is_moved else "has no lines"
        return (
            f"broker {self.broker} {lacks} for {_minutes(self.minutes_missing)} of {_minutes(self.minutes)}, first from "
            f"{self.first_missing or self.start:%Y-%m-%d %H:%M} UTC on"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBucket:
    """A bucket that a rule does not allow, where it is worst."""

    bucket: BucketName
    """Kafka's metric tags, or those of a quota callback, names as they are. An absent tag is absent."""
    key: str
    """The quota key."""
    broker: int
    """Where it is worst."""
    verdict: Verdict
    """Its worst verdict on any broker."""
    seconds: int
    """Seconds over the proposed limit."""
    owners: tuple[str, ...]
    """Owners of the quotas, as the manifests name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """One rule of the policy, and what violates it."""

    words: str
    """The rule as a sentence."""
    reason: str | None
    """Reason that the rule states. ``None`` without one."""
    span: Span | None = None
    failed: tuple[FailedBucket, ...] = ()
    """Quota groups that violate the rule."""
    unjudged: tuple[UnjudgedChange, ...] = ()
    """Changes without recorded traffic, where the rule forbids ``inconclusive``."""

    @property
    def holds(self) -> bool:
        """Whether nothing violates the rule."""
        return not (self.failed or self.unjudged)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRecording:
    """What shows whether the recording is whole: brokers whose traffic has to be there, and requests. Empty: not known."""

    named: tuple[int, ...] = ()
    """As recorded answers name them."""
    in_cluster: tuple[int, ...] = ()
    """When the cluster's quotas were read."""
    request_step: float | None = None
    """The usual distance between consecutive correlation ids of one client, 1 in a whole log. ``None``: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableLines:
    """How many lines could not be read, and some of them."""

    lines: int = 0
    """Number of unreadable lines."""
    samples: tuple[str, ...] = ()
    """Some of them, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the verdicts come from and what they rest on."""

    source: str
    """``request-log``, ``normal-form`` or ``cells``."""
    form: Form
    """Request by request, or from sums of whole seconds."""
    files: tuple[str, ...]
    """Files that were read."""
    semantics: str
    """The Kafka versions whose rules for counting rates were used."""
    coverage: tuple[Coverage, ...]
    """What was recorded on each broker."""
    requests: int
    """Requests that count against a quota."""
    series: int
    """Distinct (broker, kind, user, client id)."""
    throttled_then: int
    """Requests that the broker throttled when the history was written, with fetches answered empty and topics refused."""
    not_charged: Mapping[str, int] = field(default_factory=dict)
    """Lines that are not charges, by kind."""
    observations: tuple[Observations, ...] = ()
    """What the rows are. Each meaning is judged by itself."""
    expected: ExpectedRecording = field(default_factory=ExpectedRecording)
    unreadable: UnreadableLines = field(default_factory=UnreadableLines)
    """Lines that could not be read."""
    current_known: bool = True
    """False when no current quotas were given. Then nothing is known about limits before the change."""
    assumptions: tuple[str, ...] = ()
    """Assumptions behind the verdicts, as sentences for people."""
    spark: str | None = None
    """Where Spark ran that judged, such as local[*]. ``None``: the command's own process judged."""

    @property
    def start(self) -> datetime.datetime:
        """Time of the first recorded request, UTC."""
        return min(part.start for part in self.coverage)

    @property
    def end(self) -> datetime.datetime:
        """Time of the last recorded request, UTC."""
        return max(part.end for part in self.coverage)

    @property
    def days(self) -> float:
        """The length of the history in days."""
        return (self.end - self.start) / datetime.timedelta(days=1)

    @property
    def brokers(self) -> int:
        """The number of brokers with traffic, without the active controller."""
        return sum(part.broker != CONTROLLER for part in self.coverage)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """All quota groups of a backtest by their worst verdict: those that the change touches, and the others.

    ``rows``: one for each quota group on each broker.
    """

    changed: Mapping[Verdict, int]
    unchanged: Mapping[Verdict, int]
    rows: int

    @property
    def groups(self) -> int:
        """The number of quota groups."""
        return sum(self.changed.values()) + sum(self.unchanged.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredQuotas:
    """Who declares quotas, and where."""

    sources: Mapping[tuple[Entity, str], Span] = field(default_factory=dict)
    """Where the manifests declare a quota, by entity and key."""
    owner_of: Mapping[Entity, str] = field(default_factory=dict)
    """Who declares an entity, where an owner is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestReport:
    """The whole result. Verdicts are sorted worst first."""

    provenance: Provenance
    """Where the verdicts come from."""
    verdicts: tuple[BucketVerdict, ...] = ()
    """Worst first."""
    unjudged: tuple[UnjudgedChange, ...] = ()
    """Changed quotas that limit no recorded traffic, sorted by entity and key."""
    judged: JudgedQuotas | None = None
    """``None``: not known, as where a quota callback decides."""
    unused: tuple[UnusedQuota, ...] = ()
    """Declared quotas that win for no recorded client."""
    findings: tuple[Finding, ...] = ()
    """Findings about the manifests and the cluster."""
    rules: tuple[RuleOutcome, ...] = ()
    """Spec.backtest.fail of the Cluster manifest, and what fails."""
    cluster: str | None = None
    """The name of the Cluster manifest."""
    notes: tuple[str, ...] = ()
    """What of the manifests counts only after merge."""
    commit: ManifestCommit = field(default_factory=ManifestCommit)
    declared: DeclaredQuotas = field(default_factory=DeclaredQuotas)
    situation: str | None = None
    """What the traffic was changed to, such as ``Without broker 3``. ``None``: it is as it was recorded."""

    @property
    def counts(self) -> GroupCounts:
        """The counts of all quota groups."""
        groups = Counter((group.rows[0].changed, group.rows[0].verdict) for group in group_verdicts(self.verdicts))
        changed, unchanged = ({verdict: groups[is_changed, verdict] for verdict in Verdict} for is_changed in (True, False))
        return GroupCounts(changed=changed, unchanged=unchanged, rows=len(self.verdicts))

    @property
    def refused(self) -> bool:
        """Whether a rule of the policy fails."""
        return any(not rule.holds for rule in self.rules)


_TRAFFIC_OF_KEY: Final[Mapping[str, str]] = {
    QuotaKey.PRODUCER_BYTE_RATE: "produce requests",
    QuotaKey.CONSUMER_BYTE_RATE: "fetches",
    QuotaKey.REQUEST_PERCENTAGE: "request times",
    QuotaKey.CONTROLLER_MUTATION_RATE: "created or deleted partitions",
    QuotaKey.CONNECTION_CREATION_RATE: "connections with an address",
}


class NotJudged(enum.StrEnum):
    """Why the history shows nothing about a quota."""

    NO_TRAFFIC = "no-traffic-of-this-kind"
    """The history has no traffic at all of the kind that the key limits."""
    NO_CLIENT = "no-recorded-client"
    OVERRIDDEN = "overridden-for-every-recorded-client"

    def words(self, key: str) -> str:
        """The reason as a clause without its end mark. ``key``: of the quota."""
        match self:
            case NotJudged.NO_TRAFFIC:
                return f"the history has no {_TRAFFIC_OF_KEY.get(key, 'traffic of this kind')}"
            case NotJudged.NO_CLIENT:
                return "no recorded client uses this quota"
            case NotJudged.OVERRIDDEN:
                return "stronger quotas override it for every recorded client"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedQuota:
    """A declared quota that won for no recorded client."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    key: str
    """The quota key."""
    value: float
    """Its value, in the unit of the key."""
    reason: NotJudged
    """No recorded client uses it, or quotas of a stronger precedence level override it for every recorded client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedChange:
    """A quota that changes and limits no recorded traffic, before or after: it is not checked."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    key: str
    """The quota key."""
    before: float | None
    """The entity's own value. ``None`` where it has none, or where it is not known."""
    after: float | None
    """``None``: unlimited, or not known."""
    reason: NotJudged
    """Why the history shows nothing about the quota."""

    @property
    def why(self) -> str:
        """The reason as a clause without its end mark."""
        return self.reason.words(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRevision:
    """A file before and after a change. ``path`` is as the user would type it, ``target`` where links lead."""

    path: str
    target: str
    before: bytes
    after: bytes
