"""CSV files, plain or compressed, as columns of bytes; and cells as whole numbers, moments and names."""

from __future__ import annotations

import csv
import datetime
import decimal
import functools
import re
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from reconciler.errors import TrafficError
from reconciler.model import escaped
from reconciler.traffic import END_US, FIRST_US, Flags, Integers

BLOCK: Final = 16 * 1024 * 1024
"""Bytes that are read at a time."""
_BOM: Final = b"\xef\xbb\xbf"
_LONGEST_HEADER: Final = 1024 * 1024


def header_of(path: str, delimiter: str) -> tuple[str, ...]:
    """The names of a file's columns; none for an empty file. Raises ``TrafficError`` for a compressed file that is damaged."""
    return _names(_header_line(path), delimiter)


def csv_batches(path: str, names: Sequence[str], delimiter: str) -> Iterator[pa.RecordBatch]:
    """The columns of these names, as bytes, null where a cell is empty or the file has no such column.

    Raises ``TrafficError`` as ``header_of``.
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
                    yield _columns(header, text[:end], names, delimiter)
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


def _columns(header: bytes, body: bytes, names: Sequence[str], delimiter: str) -> pa.RecordBatch:
    """Rows that have too few cells have no others; of rows that have too many the last ones are left out."""
    columns = _by_arrow(header, body, names, delimiter) if _lines_are_whole(body) else None
    return columns or _line_by_line(header, body, names, delimiter)


def _lines_are_whole(body: bytes) -> bool:
    """Whether no quoted cell goes on in the next line: one quote too many must not swallow all rows after it."""
    if b'"' not in body:
        return True
    text = np.frombuffer(body, dtype=np.uint8)
    quotes = np.cumsum(text == ord('"'))
    return not (quotes[text == ord("\n")] % 2).any()


def _by_arrow(header: bytes, body: bytes, names: Sequence[str], delimiter: str) -> pa.RecordBatch | None:
    text = header.removeprefix(_BOM) + body
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
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
    except (pa.ArrowException, KeyError):
        return None
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], names=table.column_names)


def _line_by_line(header: bytes, body: bytes, names: Sequence[str], delimiter: str) -> pa.RecordBatch:
    columns = _names(header, delimiter)
    cells: dict[str, list[bytes | None]] = {name: [] for name in names}
    places = {name: columns.index(name) if name in columns else -1 for name in cells}
    for line in body.split(b"\n"):
        text = line.rstrip(b"\r").decode("utf-8", "replace")
        if not text:
            continue
        row = next(csv.reader([text], delimiter=delimiter), [])
        for name, place in places.items():
            cells[name].append(row[place].encode() or None if 0 <= place < len(row) else None)
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary()) for values in cells.values()], names=list(cells))


def _names(header: bytes, delimiter: str) -> tuple[str, ...]:
    text = header.removeprefix(_BOM).rstrip(b"\r\n").decode("utf-8", "replace")
    return tuple(next(csv.reader([text], delimiter=delimiter), ()))


def _damaged(path: str) -> TrafficError:
    return TrafficError(
        f"recorded traffic {escaped(path)} is damaged or cut short: take it out, or unpack what is left of it with gzip -dc"
    )


SECOND_US: Final = 1_000_000
_MICRO: Final = 10**6
_DIGITS: Final = 6
_LONG_MAX: Final = 2**63 - 1
_DAY_S: Final = 86_400
_NUMBER: Final = r"^(?P<sign>[+-]?)(?P<whole>\d{1,18})(?:\.(?P<part>\d*))?$"
_TEXT: Final = (
    r"^(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<part>\d+))?)?)?"
    r" ?(?P<zone>[Zz]|UTC|[+-]\d{2}(?::?\d{2})?)?$"
)


@dataclass(frozen=True, slots=True)
class Moments:
    """Microseconds since 1970, 0 where ``valid`` is false. ``unclear``: the local time occurs twice or never."""

    micros: Integers
    valid: Flags
    unclear: Flags


def read_scaled(column: pa.Array, factor: int) -> tuple[Integers, Flags]:
    """Numbers of up to six decimals times ``factor``, rounded half up; 0 where the second is false: no number, or too large."""
    if pa.types.is_floating(column.type):
        values = np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False))
        valid = np.isfinite(values) & (np.abs(values) * factor < _LONG_MAX / 2)
        values = np.where(valid, np.abs(values), 0.0)
        whole = np.floor(values).astype(np.int64)
        part = np.rint((values - whole) * _MICRO).astype(np.int64)
        negative = np.asarray(pc.fill_null(pc.less(column, 0), pa.scalar(value=False)).to_numpy(zero_copy_only=False))
    elif pa.types.is_integer(column.type):
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        signed = _numpy(column.cast(pa.int64(), safe=False))
        negative, whole = signed < 0, np.abs(signed)
        part = np.zeros(len(whole), dtype=np.int64)
    else:
        negative, whole, part, valid = _of_text(pc.utf8_trim_whitespace(texts(column)))
    valid = valid & (whole <= (_LONG_MAX - factor) // factor) & (whole >= 0)
    whole, part = np.where(valid, whole, 0), np.where(valid, part, 0)
    scaled = whole * factor + (part * factor + _MICRO // 2) // _MICRO
    return np.where(negative, -scaled, scaled), valid


def _of_text(text: pa.Array) -> tuple[Flags, Integers, Integers, Flags]:
    """Sign, whole part, millionths, and where there is a number."""
    parts = pc.extract_regex(text, pattern=_NUMBER)
    valid = np.array(parts.is_valid().to_numpy(zero_copy_only=False))
    negative = np.asarray(pc.fill_null(pc.equal(parts.field("sign"), "-"), pa.scalar(value=False)).to_numpy(zero_copy_only=False))
    whole = _whole(parts.field("whole"))
    part = _fraction(parts.field("part"), _DIGITS + 1)
    part = (part + 5) // 10
    odd = np.flatnonzero(~valid & np.asarray(text.is_valid().to_numpy(zero_copy_only=False)))
    if len(odd):
        negative, whole, part = negative.copy(), whole.copy(), part.copy()
    for row in odd.tolist():
        value = _decimal(text[row].as_py())
        if value is not None:
            negative[row], (whole[row], part[row]), valid[row] = value < 0, divmod(abs(value), _MICRO), True
    return negative, whole, part, valid


def _decimal(text: str) -> int | None:
    """Return millionths of numbers that are written as 1.5e9 or with very many digits."""
    try:
        value = decimal.Decimal(text)
        if not value.is_finite() or abs(value) >= _LONG_MAX:
            return None
        return int((value * _MICRO).to_integral_value(decimal.ROUND_HALF_UP))
    except (decimal.InvalidOperation, OverflowError):
        return None


def moments_of_text(column: pa.Array, zone: str) -> Moments:
    """Return the moments of dates with times of the day. ``zone``: that of a text without an offset."""
    text = pc.replace_substring(pc.utf8_trim_whitespace(texts(column)), ",", ".")
    parts = pc.extract_regex(text, pattern=_TEXT)
    valid = np.asarray(parts.is_valid().to_numpy(zero_copy_only=False))
    year, month, day, hour, minute, second = (
        _whole(parts.field(name)) for name in ("year", "month", "day", "hour", "minute", "second")
    )
    valid = valid & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    months = np.where(valid, (year - 1970) * 12 + month - 1, 0)
    first, after = (((months + more).astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) for more in (0, 1))
    valid = valid & (day >= 1) & (day <= after - first)
    wall = ((first + day - 1) * _DAY_S + hour * 3600 + minute * 60 + second) * SECOND_US + _fraction(parts.field("part"), _DIGITS)
    wall = np.where(valid, wall, 0)
    offset_s = _numpy(map_distinct(parts.field("zone"), _offset_s, pa.int64()))
    local = np.asarray(pc.fill_null(pc.equal(parts.field("zone"), ""), pa.scalar(value=True)).to_numpy(zero_copy_only=False))
    if not local.any() or zone == "UTC":
        return Moments(wall - offset_s * SECOND_US, valid, np.zeros(len(wall), dtype=np.bool_))
    here, unclear = _in_zone(wall, zone)
    return Moments(np.where(local, here, wall - offset_s * SECOND_US), valid, unclear & local & valid)


def moments_of_timestamps(column: pa.Array, zone: str) -> Moments:
    """Return the moments of a column of timestamps. ``zone``: that of timestamps without one."""
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    wall = _numpy(pc.cast(column, pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64()))
    if column.type.tz is not None or zone == "UTC":
        return Moments(wall, valid, np.zeros(len(wall), dtype=np.bool_))
    micros, unclear = _in_zone(wall, zone)
    return Moments(micros, valid, unclear & valid)


def map_distinct(column: pa.Array, value_of: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    """Map each text by ``one``, which is called once for each distinct text. Null stays null."""
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
            return pa.array(
                [cell if cell is None else cell.decode("utf-8", "replace") for cell in column.to_pylist()], pa.string()
            )
    return column.cast(pa.string())


def _offset_s(text: str) -> int:
    match = re.fullmatch(r"([+-])(\d{2}):?(\d{2})?", text)
    return (-1 if match[1] == "-" else 1) * (int(match[2]) * 3600 + int(match[3] or 0) * 60) if match else 0


def _in_zone(wall: Integers, zone: str) -> tuple[Integers, Flags]:
    """Microseconds since 1970 of local times, and which ones there are twice or never."""
    turns, offsets = _turns(zone)
    begins, ends = (turns + np.minimum(offsets[:-1], offsets[1:])), (turns + np.maximum(offsets[:-1], offsets[1:]))
    after = np.searchsorted(ends, wall, side="right")
    unclear = np.zeros(len(wall), dtype=np.bool_)
    if len(turns):
        near = np.minimum(after, len(turns) - 1)
        unclear = (after < len(turns)) & (wall >= begins[near]) & (wall < ends[near])
    return wall - offsets[after], unclear


@functools.cache
def _turns(zone: str) -> tuple[Integers, Integers]:
    """Return when a zone's clocks are changed, and the offsets before the first change and after each, in microseconds."""
    info = zoneinfo.ZoneInfo(zone)

    def offset(at_s: int) -> int:
        moment = datetime.datetime.fromtimestamp(at_s, tz=datetime.UTC).astimezone(info)
        return int((moment.utcoffset() or datetime.timedelta()).total_seconds())

    turns, offsets = [], [offset(FIRST_US // SECOND_US)]
    for day in range(FIRST_US // SECOND_US, END_US // SECOND_US, _DAY_S):
        if offset(day + _DAY_S) == offsets[-1]:
            continue
        low, high = day, day + _DAY_S
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == offsets[-1] else (low, middle)
        turns.append(high)
        offsets.append(offset(high))
    return np.asarray(turns, dtype=np.int64) * SECOND_US, np.asarray(offsets, dtype=np.int64) * SECOND_US


def _whole(digits: pa.Array) -> Integers:
    """Return the numbers of texts of digits, 0 where there is none."""
    return _numpy(pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64()))


def _fraction(digits: pa.Array, count: int) -> Integers:
    """The first so many decimals as a whole number."""
    return _whole(pc.utf8_slice_codeunits(pc.utf8_rpad(digits, count, "0"), 0, count))


def _numpy(column: pa.Array) -> Integers:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
