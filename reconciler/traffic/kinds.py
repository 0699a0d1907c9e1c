"""The kinds of traffic that a broker counts, and the quota key of each."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from reconciler.model import QuotaKey

NANOSECONDS_A_PERCENT: Final = 1e7
"""Kafka records nanoseconds x 100 / 10^9: percent times seconds of one thread."""


class Kind(enum.StrEnum):
    """What an amount is of. The values are the words of the normal form.

    ``key``: the quota key that limits it. ``amounts_a_unit``: how many amounts are one unit of the limit. ``refuses``: a broker
    refuses what is over the limit and does not record it. ``is_capped``: one throttle is at most one sample long.
    """

    key: QuotaKey
    amounts_a_unit: float
    refuses: bool
    is_capped: bool

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


for _kind, _key, _unit, _refuses, _is_capped in (
    (Kind.PRODUCE, QuotaKey.PRODUCER_BYTE_RATE, 1.0, False, False),
    (Kind.FETCH, QuotaKey.CONSUMER_BYTE_RATE, 1.0, True, False),
    (Kind.REQUEST, QuotaKey.REQUEST_PERCENTAGE, NANOSECONDS_A_PERCENT, False, True),
    (Kind.MUTATION, QuotaKey.CONTROLLER_MUTATION_RATE, 1.0, False, False),
    (Kind.CONNECTION, QuotaKey.CONNECTION_CREATION_RATE, 1.0, True, True),
):
    _kind.key, _kind.amounts_a_unit, _kind.refuses, _kind.is_capped = _key, _unit, _refuses, _is_capped
KEY_OF_KIND: Final[Mapping[Kind, QuotaKey]] = {kind: kind.key for kind in Kind}
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
