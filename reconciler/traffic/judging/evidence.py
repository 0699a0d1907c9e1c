"""What a history has of quota groups beside requests and seconds: samples of metrics, and logged throttles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from reconciler.model import BucketVerdict, RowPlace, Verdict
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.judging.judged_quotas import Quota
from reconciler.traffic.judging.verdicts import worst_first
from reconciler.traffic.kinds import Kind

GAUGE_FOLDS: Final = {
    "amount": "max", "rows": "sum", "first_us": "min", "last_us": "max",
    "throttled": "sum", "since_us": "sum", "since_rows": "sum",
}  # fmt: skip
"""How the samples of one client become one row: the largest, how many, the first and the last time, how many were throttled, and
the time since the samples before them, with how many have one."""
GAUGES: Final = pa.schema(
    [
        ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()), ("ip", pa.string()),
        *((name, pa.int64()) for name in GAUGE_FOLDS),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A broker's own rate of one client, as samples show it.

    ``requests`` of ``series`` counts the samples, ``amount`` of it is the largest, in a second, ``throttled`` counts samples of
    times when a quota throttled the client.
    """

    series: Series
    start_us: int
    end_us: int
    since_us: int = 0
    """The usual time between two samples; 0: not known."""


def gauges_of(grouped: pa.Table) -> tuple[Gauge, ...]:
    """``grouped``: one row for each client, with the columns of ``GAUGES``. Sorted."""
    gauges = (
        Gauge(
            series=Series(
                broker=row["broker"],
                kind=Kind(row["kind"]),
                user=row["user"],
                client_id=row["client_id"],
                ip=row["ip"],
                requests=row["rows"],
                amount=row["amount"],
                throttled=row["throttled"],
                has_tags=True,
            ),
            start_us=row["first_us"],
            end_us=row["last_us"],
            since_us=_since(row),
        )
        for row in grouped.to_pylist()
    )
    return tuple(sorted(gauges, key=lambda gauge: gauge.series.sort_key))


def _since(row: dict[str, int]) -> int:
    """Return the usual time between two samples; where rows do not have it, by the first and the last one."""
    if row["since_rows"]:
        return row["since_us"] // row["since_rows"]
    return (row["last_us"] - row["first_us"]) // (row["rows"] - 1) if row["rows"] > 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Verdicts of such rows. ``rows``: by quota the rows of the report whose clients it limits, before or after, or may limit."""

    verdicts: tuple[BucketVerdict, ...] = ()
    rows: Mapping[Quota, Collection[RowPlace]] = field(default_factory=dict)

    def merge_into(self, verdicts: Sequence[BucketVerdict]) -> tuple[BucketVerdict, ...]:
        """All verdicts, worst first, one for each group, key and broker. ``verdicts``: worst first.

        What requests or whole seconds show of a group stays, unless only a metric proves a throttle.
        """
        merged = {verdict.place: verdict for verdict in verdicts}
        for verdict in self.verdicts:
            known = merged.get(verdict.place)
            if known is None:
                merged[verdict.place] = verdict
                continue
            row = replace(known, metrics=verdict.metrics)
            if verdict.verdict is Verdict.THROTTLED and known.verdict is not Verdict.THROTTLED:
                row = replace(row, verdict=verdict.verdict, reason=verdict.reason)
            elif verdict.recorded.censored and known.verdict is Verdict.CLEAR:
                censored = replace(row.recorded, censored=True)
                row = replace(row, verdict=verdict.verdict, reason=verdict.reason, recorded=censored)
            merged[verdict.place] = row
        return tuple(sorted(merged.values(), key=worst_first))
