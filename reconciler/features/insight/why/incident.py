"""Why a client was throttled at a time: the quota groups, who filled them, who set the limits, and what is not known."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model import BucketName, ClusterIdentity, Entity, Member, PeakBound, Verdict


class IncidentAnswer(enum.StrEnum):
    """Whether the client was throttled."""

    THROTTLED = "throttled"
    """Brokers recorded throttles."""
    COMPUTED = "computed"
    """No throttle is recorded. Under the quotas known here the traffic would have been throttled."""
    POSSIBLE = "possible"
    """As computed, and sums of whole seconds do not decide."""
    CLEAR = "clear"
    """A request log without a gap has every request of the client in this time, and no throttle."""
    UNKNOWN = "unknown"
    """The sources do not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOrigin:
    """The commit that set a limit. ``before``: the value in its parent. ``None``: the entity had none."""

    file: str
    """Relative to the top of the repository."""
    line: int
    commit: str
    committed: datetime.datetime
    author: str
    subject: str
    before: float | None
    applied: datetime.datetime | None = None
    """When a run of an audit file first applied a commit with it. ``None``: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentGroup:
    """One quota group of the client on one broker. Verdict, peak and members are those of the time that ``IncidentReport`` names.

    ``first`` and ``last``: seconds over the limit, UTC. ``None``: there are none, or the traffic does not show them.
    ``since`` and ``until``: when the limit was in effect, within the time that was looked at.
    """

    name: BucketName
    key: str
    broker: int
    entity: Entity | None
    limit: float | None
    verdict: Verdict
    is_cause: bool
    first: datetime.datetime | None
    last: datetime.datetime | None
    seconds_over: int
    active_seconds: int
    peak: float
    peak_bound: PeakBound
    would_pass: float | None
    """The smallest round limit that throttles none of the recorded requests."""
    recommended: float | None
    members: tuple[Member, ...]
    since: datetime.datetime
    until: datetime.datetime
    reason: str | None = None
    origin: LimitOrigin | None = None

    @property
    def share_of_limit(self) -> float | None:
        """The peak, divided by the limit."""
        return None if not self.limit else self.peak / self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedThrottles:
    """What brokers recorded about throttles of this client in the incident, as one source has it.

    ``requests``: throttled requests, where the source has single ones. ``refused``: topics that the controller refused.
    ``seconds``: those in which a throttle began. ``samples``: samples of metrics that show a throttle of the minute before.
    ``longest_ms`` and ``sum_ms``: ``None`` where the source has no times. ``keys``: of the sensors
    that show them, where the source names sensors. Brokers book throttles of mutations as those of request time.
    """

    source: str
    requests: int = 0
    refused: int = 0
    seconds: int = 0
    samples: int = 0
    longest_ms: int | None = None
    sum_ms: int | None = None
    brokers: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingEvidence:
    """Something that is not known, why, and what would show it."""

    what: str
    because: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentStep:
    """What to do next. ``words``: of a command, quoted for a shell. ``text``: lines for a file."""

    title: str
    words: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    text: str | None = None

    @property
    def command(self) -> str | None:
        """The command as one line, to be typed as it is."""
        return " ".join(self.words) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentReport:
    """The whole answer. ``begin`` and ``end`` are of the incident. ``None``: there is none, or its time is not known.

    ``begins_earlier`` and ``goes_on``: the incident reaches an end of the time that was looked at, or of the recording.
    ``assumed``: quotas that were read later, and are taken to be those of this time; what is computed depends on them.
    """

    client: Entity
    cluster: ClusterIdentity
    at: datetime.datetime | None
    since: datetime.datetime
    until: datetime.datetime
    zone: str
    """The time zone for people. All times here are UTC."""
    answer: IncidentAnswer
    begin: datetime.datetime | None = None
    end: datetime.datetime | None = None
    begins_earlier: bool = False
    goes_on: bool = False
    other_incidents: int = 0
    """Further ones of the same client in the time that was looked at."""
    groups: tuple[IncidentGroup, ...] = ()
    """Causes first."""
    limits: Mapping[str, tuple[float, Entity]] = field(default_factory=dict)
    """By key what limited the client, where its traffic is not known."""
    recorded: RecordedThrottles | None = None
    seconds_over: int | None = None
    """Of a computed incident: how many of its seconds are over a limit."""
    assumed: str | None = None
    evidence: tuple[str, ...] = ()
    missing: tuple[MissingEvidence, ...] = ()
    steps: tuple[IncidentStep, ...] = ()

    @property
    def causes(self) -> tuple[IncidentGroup, ...]:
        """The groups that explain the incident."""
        return tuple(group for group in self.groups if group.is_cause)
