"""CSV files, plain or compressed, as columns of bytes; and cells as whole numbers, moments and texts."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from reconciler.errors import TrafficError
from reconciler.model import escaped
from reconciler.traffic import Flags, Integers, LineClock

BLOCK: Final = 16 * 1024 * 1024
"""Bytes that are read at a time."""
_BOM: Final = b"\xef\xbb\xbf"
_LONGEST_HEADER: Final = 1024 * 1024


def header_of(path: str, delimiter: str) -> tuple[str, ...]:
    """The names of a file's columns; none for an empty file. Raises ``TrafficError`` for a file that is damaged."""
    text = _header_line(path).removeprefix(_BOM).rstrip(b"\r\n").decode("utf-8", "replace")
    return tuple(next(csv.reader([text], delimiter=delimiter), ()))


def csv_batches(path: str, names: Sequence[str], delimiter: str) -> Iterator[pa.RecordBatch]:
    """The columns of these names, as bytes, null where a cell is empty or the file has no such column.

    A line with too few or too many cells is a row of nulls. Raises ``TrafficError`` as ``header_of``, and for a quoted cell that
    goes on in the next line.
    """
    header, rest = _header_line(path), b""
    try:
        with pa.input_stream(path) as stream:
            stream.read(len(header))
            while True:
                more = bytes(stream.read(BLOCK))
                text = rest + more
                end = text.rfind(b"\n") + 1 if more else len(text)
                if end:
                    _require_whole_lines(text[:end], path)
                    yield _columns(header.removeprefix(_BOM) + text[:end], names, delimiter)
                if not more:
                    return
                rest = text[end:]
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path) from error


def _header_line(path: str) -> bytes:
    try:
        with pa.input_stream(path) as stream:
            text = bytes(stream.read(4096))
            while b"\n" not in text and len(text) < _LONGEST_HEADER and (more := bytes(stream.read(len(text)))):
                text += more
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path) from error
    line, end, _ = text.partition(b"\n")
    return line + end


def _require_whole_lines(body: bytes, path: str) -> None:
    """One quote too many would swallow all rows up to the next one."""
    text = np.frombuffer(body, dtype=np.uint8)
    quotes = np.cumsum(text == ord('"'))
    open_ends = np.flatnonzero((text == ord("\n")) & (quotes % 2 == 1))
    if len(open_ends):
        line = body[: open_ends[0]].rsplit(b"\n", 1)[-1][:100].decode("utf-8", "replace")
        raise TrafficError(
            f"recorded traffic {escaped(path)}: the line {escaped(line)!r} has an odd number of quotes. Write fields without "
            'line breaks, and a quote within a field as ""'
        )


def _columns(text: bytes, names: Sequence[str], delimiter: str) -> pa.RecordBatch:
    wrong = 0

    def skip(_row: object) -> str:
        nonlocal wrong
        wrong += 1
        return "skip"

    table = arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, invalid_row_handler=skip),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            include_columns=list(dict.fromkeys(names)),
            include_missing_columns=True,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,
        ),
    )
    whole = pa.concat_tables([table, pa.table([pa.nulls(wrong, kind) for kind in table.schema.types], schema=table.schema)])
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in whole.columns], names=whole.column_names)


def _damaged(path: str) -> TrafficError:
    return TrafficError(
        f"recorded traffic {escaped(path)} is damaged or cut short: take it out, or unpack what is left of it with gzip -dc"
    )


_LONG_MAX: Final = 2**63 - 1
_WHOLE: Final = r"^[+-]?\d{1,18}$"
_NUMBER: Final = r"^[+-]?(\d{1,18}\.?\d{0,18}|\.\d{1,18})([eE][+-]?\d{1,2})?$"
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})? ?(?:Z|[+-]\d{2}:?\d{2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moments:
    """Microseconds since 1970, 0 where ``valid`` is false. ``unclear``: the local time occurs twice or never."""

    micros: Integers
    valid: Flags
    unclear: Flags


def read_scaled(column: pa.Array, factor: int) -> tuple[Integers, Flags]:
    """Numbers times ``factor``, rounded; 0 where the second is false: no number, or too large.

    Whole numbers stay exact. Others have the precision of a double.
    """
    kind, whole = column.type, pa.array(np.ones(len(column), dtype=np.bool_))
    if pa.types.is_floating(kind):
        whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 2.0**53))
    elif not pa.types.is_integer(kind):
        column = pc.utf8_trim_whitespace(texts(column))
        whole = pc.match_substring_regex(column, _WHOLE)
        column = pc.if_else(pc.match_substring_regex(column, _NUMBER), column, None)
    numbers = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False))
    valid = np.isfinite(numbers) & (np.abs(numbers) * factor < _LONG_MAX / 2)
    exact = _integers(pc.if_else(pc.and_(whole, pa.array(valid)), column, None).cast(pa.int64(), safe=False)) * factor
    rounded = np.floor(np.where(valid, numbers, 0.0) * factor + 0.5).astype(np.int64)
    return np.where(_flags(whole) & valid, exact, rounded), valid


def moments_of_text(column: pa.Array, zone: str) -> Moments:
    """Return the moments of times such as 2026-11-21 13:00:00.123. ``zone``: that of a text without an offset."""
    clock, encoded = LineClock(zone), pc.utf8_trim_whitespace(texts(column)).dictionary_encode()
    names = encoded.dictionary.to_pylist()
    read = [clock.read(text.encode(), len(text)) if _TIME.fullmatch(text) else None for text in names]
    micros = pa.array([None if moment is None else moment.micros for moment in read], pa.int64()).take(encoded.indices)
    unclear = pa.array([moment is not None and moment.unclear for moment in read], pa.bool_()).take(encoded.indices)
    return Moments(_integers(micros), _flags(micros.is_valid()), _flags(unclear))


def moments_of_timestamps(column: pa.Array, zone: str) -> Moments:
    """Return the moments of a column of timestamps. ``zone``: that of timestamps without one."""
    wall = pc.cast(column, pa.timestamp("us", tz=column.type.tz), safe=False)
    if column.type.tz is not None or zone == "UTC":
        micros = later = wall.cast(pa.int64())
    else:
        micros, later = (
            pc.assume_timezone(wall, zone, ambiguous=side, nonexistent=side).cast(pa.int64()) for side in ("earliest", "latest")
        )
    return Moments(_integers(micros), _flags(column.is_valid()), _integers(micros) != _integers(later))


def map_distinct(column: pa.Array, value_of: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    """Map each text by ``value_of``, which is called once for each distinct text. Null stays null."""
    encoded = texts(column).dictionary_encode()
    return pa.array([value_of(text) for text in encoded.dictionary.to_pylist()], type=kind).take(encoded.indices)


def texts(column: pa.Array) -> pa.Array:
    """Any column as text; bytes that are not UTF-8 become the replacement character."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        try:
            return column.cast(pa.string())
        except pa.ArrowInvalid:
            cells = column.to_pylist()
            return pa.array([cell if cell is None else cell.decode("utf-8", "replace") for cell in cells], pa.string())
    return column.cast(pa.string())


def _integers(column: pa.Array) -> Integers:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _flags(column: pa.Array) -> Flags:
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), dtype=np.bool_)  # noqa: FBT003 - a value of data, not a flag
