"""Traffic of which every request is known: request logs, and the normal form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.model.backtest import Coverage
from reconciler.traffic.judging.by_seconds import judged_rows_by_seconds
from reconciler.traffic.judging.exact import ExactResult, judged_exactly
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.outcome import Outcome, exact_outcomes
from reconciler.traffic.judging.requests import in_order, judged_requests
from reconciler.traffic.judging.tokens import judged_tokens, judged_topics
from reconciler.traffic.judging.verdicts import moment
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kinds import Kind
from reconciler.traffic.recorded import Facts
from reconciler.traffic.sources.request_log import CHARGED, EMPTY_THROTTLED, UNREADABLE
from reconciler.traffic.sources.series_key import series_key

_SAMPLES: Final = 5


class Events:
    """Rows as ``request_log`` has them. They are gone through once for the clients, then once for each judgement."""

    def __init__(self, rows: DataFrame, *, source: str, files: Sequence[str], keep: bool) -> None:
        """``keep``: hold the rows while they are needed, because reading them is the dear part (text, not Parquet).

        Raises ``TrafficError`` when no request can be used.
        """
        self._rows = rows.persist(StorageLevel.MEMORY_AND_DISK) if keep else rows
        try:
            counted = _counted(self._rows)
            self.series = _series(counted, files)
            self.facts = _facts(counted, source, files, self._samples(counted))
        except BaseException:
            self.close()
            raise

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Era) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        return judged_rows_by_seconds(self._rows, self.series, grouping, groups, era)

    def exactly(self, grouping: Grouping, window: Window) -> ExactResult:
        """Verdicts of all groups."""
        return judged_exactly(self._rows, self.series, grouping, window)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, Outcome]:
        """Outcomes of these groups, topic by topic."""
        return exact_outcomes(judged_tokens(self._rows, self.series, grouping, groups, window), grouping)

    def requests(self, grouping: Grouping, window: Window, controller_window: Window) -> DataFrame:
        """Every request; the rows must hold the identity columns."""
        judged = judged_requests(self._rows, self.series, grouping, window)
        if any(group.kind is Kind.MUTATION for group in grouping.groups):
            judged = judged.unionAll(judged_topics(self._rows, self.series, grouping, controller_window))
        return in_order(judged)

    def close(self) -> None:
        """Safe to call twice."""
        self._rows.unpersist()

    def _samples(self, counted: Sequence[Row]) -> tuple[str, ...]:
        if not any(row.status == UNREADABLE and row.detail is not None for row in counted):
            return ()
        texts = self._rows.where(F.col("status") == UNREADABLE).select("detail").orderBy("detail").limit(_SAMPLES).collect()
        return tuple(row.detail for row in texts)


def _counted(rows: DataFrame) -> list[Row]:
    series = rows.groupBy("status", "broker", "kind", "user", "client_id").agg(
        F.max("records").alias("largest"),
        F.count(F.lit(1)).alias("lines"),
        F.sum(F.col("records") + F.col("overhead")).alias("amount"),
        F.min("ts_us").alias("start_us"),
        F.max("ts_us").alias("end_us"),
        F.sum(F.col("throttled").cast("long")).alias("throttled"),
        F.min("detail").alias("detail"),
    )
    return series.withColumn("key", series_key()).collect()


def _series(counted: Sequence[Row], files: Sequence[str]) -> tuple[Series, ...]:
    series = [
        Series(
            broker=r.broker, kind=Kind(r.kind), user=r.user, client_id=r.client_id,
            requests=r.lines, amount=r.amount, key=r.key, largest=r.largest,
        )
        for r in counted
        if r.status == CHARGED
    ]  # fmt: skip
    if not series:
        raise TrafficError(_nothing_usable(counted, files))
    return tuple(sorted(series, key=lambda one: one.sort_key))


def _nothing_usable(counted: Sequence[Row], files: Sequence[str]) -> str:
    lines = sum(r.lines for r in counted)
    unreadable = sum(r.lines for r in counted if r.status == UNREADABLE)
    where = files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    if not lines:
        why = "no line says 'Completed request:'; is the logger kafka.request.logger at DEBUG, and is this its file?"
    elif unreadable:
        why = f"{unreadable} of {lines} request lines cannot be read (no time stamp before the message, or JSON cut short)"
    else:
        why = f"its {lines} request lines hold no produce or fetch request of a client"
    return f"recorded traffic {where}: {why}"


def _facts(counted: Sequence[Row], source: str, files: Sequence[str], samples: tuple[str, ...]) -> Facts:
    charged = [r for r in counted if r.status == CHARGED]
    by_status: dict[str, int] = {}
    for row in counted:
        by_status[row.status] = by_status.get(row.status, 0) + row.lines
    plain = {s: n for s, n in sorted(by_status.items()) if s not in (CHARGED, EMPTY_THROTTLED, UNREADABLE)}
    return Facts(
        source=source,
        files=tuple(files),
        coverage=_coverage(charged),
        requests=by_status[CHARGED],
        censored=by_status.get(EMPTY_THROTTLED, 0),
        throttled_then=sum(r.throttled for r in charged),
        not_charged=plain,
        unreadable=by_status.get(UNREADABLE, 0),
        unreadable_samples=samples,
    )


def _coverage(charged: Sequence[Row]) -> tuple[Coverage, ...]:
    found = []
    for broker in sorted({r.broker for r in charged}):
        mine = [r for r in charged if r.broker == broker]
        start, end = min(r.start_us for r in mine), max(r.end_us for r in mine)
        found.append(Coverage(broker=broker, requests=sum(r.lines for r in mine), start=moment(start), end=moment(end)))
    return tuple(found)
