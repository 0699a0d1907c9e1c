"""Declared quotas that limited no recorded client, and changed quotas without recorded traffic."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model.entity import Entity
from reconciler.model.quota import QuotaKey

_TRAFFIC_OF_KEY: Final[Mapping[str, str]] = {
    QuotaKey.PRODUCER_BYTE_RATE: "produce requests",
    QuotaKey.CONSUMER_BYTE_RATE: "fetches",
    QuotaKey.REQUEST_PERCENTAGE: "request times",
    QuotaKey.CONTROLLER_MUTATION_RATE: "created or deleted partitions",
    QuotaKey.CONNECTION_CREATION_RATE: "connections with an address",
}


class UnusedReason(enum.StrEnum):
    """Why a declared quota limited no client in the history."""

    NO_CLIENT = "no-recorded-client"
    HIDDEN = "hidden-by-stronger-quotas"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedQuota:
    """A declared quota that won for no recorded client."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    key: str
    """The quota key."""
    value: float
    """``None``: unlimited, or not known."""
    reason: UnusedReason
    """No-recorded-client: no recorded client uses it. Hidden-by-stronger-quotas: quotas of a stronger precedence level
    override it for every recorded client.
    """


class NotJudged(enum.StrEnum):
    """Why the history shows nothing about a changed quota."""

    NO_TRAFFIC = "no-traffic-of-this-kind"
    """The history has no traffic at all of the kind that the key limits."""
    NO_CLIENT = "no-recorded-client"
    OVERRIDDEN = "overridden-for-every-recorded-client"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedChange:
    """A quota that changes and limits no recorded traffic, before or after. Nothing is known about its effect.

    ``before`` and ``after``: the entity's own value, ``None`` where it has none (or, before, where it is not known).
    """

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    key: str
    """The quota key."""
    before: float | None
    """The entity's own value. ``None`` where it has none, or where it is not known."""
    after: float | None
    """``None``: unlimited, or not known."""
    reason: NotJudged
    """Why the history shows nothing about the quota."""

    @property
    def why(self) -> str:
        """The reason as a clause without its end mark."""
        match self.reason:
            case NotJudged.NO_TRAFFIC:
                return f"the history has no {_TRAFFIC_OF_KEY.get(self.key, 'traffic of this kind')}"
            case NotJudged.NO_CLIENT:
                return "no recorded client uses this quota"
            case NotJudged.OVERRIDDEN:
                return "stronger quotas override it for every recorded client"
