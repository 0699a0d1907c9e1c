"""Changes that the history can say nothing about, because it has no traffic of the kind that they limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconciler.model.backtest import NOT_RECORDED
from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Severity
from reconciler.model.quota import QuotaKey
from reconciler.model.source import Span
from reconciler.resolution.levels import QuotaTable
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kinds import KEY_OF_KIND, Kind

_WORDS: Final[Mapping[Kind, str]] = {
    Kind.PRODUCE: "produce requests",
    Kind.FETCH: "fetches",
    Kind.REQUEST: "request times",
    Kind.MUTATION: "created or deleted partitions",
    Kind.CONNECTION: "connections with an address",
}


def unrecorded(
    series: Sequence[Series], before: QuotaTable | None, after: QuotaTable, sources: Mapping[tuple[Entity, str], Span]
) -> Iterator[Finding]:
    """One for each key that changes and has no traffic. ``before``: ``None`` when it is not known; then all values are new."""
    recorded = {one.kind for one in series}
    for kind, key in KEY_OF_KIND.items():
        changed = () if kind in recorded else _changed(key, before or {}, after)
        if not changed:
            continue
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        yield Finding(
            id=NOT_RECORDED,
            severity=Severity.INFO,
            message=(
                f"{key} of {changed[0]}{more} cannot be judged: the recorded traffic has no {_WORDS[kind]}, so nothing is said "
                "of whom the change would hold back"
            ),
            span=next((span for entity in changed if (span := sources.get((entity, key)))), None),
            entity=changed[0],
            key=key,
        )


def _changed(key: QuotaKey, before: QuotaTable, after: QuotaTable) -> tuple[Entity, ...]:
    entities = {entity for table in (before, after) for entity, values in table.items() if key in values}
    differ = (one for one in entities if before.get(one, {}).get(key) != after.get(one, {}).get(key))
    return tuple(sorted(differ, key=lambda entity: entity.sort_key))
