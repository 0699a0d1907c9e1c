"""Parquet files cut into parts of about one size, for one worker each, and how large traffic is when it is read."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import TrafficError
from reconciler.traffic.sources.normal_form import DELTA, EVENT, canonical_rows, file_columns

ROWS_A_PART: Final = 2_000_000
ROWS_A_BATCH: Final = 1 << 19
DICTIONARIES: Final = ("user", "client_id", "ip", "kind", "semantics")


@dataclass(frozen=True, slots=True)
class Between:
    """The time after ``after_us`` and not later than ``until_us``: microseconds since 1970."""

    after_us: int
    until_us: int

    @classmethod
    def of(cls, since: datetime.datetime | None, until: datetime.datetime | None) -> Between:
        """Make the time between two moments. ``None``: from the first row on, and up to now."""
        end = until or datetime.datetime.now(datetime.UTC)
        after = since or datetime.datetime.fromtimestamp(0, datetime.UTC)
        return cls(after_us=round(after.timestamp() * 1e6), until_us=round(end.timestamp() * 1e6))

    def rows_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of this time; ``batch`` has the column ``ts``."""
        ts = batch.column("ts").cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
        return batch.filter(pc.and_(pc.greater(ts, self.after_us), pc.less_equal(ts, self.until_us)))

    def charged_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with ``ts_us`` of this time, and those without a time: they are counted."""
        ts_us = batch.column("ts_us")
        inside = pc.and_(pc.greater(ts_us, self.after_us), pc.less_equal(ts_us, self.until_us))
        return batch.filter(pc.fill_null(inside, pa.scalar(value=True)))

    def covers(self, footer: pq.FileMetaData) -> bool:
        """Whether the statistics of a file show that all of its rows are of this time."""
        for group in range(footer.num_row_groups):
            span = span_us(footer, group)
            if span is None or span[0] <= self.after_us or span[1] > self.until_us:
                return False
        return True

    def may_cut(self, span: tuple[int, int] | None) -> bool:
        """Whether rows between these times, in microseconds, may be of this time. ``None``: the times are not known."""
        return span is None or (span[1] > self.after_us and span[0] <= self.until_us)


def span_us(footer: pq.FileMetaData, group: int) -> tuple[int, int] | None:
    """The first and the last time of a row group, in microseconds, as its statistics show them."""
    place = footer.schema.names.index("ts") if "ts" in footer.schema.names else -1
    statistics = footer.row_group(group).column(place).statistics if place >= 0 else None
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        first, last = statistics.min, statistics.max
    except (OverflowError, ValueError):  # a year that Python's dates do not have
        return None
    return (_micros(first), _micros(last)) if isinstance(first, datetime.datetime) else None


def _micros(at: datetime.datetime) -> int:
    return (
        at.replace(tzinfo=at.tzinfo or datetime.UTC) - datetime.datetime.fromtimestamp(0, datetime.UTC)
    ) // datetime.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of one file: ``first`` and those after it, before ``end``."""

    path: str
    first: int
    end: int
    rows: int
    columns: frozenset[str]
    """Those that the file has."""
    between: Between | None = None
    """Only rows of this time, where it cuts the file's."""
    span_us: tuple[int, int] | None = None
    """The first and the last time, as statistics show them; ``None``: not known."""
    may_have_deltas: bool = True
    """As far as statistics show."""
    has_only_events: bool = False
    """As far as statistics show."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read its rows. Columns that the file lacks are not there. Memory does not grow with the size of a row group."""
        batches = _batches(self.path, range(self.first, self.end), columns, self.columns)
        yield from batches if self.between is None else map(self.between.rows_of, batches)


