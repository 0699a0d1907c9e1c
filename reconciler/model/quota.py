"""Quota keys: names, types, units, and where each may be set (Kafka's ``QuotaConfig``), and values to compute for each broker."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reconciler.model.entity import EntityType
from reconciler.model.finding import Span


class ValueType(enum.StrEnum):
    """The type a broker declares for a key. On the wire every value is a 64-bit float."""

    LONG = "long"
    INT = "int"
    DOUBLE = "double"


class QuotaKey(enum.StrEnum):
    """The five client quota keys. All limits are per broker (mutations: per active controller)."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    CONNECTION_CREATION_RATE = "connection_creation_rate"

    @property
    def value_type(self) -> ValueType:
        """The broker's declared type."""
        return _VALUE_TYPES[self]

    @property
    def unit(self) -> str:
        """The unit in words, for people."""
        return _UNITS[self]

    @property
    def unreachable(self) -> float:
        """The least value that no client of today's hardware reaches: from here on a limit is none. The docs explain it.

        A byte rate of 1 TB/s is ten times the fastest network interface. For the others it is a million: percent (ten thousand
        threads), partitions or connections a second.
        """
        return 1e12 if self.is_bytes else 1e6

    @property
    def is_bytes(self) -> bool:
        """True for the byte rates, where sizes such as ``10MiB`` may be written."""
        return self in (QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE)


_VALUE_TYPES: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: ValueType.LONG,
    QuotaKey.CONSUMER_BYTE_RATE: ValueType.LONG,
    QuotaKey.REQUEST_PERCENTAGE: ValueType.DOUBLE,
    QuotaKey.CONTROLLER_MUTATION_RATE: ValueType.DOUBLE,
    QuotaKey.CONNECTION_CREATION_RATE: ValueType.INT,
}

_UNITS: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: "bytes/s per broker",
    QuotaKey.CONSUMER_BYTE_RATE: "bytes/s per broker",
    QuotaKey.REQUEST_PERCENTAGE: "% of one thread per broker",
    QuotaKey.CONTROLLER_MUTATION_RATE: "partitions/s per controller",
    QuotaKey.CONNECTION_CREATION_RATE: "connections/s per broker",
}

CLIENT_KEYS: Final = (
    QuotaKey.PRODUCER_BYTE_RATE,
    QuotaKey.CONSUMER_BYTE_RATE,
    QuotaKey.REQUEST_PERCENTAGE,
    QuotaKey.CONTROLLER_MUTATION_RATE,
)
IP_KEYS: Final = (QuotaKey.CONNECTION_CREATION_RATE,)

KNOWN_KEYS: Final = frozenset(key.value for key in QuotaKey)
"""Wire names of the keys this tool may write. A cluster may have others, which are shown and kept."""

LONG_MAX: Final = float(2**63)
"""The largest double that brokers accept for a LONG key: 2^63 itself passes, because the bound is compared as a double."""
INT_MAX: Final = float(2**31 - 1)


def legal_keys(entity_types: tuple[str, ...]) -> tuple[QuotaKey, ...]:
    """The quota keys that Kafka takes for an entity of these types. Empty for a shape that Kafka does not have."""
    return IP_KEYS if entity_types == (EntityType.IP.value,) else CLIENT_KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTotal:
    """``{clusterTotal: 60MiB, perBroker: 25MiB}``: what all brokers together allow, and the most that each one allows.

    On each broker the smaller one applies: its even part of the total, or ``per_broker``. Both are in the unit of the key.
    """

    value: float
    """What all brokers together allow, in the unit of the key."""
    per_broker: float | None = None
    """The most that each broker allows, less than ``value``. ``None``: only the total limits."""
    brokers: int | None = None
    """Computed: among how many brokers the total is divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportional:
    """``{proportional: 60MiB, to: leaders}``: a total that brokers share by the partitions they lead. ``value``: the total.

    ``topics``: those whose partitions count. ``None``: all topics.
    """

    value: float
    """The total that brokers share by the partitions they lead, in the unit of the key."""
    topics: tuple[str, ...] | None = None
    """Those whose partitions count. Absent: all topics."""
    leaders: tuple[tuple[int, int], ...] | None = None
    """Computed: how many of the partitions each broker leads, by id."""
    partitions: int | None = None
    """Computed: how many partitions there are, those without a leader included."""

    @property
    def most(self) -> int:
        """Return the number of partitions that the broker with the most leaders leads."""
        return max((count for _, count in self.leaders or ()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPart:
    """What a member of a group has of the group's limit."""

    group: str
    """The group whose limit this is. Its members share it, or each has an equal part."""
    members: int | None = None
    """Among how many members the limit is divided. ``None``: the plugin of groups lets all of them share it."""
    limit: float
    """Of the whole group, on each broker."""


WrittenUnit: TypeAlias = ClusterTotal | Proportional
"""A value of a manifest that is computed for a cluster."""
QuotaUnit: TypeAlias = WrittenUnit | GroupPart
"""How a value was declared that is not a number for each broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitQuota:
    """One value of a manifest that has to be computed for a cluster before it is a number."""

    unit: WrittenUnit
    source: Span
    text: str
    """The value as written, e.g. ``clusterTotal: 60MiB``."""
    profile: str | None = None
    """The profile that sets it. Then ``source`` is a place in that profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSpread:
    """Which brokers lead the partitions of a cluster."""

    partitions: tuple[tuple[int, int], ...] = ()
    """How many partitions each broker leads, by id. Those that lead none are not here."""
    leaderless: int = 0
    """Partitions without a leader."""
    by_topic: Mapping[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    """By topic: the leader of each partition that has one, and how many partitions there are. Empty: not known."""
    topics: Mapping[str, int] = field(default_factory=dict)
    """By topic, how many partitions it has, in a snapshot of a cluster with limits of mutations. Empty: not known."""
    absent: tuple[int, ...] = ()
    """Brokers that have replicas and are not up, sorted."""

    @property
    def topic_partitions(self) -> Mapping[str, int]:
        """Return the number of partitions of each topic, as far as it is known."""
        return self.topics or {name: count for name, (_, count) in self.by_topic.items()}

    def largest_share(self, brokers: int) -> float | None:
        """Return how many times its even part the broker with the most leaders leads. ``None`` without any leader."""
        led = sum(count for _, count in self.partitions)
        return max(count for _, count in self.partitions) * brokers / led if led else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """What totals are computed from."""

    brokers: tuple[int, ...] = ()
    """Ids of the brokers among which totals are divided, sorted. Empty when the manifests declare no total."""
    leaders: LeaderSpread | None = None
    """Which of them lead partitions, where that was read."""
