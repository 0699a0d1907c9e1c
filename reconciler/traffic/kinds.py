"""The kinds of traffic that a broker counts, and the quota key of each."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from reconciler.model import QuotaKey

if TYPE_CHECKING:
    import pyarrow as pa

    from reconciler.traffic.traffic_files import Traffic


class Kind(enum.StrEnum):
    """What an amount is of; the words of the normal form."""

    PRODUCE = "produce"
    """Bytes of requests."""
    FETCH = "fetch"
    """Bytes of answers."""
    REQUEST = "request"
    """Nanoseconds of request and network threads."""
    MUTATION = "mutation"
    """Partitions created, added or deleted."""
    CONNECTION = "connection"
    """Connections accepted."""

    @property
    def key(self) -> QuotaKey:
        """The quota key that limits it."""
        return KEY_OF_KIND[self]

    @property
    def amounts_a_unit(self) -> float:
        """How many amounts are one unit of the limit: a request limit is in percent of a thread, its amounts are nanoseconds."""
        return NANOSECONDS_A_PERCENT if self is Kind.REQUEST else 1.0

    @property
    def refuses(self) -> bool:
        """Whether a broker refuses what is over the limit and does not record it: it empties fetches and closes connections."""
        return self in (Kind.FETCH, Kind.CONNECTION)

    @property
    def is_capped(self) -> bool:
        """Whether one throttle is at most one sample long."""
        return self in (Kind.REQUEST, Kind.CONNECTION)


NANOSECONDS_A_PERCENT: Final = 1e7
"""Kafka records nanoseconds x 100 / 10^9: percent times seconds of one thread."""

KEY_OF_KIND: Final[Mapping[Kind, QuotaKey]] = {
    Kind.PRODUCE: QuotaKey.PRODUCER_BYTE_RATE,
    Kind.FETCH: QuotaKey.CONSUMER_BYTE_RATE,
    Kind.REQUEST: QuotaKey.REQUEST_PERCENTAGE,
    Kind.MUTATION: QuotaKey.CONTROLLER_MUTATION_RATE,
    Kind.CONNECTION: QuotaKey.CONNECTION_CREATION_RATE,
}
BYTES: Final = (Kind.PRODUCE, Kind.FETCH)
"""Judged by the sampled rate of bytes."""
SAMPLED: Final = (*BYTES, Kind.REQUEST, Kind.CONNECTION)
"""Judged by a sampled rate; mutations have a token bucket."""


class Measure(enum.StrEnum):
    """What the samples of a series are."""

    RATE = "rate"
    """The rate that the broker compares with the limit: bytes/s, percent of a thread, mutations/s, connections/s."""
    THROTTLE_TIME = "throttle-time"
    """Milliseconds: the mean of the throttles of the last minute, NaN without one."""
    TOKENS = "tokens"
    """Tokens left of a controller mutation quota, negative in debt."""
    QUEUE_SIZE = "queue-size"
    """Connections of all clients that the broker has muted for this kind of quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRule:
    """How series of other names are read. ``name`` is a glob. A label without a name has the usual spellings."""

    name: str
    kind: Kind
    measure: Measure = Measure.RATE
    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    broker: str | None = None
    is_plain: bool = False
    """Whether users and client-ids are in the labels as they are: neither percent-encoded nor quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientNames:
    """Names of users and client-ids. Each user may use each client-id."""

    users: frozenset[str] = frozenset()
    client_ids: frozenset[str] = frozenset()

    def __or__(self, other: ClientNames) -> ClientNames:
        return ClientNames(users=self.users | other.users, client_ids=self.client_ids | other.client_ids)


class ColumnMapping(Protocol):
    """The other columns that files have, or the other metrics of a server, as a mapping file states them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names; none where it has metrics."""
        ...

    @property
    def metrics(self) -> tuple[MetricRule, ...]:
        """How series of other names are read."""
        ...

    @property
    def semantics(self) -> str:
        """What a row is: ``EVENT``, or an amount of some time."""
        ...

    @property
    def delimiter(self) -> str:
        """Between the cells of CSV."""
        ...

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the canonical traffic schema, of a batch with these columns."""
        ...

    def require_columns(self, where: str, columns: Sequence[str]) -> None:
        """Raise ``TrafficError`` when a column is missing. ``where`` has ``columns``."""
        ...

    def traffic(self, arguments: Sequence[str]) -> Traffic:
        """The files that the arguments name. Raises ``TrafficError`` and ``UsageError``."""
        ...