def _batches(
    source: str | pa.BufferReader, groups: Sequence[int], columns: Sequence[str], known: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Read some row groups of a file, of which ``known`` has the columns."""
    present, names = ([name for name in some if name in known] for some in (columns, DICTIONARIES))
    with pq.ParquetFile(source, read_dictionary=names, coerce_int96_timestamp_unit="us") as file:
        yield from file.iter_batches(ROWS_A_BATCH, row_groups=list(groups), columns=present, use_threads=False)


def decode_file(content: pa.Buffer, columns: Sequence[str], between: Between | None = None) -> Iterator[pa.RecordBatch]:
    """Read columns of the canonical traffic schema of one file. Columns that it lacks are null, as Spark's reader has them.

    Raises ``pyarrow.ArrowInvalid`` or ``OSError`` for what is not a Parquet file.
    """
    footer = pq.read_metadata(pa.BufferReader(content))
    names = frozenset(footer.schema.to_arrow_schema().names)
    semantics = value_range(footer, "semantics")
    needed = file_columns(columns, may_have_deltas=semantics is None or semantics[0] <= DELTA)
    groups = [group for group in range(footer.num_row_groups) if between is None or between.may_cut(span_us(footer, group))]
    if between is not None and "ts" not in names:
        return
    for batch in _batches(pa.BufferReader(content), groups, needed, names):
        yield canonical_rows(batch if between is None else between.rows_of(batch), columns)


def read_part(part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some columns of the canonical traffic schema (``normal_form.ROWS``) of a part in the normal form."""
    needed = file_columns(columns, may_have_deltas=part.may_have_deltas)
    return (canonical_rows(batch, columns) for batch in part.batches(needed))


def read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, the next one read in another thread while the caller works on this one."""
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def parts_of(files: Sequence[str], rows: int = ROWS_A_PART, between: Between | None = None) -> tuple[Part, ...]:
    """All row groups of all files that have rows, together until a part has ``rows``. Raises ``TrafficError``.

    With ``between`` only rows of that time, as far as the statistics of row groups show which those are.
    """
    parts = []
    for path, footer in footers_of(files):
        columns = frozenset(footer.schema.to_arrow_schema().names)
        chosen = None if between is None or between.covers(footer) else between
        semantics = value_range(footer, "semantics")
        deltas, events = semantics is None or semantics[0] <= DELTA, semantics == (EVENT, EVENT)
        first, held = 0, 0
        for group in range(footer.num_row_groups):
            held += footer.row_group(group).num_rows
            if held >= rows or group + 1 == footer.num_row_groups:
                spans = [span_us(footer, number) for number in range(first, group + 1)]
                parts.append(Part(path, first, group + 1, held, columns, chosen, _around(spans), deltas, events))
                first, held = group + 1, 0
    return tuple(part for part in parts if part.rows)


def _around(spans: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [span for span in spans if span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known and len(known) == len(spans) else None


def time_slices(parts: Sequence[Part], rows: int) -> list[tuple[Part, ...]]:
    """The parts in the order of time, some together: no two slices have rows of one millisecond.

    A slice has more than ``rows`` where its parts cannot be distinguished by time. Without statistics of every part there is one.
    """
    spans = [(part.span_us, part) for part in parts]
    known = sorted(((span, part) for span, part in spans if span is not None), key=lambda timed: timed[0])
    if len(known) < len(parts):
        return [tuple(parts)]
    slices: list[tuple[Part, ...]] = []
    held: list[Part] = []
    last_ms = 0
    for (low_us, high_us), part in known:
        if held and low_us // 1000 > last_ms and sum(other.rows for other in held) + part.rows > rows:
            slices.append(tuple(held))
            held = []
        last_ms = max(last_ms, high_us // 1000) if held else high_us // 1000
        held.append(part)
    return [*slices, tuple(held)] if held else slices


def value_range(footer: pq.FileMetaData, column: str) -> tuple[str, str] | None:
    """The first and the last value of a column of names, as the statistics of a file show them; ``None``: not known."""
    place = footer.schema.names.index(column) if column in footer.schema.names else -1
    statistics = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups) if place >= 0]
    if not statistics or not all(known is not None and known.has_min_max for known in statistics):
        return None
    return min(known.min for known in statistics), max(known.max for known in statistics)


_FOOTERS_AT_ONCE: Final = 16
_FOOTERS_HELD: Final = 256


def footers_of(files: Sequence[str]) -> Iterator[tuple[str, pq.FileMetaData]]:
    """Each file with its footer, in order. Many are read at once, since each waits for the disk or the network.

    Raises ``TrafficError``.
    """
    if len(files) < 2:
        yield from ((path, footer_of(path)) for path in files)
        return
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE, thread_name_prefix="footers") as readers:
        for begin in range(0, len(files), _FOOTERS_HELD):
            some = files[begin : begin + _FOOTERS_HELD]
            yield from zip(some, readers.map(footer_of, some), strict=True)


def footer_of(path: str) -> pq.FileMetaData:
    """Read the footer of a file. Raises ``TrafficError`` for a file that is not Parquet, or not whole."""
    try:
        return pq.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise TrafficError(f"recorded traffic {path} is not a Parquet file, or was not finished") from error
    except OSError as error:
        raise TrafficError(f"recorded traffic {path} cannot be read: {error.strerror or error}") from error


BYTES_A_ROW: Final = 64
"""Of Parquet, when it is read."""
