"""How metrics are read: what a mapping file states of them, and the clients whose names may be in them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from reconciler.traffic.kinds import Kind


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
