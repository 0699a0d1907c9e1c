"""What a simulation changes about recorded traffic, and where the traffic then is."""

from __future__ import annotations

import enum
from dataclasses import dataclass

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
    target: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLimit:
    """A quota of an entity that changes. ``declared``: the text of a manifest from which both numbers are computed."""

    entity: Entity
    key: str
    before: float | None
    after: float | None
    declared: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """The average of all recorded clients on one broker, in the unit of the key. ``None``: the broker is not there."""

    broker: int
    key: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRates:
    """The average of one client on a broker, in the unit of its key."""

    broker: int
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedTraffic:
    """A client whose traffic moves between brokers: those on which it changes."""

    user: str | None
    client_id: str | None
    ip: str | None
    key: str
    brokers: tuple[BrokerRates, ...]

    @property
    def gained(self) -> float:
        """What brokers get more of it."""
        return sum(max(0.0, rates.after - rates.before) for rates in self.brokers)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingVerdict:
    """The worst verdict of a quota group in the recorded traffic, under the quotas from before. ``None``: not judged."""

    bucket: BucketName
    key: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The situation that a report is about. ``stands_for``: the one broker that is judged where all are alike."""

    title: str
    """The situation as words that begin a sentence: ``Without broker 3``."""
    assumptions: tuple[str, ...] = ()
    """How the traffic is changed, as sentences without their end marks."""
    brokers_before: tuple[int, ...]
    brokers_after: tuple[int, ...]
    factor: float = 1.0
    spread: TrafficSpread = TrafficSpread.NONE
    leaders_file: str | None = None
    shares: tuple[BrokerShare, ...] = ()
    """Only of brokers whose traffic does not stay."""
    stands_for: int | None = None
    recorded_brokers: tuple[int, ...] = ()
    recorded_gaps: tuple[str, ...] = ()
    """What the recording of each broker lacks, as sentences without their end marks."""
    limits: tuple[SimulatedLimit, ...] = ()
    loads: tuple[BrokerLoad, ...] = ()
    landed: tuple[LandedTraffic, ...] = ()
    """The largest ones, the largest first."""
    landed_in_all: int = 0
    today: tuple[StandingVerdict, ...] = ()
    """Of the quota groups that are throttled, or may be: what they are today."""
    at_once: tuple[StandingVerdict, ...] = ()
    """Of the quota groups whose limit the next apply changes: their verdicts until then, with the number that Kafka still has."""
    after_apply: tuple[StandingVerdict, ...] = ()
    """The same after it."""
