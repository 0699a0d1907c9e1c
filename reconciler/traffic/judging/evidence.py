"""What a history has of quota groups beside requests and seconds: samples and averages of metrics, and logged throttles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from reconciler.model import BucketVerdict, MetricSemantics, RowPlace, Verdict
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.judging.judged_quotas import Quota
from reconciler.traffic.judging.verdicts import worst_first
from reconciler.traffic.kinds import Kind

CLIENT: Final = ("broker", "kind", "user", "client_id", "ip", "semantics", "interval_us")
MEAN_FOLDS: Final = {
    "amount": "max", "rows": "sum", "first_us": "min", "last_us": "max",
    "throttled": "sum", "since_us": "sum", "since_rows": "sum",
}  # fmt: skip
"""How the rows of one client and length become one: its largest amount, how many rows, the first and the last time, how many
were throttled, and of gauges the time since the samples before them, with how many have one."""
MEANS: Final = pa.schema(
    [
        ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        ("ip", pa.string()), ("semantics", pa.string()), *((name, pa.int64()) for name in ("interval_us", *MEAN_FOLDS)),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The largest mean of one client over times of one length. A gauge has none: its amount is that of a second.

    The amount of a mean over a time is that of the whole time, as that of a delta.

    ``requests`` of ``series`` counts the rows, ``amount`` of it is the largest, ``throttled`` counts censored rows.
    """

    series: Series
    semantics: MetricSemantics
    interval_us: int
    start_us: int
    end_us: int
    since_us: int = 0
    """Of gauges, the usual time between two samples; 0: not known."""

    @property
    def is_gauge(self) -> bool:
        """Whether it is of moments."""
        return self.semantics is MetricSemantics.GAUGE


def means_of(grouped: pa.Table) -> tuple[Mean, ...]:
    """``grouped``: one row for each combination of ``CLIENT``, with the columns of ``MEAN_FOLDS``. Sorted."""
    means = (
        Mean(
            series=Series(
                broker=row["broker"],
                kind=Kind(row["kind"]),
                user=row["user"],
                client_id=row["client_id"],
                ip=row["ip"],
                requests=row["rows"],
                amount=row["amount"],
                throttled=row["throttled"],
                has_tags=row["semantics"] == MetricSemantics.GAUGE,
            ),
            semantics=MetricSemantics(row["semantics"]),
            interval_us=row["interval_us"],
            start_us=row["first_us"] - row["interval_us"],
            end_us=row["last_us"],
            since_us=_since(row),
        )
        for row in grouped.to_pylist()
    )
    return tuple(sorted(means, key=lambda mean: (mean.series.sort_key, mean.interval_us)))


def _since(row: dict[str, int]) -> int:
    """Return the usual time between two gauges; where rows do not have it, by the first and the last one. 0 of other rows."""
    if row["interval_us"]:
        return 0
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
