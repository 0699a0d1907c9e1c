"""Quota keys: names, declared types, units, and where each may be set (Kafka's ``QuotaConfig``)."""

from __future__ import annotations

import enum
from typing import Final

from reconciler.model.entity import EntityType


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
