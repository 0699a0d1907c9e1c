"""Opens the traffic that was found, in this process or on Spark: what a backtest judges, or rows for ``compact``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import log_event, timed_event
from reconciler.model import Form
from reconciler.traffic.client_seconds import sum_here, sum_on_spark
from reconciler.traffic.client_totals import ONE_PASS, ONE_PASS_WITH_MEANS
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.recording_gaps import RecordingGap, read_gaps
from reconciler.traffic.request_traffic import open_rows
from reconciler.traffic.sample_parquet import join_totals, stored_totals
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.seconds.history import SecondsSource
from reconciler.traffic.shuffle.rows import LocalRows, Rows
from reconciler.traffic.sources.line_time import check_zone
from reconciler.traffic.sources.log_evidence import mark_copies
from reconciler.traffic.sources.log_files import log_parts
from reconciler.traffic.sources.mapped import MappedFiles, mapped_rows
from reconciler.traffic.sources.normal_form import (
    COLUMNS,
    DEFAULT_MOST,
    IDENTITY_COLUMNS,
    require_columns,
    require_readable,
    rows_of,
)
from reconciler.traffic.sources.parquet_parts import (
    Part,
    footers_of,
    parts_of,
    read_ahead,
    read_part,
    time_slices,
)
from reconciler.traffic.sources.recorder_files import recorder_rows, require_one_recorder
from reconciler.traffic.sources.request_log import LOG_KINDS, SELF_EVIDENCE, parse_lines, require_request_lines
from reconciler.traffic.sources.topic_events import charge_known_topics
from reconciler.traffic.traffic_files import Traffic
from reconciler.traffic.traffic_source import Source, TrafficSource
from reconciler.traffic.violation_traffic import ViolationTraffic, require_traffic

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from reconciler.traffic.shuffle.on_spark import SparkRows
    from reconciler.traffic.sources.on_spark import Listing

_log: Final = logging.getLogger(__name__)
Opened = TypeVar("Opened", bound=TrafficSource)
_ROWS_A_BATCH: Final = 1 << 16
_ROWS_A_SLICE: Final = 4_000_000
"""Of Parquet, what is sorted at a time in this process: some 250 MB."""


def open_traffic(
    traffic: Traffic,
    session: Callable[[], SparkSession],
    *,
    log_timezone: str,
    in_process: bool = False,
    requests: bool = False,
    form: Form | None = None,
    kinds: Collection[Kind] = BYTES,
    max_unreadable: float = DEFAULT_MOST,
) -> TrafficSource:
    """Open it; ``session`` starts Spark, and is not called for per-second totals before they need it, nor with ``in_process``.

    ``requests``: every single request will be asked for, which only logs can give. ``form``: how it will be judged, if it is.
    By seconds, rows are added up as they are read.
    ``kinds``: what to read of logs, of ``LOG_KINDS``.

    Raises ``TrafficError`` when nothing can be used, or more than the share ``max_unreadable`` cannot be read.
    """
    check_zone(log_timezone)
    if (days := _open_days(traffic, session, requests=requests)) is not None:
        return days
    traffic, listing = _listed(traffic, session)
    if requests and traffic.source is not Source.LOGS:
        raise UsageError("--requests needs request logs: only they identify single requests")
    with timed_event(_log, "first rows read", source=traffic.source.value):
        look_first(traffic, log_timezone=log_timezone)
    logs, by_seconds = traffic.source is Source.LOGS, form is Form.SECONDS
    also = IDENTITY_COLUMNS if requests else ()
    recorded: TrafficSource
    if traffic.source is Source.VIOLATIONS:
        recorded = ViolationTraffic.read(traffic.logs, zone=log_timezone)
    elif traffic.cells is not None:
        recorded = SecondsSource(SegmentFolder(traffic.cells), session)
    else:
        columns = (*also, *SELF_EVIDENCE) if logs else ()
        rows: Rows[pa.RecordBatch]
        if listing is not None:
            of_dataset = _dataset_rows(traffic, listing, session(), log_timezone=log_timezone, also=columns, kinds=kinds)
            # Rows of text are kept already.
            rows = sum_on_spark(of_dataset) if by_seconds and not listing.logs else of_dataset
        elif in_process:
            rows = _local_rows(traffic, log_timezone=log_timezone, also=columns, kinds=kinds, by_seconds=by_seconds)
        else:
            rows = _rows_on_spark(traffic, session(), log_timezone=log_timezone, also=columns, kinds=kinds, by_seconds=by_seconds)
        of_rows = open_rows(rows, source=traffic.source, files=traffic.files, columns=columns, has_sums=traffic.has_second_sums)
        if traffic.between is not None and traffic.source is Source.RECORDER:
            of_rows = of_rows.between(traffic.between.after_us + 1, traffic.between.until_us + 1)
        of_rows.facts = replace(of_rows.facts, gaps=recorded_gaps(traffic))
        recorded = of_rows
    return require_usable(recorded, max_unreadable)


def rows_for_workers(
    traffic: Traffic, spark: SparkSession, *, log_timezone: str, kinds: Collection[Kind] = BYTES
) -> tuple[Traffic, SparkRows[pa.RecordBatch], tuple[str, ...]] | None:
    """The traffic with its source, and its rows with the columns that they have beside ``normal_form.ROWS``.

    ``None``: it is not rows that Spark's workers read. Raises ``TrafficError``.
    """
    from reconciler.traffic.shuffle.on_spark import SparkRows

    check_zone(log_timezone)
    traffic, listing = _listed(traffic, lambda: spark)
    if not traffic.has_rows:
        return None
    if traffic.between is not None and traffic.source is Source.RECORDER:
        raise UsageError("--since and --until of the recorder's files need a report in this process: leave --out parquet= out")
    look_first(traffic, log_timezone=log_timezone)
    columns = SELF_EVIDENCE if traffic.source is Source.LOGS else ()
    rows: Rows[pa.RecordBatch]
    if listing is not None:
        rows = _dataset_rows(traffic, listing, spark, log_timezone=log_timezone, also=columns, kinds=kinds)
    else:
        rows = _rows_on_spark(traffic, spark, log_timezone=log_timezone, also=columns, kinds=kinds)
    return (traffic, rows, columns) if isinstance(rows, SparkRows) else None


def recorded_gaps(traffic: Traffic) -> tuple[RecordingGap, ...]:
    """Times that a recorder noted as not observed beside Parquet of this machine."""
    if traffic.source is not Source.NORMAL_FORM or traffic.datasets:
        return ()
    return read_gaps(sorted({Path(file).parent for file in traffic.parquet}))


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


def _open_days(traffic: Traffic, session: Callable[[], SparkSession], *, requests: bool) -> TrafficSource | None:
    """Per-second totals of ``compact --out``."""
    if not traffic.datasets:
        return None
    from reconciler.traffic.seconds.day_traffic import open_days

    days = open_days(session(), traffic.datasets, traffic.between)
    if days is not None and requests:
        days.close()
        raise UsageError("--requests needs request logs: only they identify single requests")
    return days


def _listed(traffic: Traffic, session: Callable[[], SparkSession]) -> tuple[Traffic, Listing | None]:
    if not traffic.datasets:
        return traffic, None
    from reconciler.traffic.sources.on_spark import list_datasets

    listing = list_datasets(session(), traffic.datasets)
    return (replace(traffic, source=Source.LOGS, mapping=None) if listing.logs else traffic), listing


def look_first(traffic: Traffic, *, log_timezone: str) -> None:
    """Look at headers, footers and first rows, which takes milliseconds.

    Raises ``TrafficError`` for what the whole traffic would be refused for later, ``UsageError`` for an unknown time zone.
    """
    zone = check_zone(log_timezone)
    if traffic.datasets:
        return
    if traffic.source is Source.LOGS:
        require_request_lines(traffic.logs, zone)
    if traffic.mapping is not None:
        MappedFiles.of(traffic.parquet, traffic.mapping).require_readable_beginning()
    elif traffic.source is Source.RECORDER:
        require_one_recorder(traffic.parquet)
    elif traffic.source is Source.NORMAL_FORM:
        for file, footer in footers_of(traffic.parquet):
            require_columns(footer.schema.to_arrow_schema(), file)


def _local_rows(
    traffic: Traffic, *, log_timezone: str, also: Sequence[str], kinds: Collection[Kind], by_seconds: bool
) -> Rows[pa.RecordBatch]:
    if traffic.source is Source.NORMAL_FORM:
        parts = parts_of(traffic.parquet, between=traffic.between)
        for part in parts:
            log_event(_log, "file opened", file=part.path, rows=part.rows)
        slices = [(sum(part.rows for part in some), _reader_of(some)) for some in time_slices(parts, _ROWS_A_SLICE)]
        rows = LocalRows(_reader_of(parts), ONE_PASS_WITH_MEANS, slices)
        if by_seconds and _has_only_events(parts):
            return sum_here(rows)
        return _with_stored_totals(rows, parts, lambda rest: LocalRows(_reader_of(rest), ONE_PASS_WITH_MEANS))
    batches = list(read_batches(traffic, log_timezone=log_timezone, also=also, kinds=kinds))
    if traffic.source is Source.LOGS and batches:
        import pyarrow as pa

        batches = mark_copies(pa.Table.from_batches(batches).combine_chunks()).to_batches(_ROWS_A_BATCH)
        batches = charge_known_topics(batches)
    return LocalRows(lambda _: batches)


def _has_only_events(parts: Sequence[Part]) -> bool:
    """Whether all rows are requests, as far as statistics show: metrics have totals of their own."""
    return all(part.has_only_events for part in parts)


def _reader_of(parts: Sequence[Part]) -> Callable[[Sequence[str]], Iterator[pa.RecordBatch]]:
    return lambda columns: read_ahead(batch for part in parts for batch in read_part(part, columns))


def _with_stored_totals(
    rows: Rows[pa.RecordBatch], parts: Sequence[Part], read: Callable[[Sequence[Part]], Rows[pa.RecordBatch]]
) -> Rows[pa.RecordBatch]:
    """``rows``, of which only files without totals of their own are added up, and files of which only a part counts."""
    whole = {part.path for part in parts if part.between is None}
    stored = {path: totals for path, footer in footers_of(sorted(whole)) if (totals := stored_totals(footer)) is not None}
    if not stored:
        return rows
    log_event(_log, "stored totals found", files=len(stored))
    rest = [part for part in parts if part.path not in stored]
    return rows.with_totals(join_totals(stored.values()), read(rest) if rest else None)


def _rows_on_spark(
    traffic: Traffic,
    spark: SparkSession,
    *,
    log_timezone: str,
    also: Sequence[str],
    kinds: Collection[Kind],
    by_seconds: bool = False,
) -> Rows[pa.RecordBatch]:
    """Text is read once and kept, Parquet by seconds is read once. Else its columns are read anew for each pass."""
    from reconciler.traffic.sources.on_spark import normal_form_rows

    if traffic.source is Source.NORMAL_FORM:
        parts = parts_of(traffic.parquet, between=traffic.between)
        rows = normal_form_rows(spark, parts, ONE_PASS)
        if by_seconds and _has_only_events(parts):
            return sum_on_spark(rows)
        return _with_stored_totals(rows, parts, lambda rest: normal_form_rows(spark, rest, ONE_PASS))
    return keep_rows(traffic, spark, log_timezone=log_timezone, also=also, kinds=kinds)


def _dataset_rows(
    traffic: Traffic,
    listing: Listing,
    spark: SparkSession,
    *,
    log_timezone: str,
    also: Sequence[str],
    kinds: Collection[Kind],
) -> SparkRows[pa.RecordBatch]:
    from reconciler.traffic.sources.on_spark import frame_rows, log_rows

    if listing.logs:
        return log_rows(spark, listing.logs, log_timezone=log_timezone, also=also, kinds=kinds, between=traffic.between)
    return frame_rows(spark, traffic.datasets, listing.format, traffic.mapping, traffic.between, ONE_PASS)


def keep_rows(
    traffic: Traffic, spark: SparkSession, *, log_timezone: str, also: Sequence[str], kinds: Collection[Kind] = LOG_KINDS
) -> SparkRows[pa.RecordBatch]:
    """Rows of request logs, mapped files or a recorder's files with the columns ``also``, kept by Spark until they are closed.

    ``kinds``: what to read of logs, since each kind costs time. Raises ``UsageError`` for an unknown time zone.
    """
    from reconciler.traffic.sources.on_spark import mapped_file_rows, recorder_file_rows, request_log_rows

    if traffic.source is Source.RECORDER:
        return recorder_file_rows(spark, traffic.parquet, with_file="file" in also)
    if traffic.mapping is not None:
        return mapped_file_rows(spark, traffic.parquet, traffic.mapping, with_file="file" in also)
    return request_log_rows(spark, traffic.logs, log_timezone=log_timezone, also=also, kinds=kinds)


def read_batches(
    traffic: Traffic, *, log_timezone: str, also: Sequence[str], kinds: Collection[Kind] = LOG_KINDS
) -> Iterator[pa.RecordBatch]:
    """Rows with the columns ``also`` in this process, file by file; of logs only these ``kinds``. Copies are not marked."""
    require_traffic(traffic.source, traffic.files)
    with_file = "file" in also
    if traffic.source is Source.LOGS:
        for log in log_parts(traffic.logs, 1):
            log_event(_log, "file opened", file=log.path, broker=log.broker, begin=log.begin, end=log.end)
            yield from parse_lines(log.lines(), broker=log.broker, file=log.uri, zone=log_timezone, kinds=kinds, also=also)
        return
    if traffic.mapping is not None:
        yield from mapped_rows(MappedFiles.of(traffic.parquet, traffic.mapping).parts, traffic.mapping, with_file=with_file)
        return
    if traffic.source is Source.RECORDER:
        yield from recorder_rows(traffic.parquet, with_file=with_file)
        return
    names = [name for name, _ in COLUMNS]
    for part in parts_of(traffic.parquet, between=traffic.between):
        log_event(_log, "file opened", file=part.path, rows=part.rows)
        file = Path(part.path).as_uri() if with_file else None
        yield from (rows_of(batch, file) for batch in part.batches(names))
