"""Why a client was throttled at a time: the quota groups, who filled them, who set the limits, and what is not known."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.model import Advice, BucketVerdict, ClusterIdentity, Entity, Member, PeakRate, RowLimits, SecondsOver

WHETHER: Final = "whether the client was throttled"
"""What is not known, where the answer is not."""


class IncidentAnswer(enum.StrEnum):
    """Whether the client was throttled."""

    THROTTLED = "throttled"
    """Brokers recorded throttles."""
    COMPUTED = "computed"
    """No throttle is recorded. Under the quotas known here the traffic would have been throttled."""
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
    """The line of the value in that commit."""
    commit: str
    """The commit that set the value."""
    committed: datetime.datetime
    """When it was committed."""
    author: str
    """Its author, as git has it."""
    subject: str
    """The first line of its message."""
    before: float | None
    """The value before it. ``None`` is not set."""
    applied: datetime.datetime | None = None
    """When a run of an audit file first applied a commit with it. ``None``: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentGroup:
    """One quota group of the client on one broker. ``since`` and ``until``: of its limit, within the time that was looked at."""

    row: BucketVerdict
    """Its verdict, limit, peak and members in the time of the incident, under the quotas of that time."""
    is_cause: bool
    """Whether the group explains the incident."""
    first: datetime.datetime | None
    """The first second over the limit. ``None`` is none, or not known."""
    last: datetime.datetime | None
    """The last second over the limit. ``None`` is none, or not known."""
    seconds_over: int
    """Seconds over the limit."""
    since: datetime.datetime
    """From when on the limit was in effect, in the time that was looked at."""
    until: datetime.datetime
    """Until when."""
    origin: LimitOrigin | None = None
    """The commit that set the limit. ``None`` is not known."""

    @property
    def limit(self) -> float | None:
        """The limit in effect. ``None`` is unlimited."""
        return self.row.limits.after

    @property
    def entity(self) -> Entity | None:
        """The entity whose quota applies. ``None`` is unlimited."""
        return self.row.limits.entity

    @property
    def members(self) -> tuple[Member, ...]:
        """The clients of the quota group, the largest first: by their part of what was over the limit, where that is known."""

        def order(member: Member) -> float:
            return -(member.share if member.share_of_excess is None else member.share_of_excess)

        return tuple(sorted(self.row.recorded.members, key=order))

    @property
    def share_of_limit(self) -> float | None:
        """The peak, divided by the limit."""
        return None if not self.limit else self.row.peak.rate / self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedThrottles:
    """What brokers recorded about throttles of this client in the incident, as one source has it."""

    requests: int = 0
    """Throttled requests, where the source has single ones."""
    refused: int = 0
    """Topics that the controller refused with error 89."""
    seconds: int = 0
    """Seconds in which a throttle began."""
    samples: int = 0
    """Samples of metrics that show a throttle of the minute before."""
    longest_ms: int | None = None
    """The longest throttle, in milliseconds. ``None`` is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingEvidence:
    """Something that is not known, why, and what would show it."""

    what: str
    """What is not known."""
    because: str
    """Why."""
    remedy: str | None = None
    """What would show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSpan:
    """When the client was throttled, or would have been."""

    begin: datetime.datetime
    """When the incident began."""
    end: datetime.datetime | None
    """When its last throttle ended, or its last second over a limit. ``None`` is not known."""
    begins_earlier: bool
    """Whether the recording or the time looked at begins there."""
    goes_on: bool
    """Whether the recording or the time looked at ends there."""
    others: int
    """Further incidents of the same client in the time that was looked at."""
    seconds_over: int | None
    """Of a computed incident: how many of its seconds are over a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentReport:
    """The whole answer. ``assumed``: what is computed depends on quotas that were read later."""

    client: Entity
    """The client that was asked about."""
    cluster: ClusterIdentity
    """The cluster, as far as it is known."""
    at: datetime.datetime | None
    """--at. ``None`` is not given."""
    since: datetime.datetime
    """The begin of the time that was looked at."""
    until: datetime.datetime
    """Its end."""
    answer: IncidentAnswer
    """Throttled: brokers recorded throttles. computed: none is recorded, and the traffic is over a limit. clear: a request
    log without a gap has no throttle. unknown: nothing decides.
    """
    span: IncidentSpan | None = None
    """The incident at the asked moment or nearest to it. ``None``: there is none, or its time is not known."""
    groups: tuple[IncidentGroup, ...] = ()
    """Causes first."""
    recorded: RecordedThrottles | None = None
    """The throttles of the incident that brokers recorded. ``None`` is none."""
    assumed: str | None = None
    """Quotas that were read later than this time. What is computed takes them to be those of the time. ``None`` is none."""
    evidence: tuple[str, ...] = ()
    """What the answer rests on, as sentences without their end mark."""
    missing: tuple[MissingEvidence, ...] = ()
    """What is not known."""

    @property
    def causes(self) -> tuple[IncidentGroup, ...]:
        """The groups that explain the incident."""
        return tuple(group for group in self.groups if group.is_cause)


INCIDENT: Final = Document(
    cls=IncidentReport,
    name="why",
    title="kafka-quotas why",
    codec=VALUES.extended(
        {
            Advice: row("would_pass=safe recommended"),
            BucketVerdict: row("bucket=name key broker verdict reason *limits *over *peak *advice"),
            IncidentGroup: row("*row since until cause=is_cause first last seconds_over members origin"),
            IncidentReport: row("client cluster at since until answer incident=span assumed recorded groups evidence missing"),
            PeakRate: row("peak=rate peak_bound=bound"),
            RowLimits: row("entity limit=after"),
            SecondsOver: row("active_seconds=active"),
            Member: row("user client_id share share_of_excess requests"),
        }
    ),
)
