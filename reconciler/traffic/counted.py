"""Who and what is in single requests: one row for each client, and one for each reason why others are not charged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.traffic.columns.counting import FOLDS, NAMES
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.judging.means import Mean
from reconciler.traffic.kinds import Kind
from reconciler.traffic.recorded import Facts, Source
from reconciler.traffic.seconds.folder import Covered
from reconciler.traffic.sources.normal_form import NOT_AN_EVENT, series_key
from reconciler.traffic.sources.row_status import CHARGED, UNREADABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def counts_of_rows(rows: DataFrame) -> DataFrame:
    """Rows of ``request_log``, each counted as one."""
    from pyspark.sql import functions as F

    of_client = F.col("status") == CHARGED
    return rows.select(
        "status",
        *(F.when(of_client, F.col(name)).alias(name) for name in NAMES[1:]),
        F.lit(1).cast("long").alias("lines"),
        (F.col("records") + F.col("overhead")).alias("amount"),
        F.col("records").alias("largest"),
        F.col("ts_us").alias("start_us"),
        F.col("ts_us").alias("end_us"),
        F.col("throttled").cast("long").alias("throttled"),
    )


def added_up(counts: DataFrame) -> pa.Table:
    """On the driver, all of ``counts`` (columns of ``columns.counting``), with the number of each client as ``key``."""
    from pyspark.sql import functions as F

    # Sums and extremes of numbers alone: a smallest text would make Spark sort all rows.
    found = counts.groupBy(*NAMES).agg(*(getattr(F, fold)(name).alias(name) for name, fold in FOLDS.items()))
    return found.withColumn("key", series_key()).toArrow()


def series_of(counted: pa.Table) -> tuple[Series, ...]:
    """The clients of what is charged, sorted."""
    charged = counted.filter(pc.field("status") == CHARGED)
    columns = (charged.column(name).to_pylist() for name in (*NAMES[1:], "lines", "amount", "key", "largest", "throttled"))
    found = (
        Series(
            broker=broker, kind=Kind(kind), user=user, client_id=client_id,
            requests=lines, amount=amount, key=key, largest=largest, throttled=throttled,
        )
        for broker, kind, user, client_id, lines, amount, key, largest, throttled in zip(*columns, strict=True)
    )  # fmt: skip
    return tuple(sorted(found, key=lambda one: one.sort_key))


def covered(counted: pa.Table) -> Iterator[Covered]:
    """What there is of each broker's charged requests, in no order."""
    charged = counted.filter(pc.field("status") == CHARGED)
    grouped = charged.group_by("broker").aggregate([("lines", "sum"), ("start_us", "min"), ("end_us", "max")])
    for row in grouped.to_pylist():
        start, end = row["start_us_min"], row["end_us_max"]
        yield Covered(broker=row["broker"], requests=row["lines_sum"], start_us=start, end_us=end)


def statuses(counted: pa.Table) -> dict[str, int]:
    """How many lines there are of each status."""
    grouped = counted.group_by("status").aggregate([("lines", "sum")])
    return dict(zip(grouped.column("status").to_pylist(), grouped.column("lines_sum").to_pylist(), strict=True))


SAMPLES: Final = 5
"""Of lines that cannot be read, so many are shown."""


def facts_of(
    counted: pa.Table,
    source: Source,
    files: Sequence[str],
    *,
    samples: Callable[[], tuple[str, ...]],
    named: Collection[int] = (),
    request_step: float | None = None,
    means: Sequence[Mean] = (),
) -> Facts:
    """``named``: brokers that the lines themselves list; ``request_step``: as ``Provenance`` has it.

    Raises ``TrafficError`` when no request and no mean can be used.
    """
    lines = statuses(counted)
    if not means:
        require_charged(lines, files)
    of_means = (Covered(broker=m.series.broker, requests=0, start_us=m.start_us, end_us=m.end_us) for m in means)
    return Facts.of(
        source,
        files,
        covered=(*covered(counted), *of_means),
        statuses=lines,
        throttled_then=throttled_then(counted),
        samples=samples() if lines.get(UNREADABLE) else (),
        named=named,
        request_step=request_step,
    )


def throttled_then(counted: pa.Table) -> int:
    """Charged requests that were throttled when they were recorded."""
    return int(pc.sum(counted.filter(pc.field("status") == CHARGED).column("throttled")).as_py() or 0)


def require_charged(lines: dict[str, int], files: Sequence[str]) -> None:
    """Raise ``TrafficError`` when no request can be used."""
    if lines.get(CHARGED):
        return
    whole, unreadable = sum(lines.values()), lines.get(UNREADABLE, 0)
    where = files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    if not whole:
        why = "it has no rows, or no request lines"
    elif unreadable:
        why = f"{unreadable} of {whole} request lines cannot be read (no time stamp before the message, or JSON cut short)"
    elif lines.get(NOT_AN_EVENT):
        why = f"{lines[NOT_AN_EVENT]} of {whole} rows are means without a length, or gauges, that nothing can be compared with"
    else:
        why = f"its {whole} request lines hold no produce or fetch request of a client"
    raise TrafficError(f"recorded traffic {where}: {why}")
