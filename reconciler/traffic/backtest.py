"""The backtest: request logs and two sets of quotas in, verdicts out. Spark counts; the driver sees series and verdicts."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name all of Spark's own documentation uses

from reconciler.errors import TrafficError
from reconciler.model.backtest import BacktestReport, Coverage, Provenance
from reconciler.model.entity import Entity
from reconciler.model.source import Span
from reconciler.resolution.levels import QuotaTable, Resolver
from reconciler.traffic.judging.exact import judged_exactly
from reconciler.traffic.judging.grouping import Grouping, Series, group_series
from reconciler.traffic.judging.requests import judged_requests
from reconciler.traffic.judging.throttle_findings import throttle_findings
from reconciler.traffic.judging.verdicts import bucket_verdicts, moment, unused_quotas
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Window
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind
from reconciler.traffic.sources.log_files import BrokerFiles
from reconciler.traffic.sources.request_log import CHARGED, EMPTY_THROTTLED, IDENTITY_COLUMNS, UNREADABLE, read_request_logs
from reconciler.traffic.sources.series_key import series_key

SOURCE: Final = "request-log"
_SAMPLES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: recorded traffic, the quotas before (``None``: not known) and after, and which broker is modelled."""

    logs: tuple[BrokerFiles, ...]
    current: QuotaTable | None
    proposed: QuotaTable
    declared: QuotaTable
    """The part of ``proposed`` that the manifests say; unused quotas are looked for here."""
    sources: Mapping[tuple[Entity, str], Span] = field(default_factory=dict)
    window: Window = DEFAULT_WINDOW
    version_from: str = "no Kafka version was given"
    log_timezone: str = "UTC"
    requests: bool = False
    """Whether the single requests will be asked for."""


class Backtest:
    """One run. ``report`` judges; ``request_lines`` then gives every request; ``close`` gives back Spark's storage."""

    def __init__(self, spark: SparkSession, question: Question) -> None:
        self._question = question
        also = IDENTITY_COLUMNS if question.requests else ()
        rows = read_request_logs(spark, question.logs, log_timezone=question.log_timezone, also=also)
        # Parsing is the dear part, and the rows are needed twice: for the series, then for the replay.
        self._rows: DataFrame = rows.persist(StorageLevel.MEMORY_AND_DISK)
        self._series: tuple[Series, ...] = ()
        self._grouping: Grouping | None = None

    def report(self) -> BacktestReport:
        """Verdicts, unused quotas, findings and where they come from. Raises ``TrafficError`` when no request can be used."""
        question = self._question
        counted = _counted(self._rows)
        self._series = _series(counted, question.logs)
        before = None if question.current is None else _resolvers(question.current)
        self._grouping = group_series(self._series, before, _resolvers(question.proposed))
        found = judged_exactly(self._rows, self._series, self._grouping, question.window)
        verdicts = bucket_verdicts(self._series, self._grouping, found)
        return BacktestReport(
            provenance=_provenance(question, counted, self._samples(counted)),
            verdicts=verdicts,
            unused=unused_quotas(self._series, question.declared, question.proposed),
            findings=throttle_findings(verdicts, question.sources),
        )

    def request_lines(self) -> Iterator[str]:
        """JSON lines, one a charged request under the proposed quotas, in the order of charging. Call ``report`` first."""
        if self._grouping is None:
            raise RuntimeError("report() comes first")
        judged = judged_requests(self._rows, self._series, self._grouping, self._question.window)
        for row in judged.toLocalIterator(prefetchPartitions=True):
            yield _request_line(row, self._series)

    def close(self) -> None:
        """Safe to call twice."""
        self._rows.unpersist()

    def _samples(self, counted: Sequence[Row]) -> tuple[str, ...]:
        if not any(row.status == UNREADABLE for row in counted):
            return ()
        texts = self._rows.where(F.col("status") == UNREADABLE).select("detail").orderBy("detail").limit(_SAMPLES).collect()
        return tuple(row.detail for row in texts)


def _resolvers(quotas: QuotaTable) -> dict[str, Resolver]:
    return {key.value: Resolver(quotas, key.value) for key in map(KEY_OF_KIND.__getitem__, BYTES)}


def _counted(rows: DataFrame) -> list[Row]:
    amount = F.col("records") + F.col("overhead")
    series = rows.groupBy("status", "broker", "kind", "user", "client_id").agg(
        F.min(series_key()).alias("key"),
        F.max("records").alias("largest"),
        F.count(F.lit(1)).alias("lines"),
        F.sum(amount).alias("amount"),
        F.min("ts_us").alias("start_us"),
        F.max("ts_us").alias("end_us"),
        F.sum(F.col("throttled").cast("long")).alias("throttled"),
    )
    return series.collect()


