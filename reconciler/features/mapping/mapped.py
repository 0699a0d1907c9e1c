"""Parquet and CSV files with columns of their own, read through a mapping file as rows of the canonical traffic schema."""

from __future__ import annotations

import datetime
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from reconciler.errors import TrafficError
from reconciler.features.mapping.mapping import Field, TrafficMapping, parse_mapping
from reconciler.model import escaped
from reconciler.traffic import UNREADABLE, Part, Reading, Source, Traffic, footer_of, kept_rows, parts_of, rows_of, shown_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import OpenFiles, SparkRows

MappedPart: TypeAlias = "str | Part"
"""The path of a CSV file, or a part of a Parquet file."""
_BLOCK: Final = 16 * 1024 * 1024
"""Bytes of CSV that are read at a time: a line may have as many."""
_BYTES_A_TASK: Final = 32 * 1024 * 1024
_BYTES_A_ROW: Final = 64
"""Of Parquet."""
_UNITS: Final = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9,
}  # fmt: skip
_UNIT_OF: Final = {"ts": "us", "interval": "ms"}
"""The unit of numbers in the canonical schema. Amounts are in bytes or nanoseconds."""
_WORDS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True), **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}  # fmt: skip
_TYPES: Final = {
    "ts": pa.timestamp("us", "UTC"), "interval": pa.int64(), "broker": pa.int64(), "amount": pa.int64(), "throttled": pa.bool_(),
}  # fmt: skip
_NUMBER: Final = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?\s*$"
_LARGEST: Final = 2.0**62


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedTraffic(Traffic):
    """Parquet or CSV with columns of their own, which a mapping names."""

    source: ClassVar[Source] = Source.MAPPED

    mapping: TrafficMapping

    @property
    def semantics(self) -> str:
        """Implement ``Traffic.semantics``."""
        return self.mapping.semantics

    def look(self, log_timezone: str) -> None:
        """Implement ``Traffic.look``: when not one of the first rows of the first file can be read, the mapping is wrong."""
        del log_timezone
        parts = self._parts()
        for batch in itertools.islice(self._rows(parts[:1]), 1):
            if set(batch.column("status").to_pylist()) == {UNREADABLE}:
                why = batch.column("detail")[0].as_py()
                raise TrafficError(
                    f"recorded traffic {escaped(_path_of(parts[0]))}: none of its first {batch.num_rows} rows can be read with "
                    f"the mapping: {escaped(why)}"
                )

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Implement ``Traffic.batches``."""
        return self._rows(self._parts(), with_file="file" in reading.also)

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_on``."""
        parts = self._parts()
        sizes = [part.rows * _BYTES_A_ROW if isinstance(part, Part) else Path(part).stat().st_size for part in parts]
        read = functools.partial(self._rows, with_file="file" in reading.also)
        return kept_rows(spark, parts, sizes, read, a_task=_BYTES_A_TASK)

    def _parts(self) -> list[MappedPart]:
        """Look at the header or footer of each file. Raises ``TrafficError`` for another ending, or a column of no file."""
        of_csv = [file for file in self.parquet if _is_csv(file)]
        others = [file for file in self.parquet if file not in set(of_csv)]
        for files, columns_of in ((of_csv, self._header), (others, self._footer)):
            known = {name for file in files for name in columns_of(file)}
            if files and (missing := sorted(set(self.mapping.columns) - known)):
                raise TrafficError(
                    f"recorded traffic {escaped(files[0])}: the mapping names the column {missing[0]!r}, and the files have "
                    f"{', '.join(sorted(known))}"
                )
        return [*of_csv, *parts_of(others)]

    def _header(self, path: str) -> Sequence[str]:
        try:
            names: Sequence[str] = _open_csv(path, self.mapping, lambda _: "skip").schema.names
        except pa.ArrowInvalid:
            # An empty file.
            return ()
        except UnicodeDecodeError as error:
            raise TrafficError(f"recorded traffic {escaped(path)}: its first line is not in UTF-8. Convert the file") from error
        return self._once(names, path)

    def _footer(self, path: str) -> Sequence[str]:
        schema = footer_of(path).schema.to_arrow_schema()
        for field in schema:
            if field.name in self.mapping.columns and (pa.types.is_nested(field.type) or pa.types.is_duration(field.type)):
                what = f"the column {field.name!r} is {field.type}, and a mapping reads numbers, text and times"
                raise TrafficError(f"recorded traffic {escaped(path)}: {what}")
        return self._once(schema.names, path)

    def _once(self, names: Sequence[str], path: str) -> Sequence[str]:
        if twice := [name for name in self.mapping.columns if names.count(name) > 1]:
            raise TrafficError(f"recorded traffic {escaped(path)}: it has several columns {twice[0]!r}. Rename all but one")
        return names

    def _rows(self, parts: Iterable[MappedPart], *, with_file: bool = False) -> Iterator[pa.RecordBatch]:
        for part in parts:
            path = _path_of(part)
            batches = _csv_batches(path, self.mapping) if isinstance(part, str) else part.batches(self.mapping.columns)
            for batch in batches:
                yield rows_of(canonical_columns(batch, self.mapping), Path(path).as_uri() if with_file else None)


