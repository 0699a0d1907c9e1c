"""How near quota groups are to their limits, as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.insight.headroom.loads import GroupLoad, Headroom, OwnerLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomAnswer:
    """The quota groups that were asked for, and the owners of all groups with limits."""

    headroom: Headroom
    owners: tuple[OwnerLoad, ...]
    """Owners in the order of their worst groups."""


def percent_of_limit(group: GroupLoad) -> float | None:
    """Rate divided by limit, in percent. ``None`` without a limit."""
    return None if group.share is None else group.share * 100


def percent_of_worst(load: OwnerLoad) -> float | None:
    """The same of the group that is nearest to its limit."""
    return percent_of_limit(load.worst)


LOADS: Final = VALUES.extended(
    {
        GroupLoad: row(
            "broker key bucket=tags rate limit percent trend throttled=throttling source level owner tokens?",
            percent=percent_of_limit,
        ),
        Headroom: row("at groups muted notes"),
        OwnerLoad: row("owner groups above throttled percent", percent=percent_of_worst),
    }
)
"""Of quota groups at their moment, for this document and for reports."""
HEADROOM: Final = Document(
    cls=HeadroomAnswer,
    name="headroom",
    title="kafka-quotas headroom",
    codec=LOADS.extended({Headroom: row("cluster at groups muted notes"), HeadroomAnswer: row("*headroom owners")}),
)
