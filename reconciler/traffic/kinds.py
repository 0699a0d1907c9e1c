"""What a broker counts, and the quota key that limits it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from reconciler.model.quota import QuotaKey


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


KEY_OF_KIND: Final[Mapping[Kind, QuotaKey]] = {
    Kind.PRODUCE: QuotaKey.PRODUCER_BYTE_RATE,
    Kind.FETCH: QuotaKey.CONSUMER_BYTE_RATE,
    Kind.REQUEST: QuotaKey.REQUEST_PERCENTAGE,
    Kind.MUTATION: QuotaKey.CONTROLLER_MUTATION_RATE,
    Kind.CONNECTION: QuotaKey.CONNECTION_CREATION_RATE,
}
BYTES: Final = (Kind.PRODUCE, Kind.FETCH)
"""Judged by the sampled rate of bytes."""