def read_mapping(content: bytes, path: str) -> OpenFiles:
    """Read the mapping in a file's bytes; ``path`` names the file in messages. Raises ``ManifestError`` with all findings."""
    return functools.partial(_open_files, mapping=parse_mapping(content, path))


def _open_files(arguments: Sequence[str], mapping: TrafficMapping) -> Traffic:
    return MappedTraffic(parquet=tuple(file for argument in arguments for file in _files_of(Path(argument))), mapping=mapping)


def _files_of(path: Path) -> tuple[str, ...]:
    if path.is_file():
        return (str(path.resolve()),)
    if not path.is_dir():
        raise TrafficError(f"recorded traffic {path}: no such file or folder")
    files = sorted(file for file in path.rglob("*") if file.name.endswith((".csv", ".csv.gz", ".parquet")))
    return shown_files(path, files, what="the folder has no file whose name ends in .csv, .csv.gz or .parquet")


def _is_csv(file: str) -> bool:
    """Whether a name is that of a CSV file. Raises ``TrafficError`` when it is not that of a Parquet file either."""
    ending = Path(file.removesuffix(".gz").removesuffix(".zst")).suffix
    if ending not in (".parquet", ".csv"):
        raise TrafficError(f"recorded traffic {escaped(file)}: its name ends neither in .parquet nor in .csv. Rename it")
    return ending == ".csv"


def _path_of(part: MappedPart) -> str:
    return part if isinstance(part, str) else part.path


