"""Which quota group a recorded throttle belongs to.

Brokers book throttles of mutations as those of request time. So a group far below its limit that shows a throttle passes it on to
the mutation quota of the same client.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.features.insight.headroom.loads import GroupLoad
from reconciler.model import QuotaKey

_LEAST_SHARE: Final = 0.3
"""A group that reaches less of its limit in the last minute than this did not throttle anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoad:
    """A load, and its largest rate in the last minute."""

    load: GroupLoad
    peak: float


def attribute_throttles(loads: Sequence[MeasuredLoad]) -> list[GroupLoad]:
    """The loads with each throttle at the group whose limit explains it; where none does, it stays where it is shown."""
    made = [measured.load for measured in loads]
    for place, measured in enumerate(loads):
        if measured.load.throttling is None or _is_near(measured):
            continue
        target = next(_explaining(measured, loads), None)
        if target is None:
            continue
        moved = made[target].throttling or measured.load.throttling
        made[place] = replace(made[place], throttling=None)
        made[target] = replace(made[target], throttling=moved)
    return made


def _explaining(measured: MeasuredLoad, loads: Sequence[MeasuredLoad]) -> Iterator[int]:
    """The places of groups of the same client and broker that may have throttled in its place."""
    load = measured.load
    for place, other in enumerate(loads):
        same = other.load.broker == load.broker and _may_share_a_client(load.tags, other.load.tags)
        if not same or other.load.limit is None:
            continue
        if load.key is QuotaKey.REQUEST_PERCENTAGE and other.load.key is QuotaKey.CONTROLLER_MUTATION_RATE:
            yield place


def _is_near(measured: MeasuredLoad) -> bool:
    limit = math.inf if measured.load.limit is None else measured.load.limit
    return measured.peak >= limit * _LEAST_SHARE


def _may_share_a_client(tags: Mapping[str, str], others: Mapping[str, str]) -> bool:
    common = tags.keys() & others.keys()
    return bool(common) and all(tags[tag] == others[tag] for tag in common)
