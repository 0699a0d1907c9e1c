"""Opens the traffic that was found, in this process or on Spark: what a backtest judges."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import log_event, timed_event
from reconciler.traffic.sources.line_time import check_zone
from reconciler.traffic.sources.normal_form import DEFAULT_MOST, IDENTITY_COLUMNS, require_readable
from reconciler.traffic.traffic_files import Reading, Traffic
from reconciler.traffic.traffic_source import Source, TrafficSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from reconciler.traffic.shuffle.on_spark import SparkRows

_log: Final = logging.getLogger(__name__)
Opened = TypeVar("Opened", bound=TrafficSource)


def open_traffic(
    traffic: Traffic,
    session: Callable[[], SparkSession],
    reading: Reading | None = None,
    *,
    in_process: bool = False,
    requests: bool = False,
    max_unreadable: float = DEFAULT_MOST,
) -> TrafficSource:
    """Open it; ``session`` starts Spark, and is not called for per-second totals before they need it, nor with ``in_process``.

    ``requests``: every single request will be asked for, which only logs can give.

    Raises ``TrafficError`` when nothing can be used, or more than the share ``max_unreadable`` cannot be read.
    """
    reading = reading or Reading()
    check_zone(reading.log_timezone)
    traffic = traffic.listed(session)
    if requests:
        traffic.require_identity()
    with timed_event(_log, "first rows read", source=traffic.source.value):
        traffic.look(reading.log_timezone)
    also = (*(IDENTITY_COLUMNS if requests else ()), *traffic.own_columns)
    recorded = traffic.open(session, replace(reading, also=also), in_process=in_process)
    return require_usable(recorded, max_unreadable)


def rows_for_workers(traffic: Traffic, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
    """The rows of traffic that has some, as Spark's workers read them. Raises ``TrafficError`` and ``UsageError``."""
    if traffic.between is not None and traffic.source is Source.RECORDER:
        raise UsageError("--since and --until of the recorder's files need a report in this process: leave --out parquet= out")
    traffic.look(reading.log_timezone)
    return traffic.rows_on(spark, replace(reading, also=traffic.own_columns))


def require_usable(recorded: Opened, max_unreadable: float) -> Opened:
    """The same. Closes it and raises ``TrafficError`` when more than the share ``max_unreadable`` cannot be read."""
    facts = recorded.facts
    lines = facts.requests + facts.unreadable + sum(facts.not_charged.values())
    log_event(
        _log,
        "traffic opened",
        level=logging.INFO,
        source=facts.source,
        rows=lines,
        charged=facts.requests,
        unreadable=facts.unreadable,
        clients=len(recorded.series),
        brokers=[part.broker for part in facts.coverage],
    )
    try:
        require_readable(facts.unreadable, lines, max_unreadable, files=facts.files, samples=facts.unreadable_samples)
    except TrafficError:
        recorded.close()
        raise
    return recorded