def _series(counted: Sequence[Row], logs: Sequence[BrokerFiles]) -> tuple[Series, ...]:
    series = [
        Series(
            broker=r.broker,
            kind=Kind(r.kind),
            user=r.user,
            client_id=r.client_id,
            requests=r.lines,
            amount=r.amount,
            key=r.key,
            largest=r.largest,
        )
        for r in counted
        if r.status == CHARGED
    ]
    if not series:
        raise TrafficError(_nothing_usable(counted, logs))
    return tuple(sorted(series, key=lambda s: (s.broker, s.kind, s.user, s.client_id)))


def _nothing_usable(counted: Sequence[Row], logs: Sequence[BrokerFiles]) -> str:
    files = sum(len(log.files) for log in logs)
    lines = sum(r.lines for r in counted)
    unreadable = sum(r.lines for r in counted if r.status == UNREADABLE)
    where = logs[0].files[0] + (f" and {files - 1} more" if files > 1 else "")
    if not lines:
        why = "no line says 'Completed request:'; is the logger kafka.request.logger at DEBUG, and is this its file?"
    elif unreadable:
        why = f"{unreadable} of {lines} request lines cannot be read (no time stamp before the message, or JSON cut short)"
    else:
        why = f"its {lines} request lines hold no produce or fetch request of a client"
    return f"recorded traffic {where}: {why}"


def _provenance(question: Question, counted: Sequence[Row], samples: tuple[str, ...]) -> Provenance:
    charged = [r for r in counted if r.status == CHARGED]
    by_status: dict[str, int] = {}
    for row in counted:
        by_status[row.status] = by_status.get(row.status, 0) + row.lines
    plain = {s: n for s, n in sorted(by_status.items()) if s not in (CHARGED, EMPTY_THROTTLED, UNREADABLE)}
    return Provenance(
        source=SOURCE,
        files=tuple(f for log in question.logs for f in log.files),
        semantics=f"Kafka {question.window.era.value}",
        start=moment(min(r.start_us for r in charged)),
        end=moment(max(r.end_us for r in charged)),
        coverage=_coverage(charged),
        requests=by_status[CHARGED],
        series=len(charged),
        censored=by_status.get(EMPTY_THROTTLED, 0),
        throttled_then=sum(r.throttled for r in charged),
        not_charged=plain,
        unreadable=by_status.get(UNREADABLE, 0),
        unreadable_samples=samples,
        current_known=question.current is not None,
        assumptions=_assumptions(question, by_status, charged),
    )


def _coverage(charged: Sequence[Row]) -> tuple[Coverage, ...]:
    found = []
    for broker in sorted({r.broker for r in charged}):
        mine = [r for r in charged if r.broker == broker]
        start, end = min(r.start_us for r in mine), max(r.end_us for r in mine)
        found.append(Coverage(broker=broker, requests=sum(r.lines for r in mine), start=moment(start), end=moment(end)))
    return tuple(found)


def _assumptions(question: Question, by_status: Mapping[str, int], charged: Sequence[Row]) -> tuple[str, ...]:
    window = question.window
    said = [
        (
            f"brokers work as Kafka {window.era.value} ({question.version_from}), with {window.samples} samples of "
            f"{window.sample_ms / 1000:g} s (quota.window.num, quota.window.size.seconds)"
        ),
        (
            "open loop: every request arrives when it was recorded, although a throttled client would have sent later; so "
            "throttled seconds are counted, and throttle times are never added up"
        ),
        "the quota callback is Kafka's own, and broker clocks are as their logs say, to the millisecond",
        f"a fetch carries at most {window.fetch_cap(1)} seconds of its limit, as a broker asks no more of its log",
        f"log times without an offset are in {question.log_timezone}",
        "only producer_byte_rate and consumer_byte_rate are judged",
    ]
    if question.current is None:
        said.append("the current quotas are not known (no snapshot was given): nothing is compared with them")
    censored, throttled = by_status.get(EMPTY_THROTTLED, 0), sum(r.throttled for r in charged)
    if censored or throttled:
        said.append(
            f"quotas throttled this history when it was recorded ({throttled} requests delayed, {censored} fetches answered "
            "empty, whose size is not known): peaks and recommendations are lower bounds"
        )
    return tuple(said)


def _request_line(row: Row, series: Sequence[Series]) -> str:
    one = series[row.series]
    at = moment(row.ts_us)
    document = {
        "ts": at.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "broker": one.broker,
        "connection": row.connection,
        "correlation_id": row.correlation_id,
        "user": one.user,
        "client_id": one.client_id,
        "key": KEY_OF_KIND[one.kind].value,
        "amount": row.amount,
        "rate": row.rate,
        "limit": row.limit,
        "throttle_ms": row.throttle_ms,
        "throttle_band": [row.low, row.high],
        "recorded_throttle_ms": row.recorded_throttle_ms,
    }
    return json.dumps(document, ensure_ascii=True)
