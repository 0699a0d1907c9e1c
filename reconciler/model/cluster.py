"""What a Cluster manifest declares: which cluster, what this repository owns there, guards, freeze windows, backtest, traffic.

These are data: clock, time zone rules and guards are applied by ``policy``, and a metrics server is read by ``workflows``.
"""

from __future__ import annotations

import datetime
import enum
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self, TypeAlias

from reconciler.model.entity import Entity, Selector, any_matches
from reconciler.model.finding import Span
from reconciler.model.state import QuotaProfile

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""The words of a manifest, at the index that ``datetime.weekday`` gives the day."""

_MATCHER: Final = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)

DEFAULT_DAYS: Final = 1


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


class WindowKind(enum.StrEnum):
    """``deny``: frozen inside. ``allow``: where there are such windows, frozen outside all of them. Deny beats allow."""

    DENY = "deny"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """From one moment (with its offset) to another. An absent end is open: frozen until the window is removed."""

    start: datetime.datetime | None = None
    end: datetime.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """On some weekdays, by the wall clock of a time zone.

    ``start`` and ``end`` are minutes after midnight, ``end`` at most 1440. An ``end`` at or before ``start`` is on the next day,
    and the window belongs to the day on which it begins.
    """

    days: frozenset[int]
    start: int = 0
    end: int = 1440
    time_zone: str = "UTC"


Recurrence: TypeAlias = Once | Weekly


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeWindow:
    """One window of a Cluster manifest."""

    kind: WindowKind
    when: Recurrence
    reason: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeLimit:
    """How many entities, in percent of those in scope and as a number. ``set_in`` is absent for the built-in limit.

    ``minimum``: the percentage applies only while more entities than this are in scope. Of three entities, one is a third.
    """

    percent: float
    count: int
    minimum: int = 0
    set_in: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionLimit:
    """A new value below ``factor`` times the current one is a large reduction. ``keys`` has other factors for some keys."""

    factor: float = 0.5
    keys: Mapping[str, float] = field(default_factory=dict)
    set_in: Span | None = field(default=None, compare=False)

    def of(self, key: str) -> float:
        """The factor for one key."""
        return self.keys.get(key, self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLimit:
    """How many entities. ``None``: the guard warns and never refuses."""

    count: int | None = None
    set_in: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLimits:
    """``spec.guards`` of a Cluster manifest. Removals trip above either of their two numbers, changes above both."""

    too_many_removals: VolumeLimit = field(default_factory=lambda: VolumeLimit(percent=10.0, count=5, minimum=5))
    too_many_changes: VolumeLimit = field(default_factory=lambda: VolumeLimit(percent=30.0, count=10))
    large_reduction: ReductionLimit = field(default_factory=ReductionLimit)
    unknown_current_keys: CountLimit = field(default_factory=CountLimit)


class Prune(enum.StrEnum):
    """What happens to whole entities in scope that no manifest declares."""

    NEVER = "never"
    CONFIRM = "confirm"
    ALWAYS = "always"


class RebalancePolicy(enum.StrEnum):
    """What happens to parts of a total when brokers come or go.

    ``never``: a part that the cluster has stays. ``confirm``: it changes once guard ``rebalance`` is accepted. ``always``: it
    changes with the next apply.
    """

    NEVER = "never"
    CONFIRM = "confirm"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What this repository owns on a cluster. Nothing outside is ever written."""

    include: tuple[Selector, ...] = ()
    """Empty: every entity of the three known types."""
    exclude: tuple[Selector, ...] = ()

    def contains(self, entity: Entity) -> bool:
        """True when the entity is owned. Shapes that this tool does not know never are."""
        if not entity.is_known:
            return False
        if self.include and not any_matches(self.include, entity):
            return False
        return not (self.exclude and any_matches(self.exclude, entity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How to reach a cluster. Secrets are only ever in the properties file, never here."""

    bootstrap_servers: tuple[str, ...] = ()
    properties: str | None = None
    """Path of a Java ``client.properties`` file."""
    zookeeper: str | None = None
    """``host:port,host:port/chroot`` for clusters whose quotas live in ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A guard accepted in the manifest, with a reason and (inclusive) last day. ``match`` narrows it to some entities."""

    guard: str
    reason: str
    until: datetime.date
    match: Selector | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackClass:
    """A Python class that stands for the brokers' ``client.quota.callback.class``. It is code: never loaded without trust."""

    name: str
    """``package.module:Class``."""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailRule:
    """Buckets that fail a backtest: a bucket that matches every given field. ``None`` and empty match any bucket."""

    verdicts: tuple[Verdict, ...]
    owners: tuple[str, ...] = ()
    """Names of owners, of which one declares the quota, or has a client of the bucket among its entities."""
    match: Selector | None = None
    """Of a client in the bucket, as the entity of its user and client id."""
    keys: tuple[str, ...] = ()
    seconds: int = 1
    """The fewest seconds over the limit. A verdict that knows of none is not asked for them."""
    unchanged: bool = False
    """Buckets that the change leaves as they are, too."""
    reason: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryNeeds:
    """How much a history must show before a bucket in it is called clear."""

    hours: float = 24.0
    """From the first to the last request. A day has its own peaks: a night without traffic clears no limit."""
    coverage_percent: float = 95.0
    """Of the minutes of the history, those that are in no hole of a broker's recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestPolicy:
    """``spec.backtest``. Without rules nothing fails but by ``--fail-on``."""

    history: HistoryNeeds = field(default_factory=HistoryNeeds)
    fail: tuple[FailRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatcher:
    """A condition on a label of series, as in PromQL: ``=``, ``!=``, ``=~`` or ``!~``."""

    label: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """``cluster="prod"``. Shells take the quotes away, so they may be missing. Raises ``ValueError`` for another form."""
        if not (match := _MATCHER.fullmatch(text)):
            raise ValueError(text)
        label, operator, value = match.groups()
        if value[:1] in ('"', "'"):
            if len(value) < 2 or value[-1] != value[0]:
                raise ValueError(text)
            value = json.loads(value) if value[0] == '"' else value[1:-1]
            if not isinstance(value, str):
                raise ValueError(text)
        return cls(label=label, operator=operator, value=value)

    def __str__(self) -> str:
        """Return the matcher in PromQL."""
        return f"{self.label}{self.operator}{json.dumps(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricServer:
    """A Prometheus server. ``address`` begins with ``http``. ``http_config``: the file with its login, never the login itself."""

    address: str
    http_config: str | None = None
    match: tuple[LabelMatcher, ...] = ()
    days: int = DEFAULT_DAYS
    """How many days before now a backtest reads."""

    @property
    def kind(self) -> TrafficKind:
        """Return the kind of the place, as ``TrafficPlace.kind`` has it."""
        return TrafficKind.PROMETHEUS


class TrafficKind(enum.StrEnum):
    """What ``spec.traffic`` of a Cluster manifest names."""

    PROMETHEUS = "prometheus"
    """A server with samples."""
    FOLDER = "folder"
    """A path of this machine."""
    ADDRESS = "address"
    """Files or a table that Spark finds."""
    REFERENCE = "reference"
    """A git reference, whose commit has the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficPlace:
    """Recorded traffic in files. ``place``: as ``--traffic`` takes it, or a git reference in full (``refs/...``)."""

    place: str
    days: int | None = None
    """How many days before now a backtest reads of an address; ``None``: all."""

    def since(self, until: datetime.datetime) -> datetime.datetime | None:
        """Return the moment from which a backtest reads. ``None``: it reads all, as of every source but an address."""
        if self.days is None or self.kind is not TrafficKind.ADDRESS:
            return None
        return until - datetime.timedelta(days=self.days)

    @property
    def kind(self) -> TrafficKind:
        """Return the kind of the place, from how it is written: a git reference, an address or a folder."""
        if self.place.startswith("refs/"):
            return TrafficKind.REFERENCE
        return TrafficKind.ADDRESS if self.place.startswith("table:") or "://" in self.place else TrafficKind.FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyRules:
    """What a Cluster manifest demands of a change: ``protected``, ``guards``, ``freeze`` and ``accept``."""

    protected: tuple[Selector, ...] = ()
    guards: GuardLimits = field(default_factory=GuardLimits)
    freeze: tuple[FreezeWindow, ...] = ()
    accept: tuple[Acceptance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredBrokers:
    """What a Cluster manifest states about the brokers, which no request of Kafka's protocol answers."""

    settings: Mapping[str, int] = field(default_factory=dict)
    """Settings that decide how quotas are enforced, by Kafka's names. Those left out have Kafka's defaults."""
    callback: CallbackClass | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """One Cluster manifest, or the built-in stand-in when the manifests have none (``name`` is then ``None``).

    Two are equal when they mean the same, wherever they are written.
    """

    name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    connection: Connection | None = None
    scope: Scope = field(default_factory=Scope)
    prune: Prune = Prune.NEVER
    rebalance: RebalancePolicy = RebalancePolicy.CONFIRM
    safety: SafetyRules = field(default_factory=SafetyRules)
    backtest: BacktestPolicy = field(default_factory=BacktestPolicy)
    brokers: DeclaredBrokers = field(default_factory=DeclaredBrokers)
    traffic: MetricServer | TrafficPlace | None = None
    """Where backtests without another source read."""
    profiles: Mapping[str, QuotaProfile] = field(default_factory=dict, compare=False)
    """By name, what this cluster adds to the profiles of the repository."""
    span: Span | None = field(default=None, compare=False)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)
    """Where the fields of ``spec`` are, by their names in the manifest. Those that are not written are not here."""

    def place(self, name: str) -> Span | None:
        """Return the place where a field of ``spec`` is set, or that of the document."""
        return self.places.get(name, self.span)


_PLAIN: Final = re.compile(r"(?!.*(?:\.\.|\.lock$|\.$))[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def slug_of(name: str) -> str:
    """A cluster's name where only letters, digits and ``. _ -`` may be: itself if it can, else with eight digits of its hash.

    Two names never share one that a hash was needed for, short of a collision of SHA-256 in 32 bits.
    """
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:60].strip("-")
    return f"{plain or 'cluster'}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
