"""The kinds of traffic that a broker counts, and the quota key of each."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from reconciler.model import QuotaKey


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
