"""What a simulation changes about recorded traffic, and where the traffic then is."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from reconciler.model.entity import Entity
from reconciler.model.verdict import BucketName, Verdict


class TrafficSpread(enum.StrEnum):
    """How the traffic that changes its broker is divided."""

    NONE = "none"
    """None does."""
    EVEN = "even"
    """In equal parts."""
    LEADERS = "leaders"
    """By the partitions that each broker leads in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerShare:
    """The share, 0 to 1, of the traffic of one broker that another one gets, or keeps."""

    source: int
    """The broker that has the traffic today."""
    target: int
    """The broker that gets it, or keeps it."""
    share: float
    """Of its traffic, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLimit:
    """A quota of an entity that changes. ``declared``: the text of a manifest from which both numbers are computed."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    key: str
    """The quota key."""
    before: float | None
    """``None``: unlimited, or not known."""
    after: float | None
    """``None``: unlimited, or not known."""
    declared: str | None = None
    """What the numbers are computed from, as the manifest declares it. ``None`` for plain numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """The average of all recorded clients on one broker, in the unit of the key. ``None``: the broker is not there."""

    broker: int
    """Broker id."""
    key: str
    """The quota key."""
    before: float | None
    """Today. ``None``: the broker is not there."""
    after: float | None
    """Then. ``None``: the broker is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingVerdict:
    """The worst verdict of a quota group in the recorded traffic, under the quotas from before. ``None``: not judged."""

    bucket: BucketName
    """Kafka's metric tags, or those of a quota callback, names as they are. An absent tag is absent."""
    key: str
    """The quota key."""
    verdict: Verdict
    """The verdict for today's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBrokers:
    """The brokers with recorded traffic, before it moves."""

    brokers: tuple[int, ...] = ()
    """The brokers that were recorded."""
    gaps: tuple[str, ...] = ()
    """What the recording of each broker lacks, as sentences without their end marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """Verdicts of quota groups at other times than the report's."""

    today: tuple[StandingVerdict, ...] = ()
    """Of the quota groups that are throttled, or may be: what they are today."""
    at_once: tuple[StandingVerdict, ...] = ()
    """Of the quota groups whose limit the next apply changes: their verdicts until then, with the number that Kafka still has."""
    after_apply: tuple[StandingVerdict, ...] = ()
    """The same after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The situation that a report is about. ``stands_for``: the one broker that is judged where all are alike."""

    title: str
    """The situation as words that begin a sentence: ``Without broker 3``."""
    assumptions: tuple[str, ...] = ()
    """How the traffic is changed, as sentences without their end marks."""
    brokers_before: tuple[int, ...]
    """Ids of the brokers of the history and of the cluster."""
    brokers_after: tuple[int, ...]
    """Ids of the brokers that have traffic then."""
    factor: float = 1.0
    """What all amounts are multiplied by."""
    spread: TrafficSpread = TrafficSpread.NONE
    """How traffic that changes its broker is divided. none: it does not. Even: in equal parts. Leaders: by the leaders of
    partitions in a file.
    """
    leaders_file: str | None = None
    """The file with the leaders. ``None`` without one."""
    shares: tuple[BrokerShare, ...] = ()
    """Only of brokers whose traffic does not stay."""
    stands_for: int | None = None
    """The only broker with verdicts where all brokers are alike. ``None`` otherwise."""
    recorded: RecordedBrokers = field(default_factory=RecordedBrokers)
    limits: tuple[SimulatedLimit, ...] = ()
    """Quotas that are other numbers then."""
    loads: tuple[BrokerLoad, ...] = ()
    """The average of all clients on each broker."""
    standings: Standings = field(default_factory=Standings)