class _WholeLines(io.RawIOBase):
    """The bytes of a CSV file whose quotes end in their line: one too many would swallow all rows up to the next one."""

    def __init__(self, path: str) -> None:
        self._path, self._stream, self._quotes = path, pa.input_stream(path), 0

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read into the buffer. Raises ``TrafficError`` for a line with an odd number of quotes."""
        body = self._stream.read(len(buffer))
        buffer[: len(body)] = body
        text = np.frombuffer(body, dtype=np.uint8)
        quotes = self._quotes + np.cumsum(text == ord('"'))
        open_ends = np.flatnonzero((text == ord("\n")) & (quotes % 2 == 1))
        if len(open_ends):
            line = body[: open_ends[0]].rsplit(b"\n", 1)[-1][:100].decode("utf-8", "replace")
            raise TrafficError(
                f"recorded traffic {escaped(self._path)}: the line {escaped(line)!r} has an odd number of quotes. Write fields "
                'without line breaks, and a quote within a field as ""'
            )
        self._quotes = int(quotes[-1]) if len(quotes) else self._quotes
        return len(body)


def _open_csv(path: str, mapping: TrafficMapping, skip: Callable[[object], str], **options: Any) -> csv.CSVStreamingReader:
    """Open a CSV file. Raises ``TrafficError`` for one that is damaged, ``ArrowInvalid`` for an empty one."""
    try:
        return csv.open_csv(
            io.BufferedReader(_WholeLines(path), _BLOCK),
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(delimiter=mapping.delimiter, invalid_row_handler=skip),
            convert_options=csv.ConvertOptions(check_utf8=False, **options),
        )
    except OSError as error:
        raise _damaged(path) from error


def _csv_batches(path: str, mapping: TrafficMapping) -> Iterator[pa.RecordBatch]:
    """The columns that the mapping names, as bytes, null where a cell is empty or the file has no such column.

    A line with too few or too many cells is a row of nulls. Raises ``TrafficError`` for a file that is damaged.
    """
    wrong: list[object] = []

    def skip(row: object) -> str:
        wrong.append(row)
        return "skip"

    schema = pa.schema([(name, pa.binary()) for name in mapping.columns])
    options = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    try:
        yield from _open_csv(
            path, mapping, skip, column_types=schema, include_columns=schema.names, include_missing_columns=True, **options
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            raise _damaged(path) from error
    except OSError as error:
        raise _damaged(path) from error
    if wrong:
        yield pa.RecordBatch.from_arrays([pa.nulls(len(wrong), pa.binary()) for _ in schema], schema=schema)


def _damaged(path: str) -> TrafficError:
    return TrafficError(
        f"recorded traffic {escaped(path)} is damaged or cut short: take it out, or unpack what is left of it with gzip -dc"
    )


def canonical_columns(batch: pa.RecordBatch, mapping: TrafficMapping) -> pa.RecordBatch:
    """The columns of the canonical traffic schema of a batch with the columns that the mapping names."""
    columns = {name: _column(batch, name, field) for name, field in mapping.fields.items()}
    for name in ("user", "client_id", "ip"):
        columns.setdefault(name, pa.nulls(batch.num_rows, pa.string()))
    columns["interval_ms"] = columns.pop("interval", pa.nulls(batch.num_rows, pa.int64()))
    columns["semantics"] = pa.repeat(mapping.semantics, batch.num_rows)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _column(batch: pa.RecordBatch, name: str, field: Field) -> pa.Array:
    """One thing of each row, null where a cell is not of its type."""
    kind = _TYPES.get(name, pa.string())
    if field.column is None:
        column = pa.repeat(str(field.constant), batch.num_rows)
    elif field.column in batch.schema.names:
        column = batch.column(field.column)
    else:
        # Files of other days can have it.
        return pa.nulls(batch.num_rows, kind)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if field.pattern is not None:
        pattern = re.compile(field.pattern, re.DOTALL)
        column = _map_distinct(column, lambda text: match[1] if (match := pattern.search(text)) else None, pa.string())
    if field.values:
        column = _map_distinct(column, field.values.get, pa.string())
    if name == "throttled":
        return _map_distinct(column, lambda text: _WORDS.get(text.strip().lower()), kind)
    if name == "ts" and field.unit is None:
        return column if pa.types.is_timestamp(column.type) else _map_distinct(column, _moment, kind)
    if kind == pa.string():
        return _texts(column)
    unit = _UNITS[field.unit or ("s" if name == "interval" else "B")]
    return _numbers(column, unit / _UNITS[_UNIT_OF.get(name, "B")]).cast(kind)


def _numbers(column: pa.Array, factor: float) -> pa.Array:
    """Numbers times ``factor``, rounded; null without a number, or for one that is too large. Precise to 2^53."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        text = _texts(column)
        column = pc.utf8_trim_whitespace(pc.if_else(pc.match_substring_regex(text, _NUMBER), text, None))
    numbers = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False)) * factor
    valid = np.abs(numbers) < _LARGEST
    return pa.array(np.floor(np.where(valid, numbers, 0.0) + 0.5).astype(np.int64), mask=~valid)


def _moment(text: str) -> datetime.datetime | None:
    """A time such as 2026-11-21 13:00:00.123, which is in UTC without an offset."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        return moment.astimezone(datetime.UTC) if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        return None


def _map_distinct(column: pa.Array, value_of: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    """Map each text by ``value_of``, which is called once for each distinct text. Null stays null."""
    encoded = _texts(column).dictionary_encode()
    return pa.array([value_of(text) for text in encoded.dictionary.to_pylist()], type=kind).take(encoded.indices)


def _texts(column: pa.Array) -> pa.Array:
    """Any column as text; bytes that are not UTF-8 become the replacement character."""
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        try:
            return column.cast(pa.string())
        except pa.ArrowInvalid:
            cells = column.to_pylist()
            return pa.array([cell if cell is None else cell.decode("utf-8", "replace") for cell in cells], pa.string())
    return column.cast(pa.string())
