"""Parquet or CSV with columns of its own, read through a mapping file, as rows like those of ``request_log``.

A difference of counters (``delta``) is of one second of the clock, and as good as a per-second total: its sum is that second's.
A longer one is unreadable. A broker's sampled rate (``gauge``) has its semantics as status.
"""

from __future__ import annotations

import functools
import itertools
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import TrafficError
from reconciler.features.mapping.csv_cells import (
    Moments,
    csv_batches,
    header_of,
    map_distinct,
    moments_of_text,
    moments_of_timestamps,
    read_scaled,
    texts,
)
from reconciler.features.mapping.mapping import Field, TrafficMapping
from reconciler.model import escaped
from reconciler.traffic import (
    DELTA,
    EVENT,
    UNCLEAR,
    UNREADABLE,
    Integers,
    Kind,
    Part,
    Reading,
    Source,
    Traffic,
    footer_of,
    is_in_time,
    is_within_second,
    kept_rows,
    parts_of,
    rows_of,
    shown_files,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import SparkRows

_UNITS: Final = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9,
}  # fmt: skip
_TICKS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_WORDS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True), **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}  # fmt: skip
_SECOND_US: Final = 1_000_000
_INT32: Final = 2**31
_FIRST_ROWS, _FIRST_FILES = 200, 20
"""What is looked at before everything is read."""

MappedPart: TypeAlias = "str | Part"
"""The path of a CSV file, or a part of a Parquet file."""


_BYTES_A_TASK: Final = 32 * 1024 * 1024
_BYTES_A_ROW: Final = 64
"""Of Parquet."""


class MappedTraffic(Traffic):
    """Parquet or CSV with columns of their own, which a mapping names."""

    source: ClassVar[Source] = Source.MAPPED

    @classmethod
    def mapped(cls, arguments: Sequence[str], mapping: TrafficMapping) -> Traffic:
        """The files that the arguments name. Raises ``TrafficError`` and ``UsageError``."""
        files = tuple(file for argument in arguments for file in _mapped_of(Path(argument)))
        return cls(parquet=files, mapping=mapping)

    def look(self, log_timezone: str) -> None:
        """Implement ``Traffic.look``: when not one of the first rows of any file can be read, the mapping is wrong."""
        del log_timezone
        parts = {_path_of(part): part for part in reversed(self._parts())}
        rows, columns = 0, None
        for path in itertools.islice(sorted(parts), _FIRST_FILES):
            for _, batch in itertools.islice(_columns((parts[path],), self._columns), 1):
                columns = batch.slice(0, _FIRST_ROWS)
                if any(name != UNREADABLE for name in mapped_batch(columns, self._columns).column("status").to_pylist()):
                    return
                rows += columns.num_rows
        if columns is not None and rows:
            why = _why_unreadable(columns, self._columns)
            raise TrafficError(f"recorded traffic {min(parts)}: none of its first {rows} rows can be read: {why}")

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Implement ``Traffic.batches``."""
        return mapped_rows(self._parts(), self._columns, with_file="file" in reading.also)

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_on``."""
        parts = self._parts()
        sizes = [part.rows * _BYTES_A_ROW if isinstance(part, Part) else Path(part).stat().st_size for part in parts]
        read = functools.partial(mapped_rows, mapping=self._columns, with_file="file" in reading.also)
        return kept_rows(spark, parts, sizes, read, a_task=_BYTES_A_TASK)

    def _parts(self) -> list[MappedPart]:
        """Look at the header or footer of each file. Raises ``TrafficError`` for another ending, or a column of no file."""
        of_csv = [file for file in self.parquet if _form_of(file) == "csv"]
        others = [file for file in self.parquet if file not in set(of_csv)]
        require_mapped(of_csv, (header_of(file, self._columns.delimiter) for file in of_csv), self._columns)
        require_mapped(others, (footer_of(file).schema.to_arrow_schema().names for file in others), self._columns)
        return [*of_csv, *parts_of(others)]

    @property
    def _columns(self) -> TrafficMapping:
        assert isinstance(self.mapping, TrafficMapping)
        return self.mapping


def _form_of(file: str) -> str:
    """The format of a file by its name. Raises ``TrafficError`` for an unknown ending."""
    ending = Path(file.removesuffix(".gz").removesuffix(".zst")).suffix
    if ending not in (".parquet", ".csv"):
        raise TrafficError(f"recorded traffic {escaped(file)}: its name ends neither in .parquet nor in .csv. Rename it")
    return ending.removeprefix(".")


def _mapped_of(path: Path) -> tuple[str, ...]:
    if path.is_file():
        return (str(path.resolve()),)
    if not path.is_dir():
        raise TrafficError(f"recorded traffic {path}: no such file or folder")
    files = sorted(file for file in path.rglob("*") if file.name.endswith((".csv", ".csv.gz", ".parquet")))
    return shown_files(path, files, what="the folder has no file whose name ends in .csv, .csv.gz or .parquet")


def mapped_rows(parts: Iterable[MappedPart], mapping: TrafficMapping, *, with_file: bool = False) -> Iterator[pa.RecordBatch]:
    """Rows as ``normal_form.rows_of`` makes them."""
    for path, batch in _columns(parts, mapping):
        yield mapped_batch(batch, mapping, Path(path).as_uri() if with_file else None)


def mapped_batch(batch: pa.RecordBatch, mapping: TrafficMapping, file: str | None = None) -> pa.RecordBatch:
    """The same of one batch with the columns that the mapping names."""
    return rows_of(normal_batch(batch, mapping), file)


def _columns(parts: Iterable[MappedPart], mapping: TrafficMapping) -> Iterator[tuple[str, pa.RecordBatch]]:
    names = mapping.columns
    for part in parts:
        if isinstance(part, str):
            yield from ((part, batch) for batch in csv_batches(part, names, mapping.delimiter))
        else:
            yield from ((part.path, batch) for batch in _utc(part, part.batches(names)))


def _path_of(part: MappedPart) -> str:
    return part if isinstance(part, str) else part.path


def _utc(part: Part, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Moments in Parquet's oldest form have no zone and are in UTC."""
    schema = pq.read_schema(part.path)
    oldest = {field.path for field in pq.read_metadata(part.path).schema if field.physical_type == "INT96"}
    for batch in batches:
        columns = [
            pc.assume_timezone(column, "UTC") if name in oldest and schema.field(name).type.tz is None else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def require_mapped(files: Sequence[str], columns: Iterable[Sequence[str]], mapping: TrafficMapping) -> None:
    """Raise ``TrafficError`` when none of the files, with these columns, has a column that the mapping names."""
    known = {name for names in columns for name in names}
    if not files:
        return
    missing = sorted(set(mapping.columns) - known)
    if missing:
        raise TrafficError(
            f"recorded traffic {files[0]}: the mapping names the column {missing[0]!r}, and the files have "
            f"{', '.join(sorted(known))}"
        )


def _why_unreadable(batch: pa.RecordBatch, mapping: TrafficMapping) -> str:
    """Name the column that is to blame, with one of its values."""
    checks: dict[str, Callable[[], Iterable[bool]]] = {
        "ts": lambda: ((moments := _moments(batch, mapping.fields["ts"])).valid & is_in_time(moments.micros)).tolist(),
        "broker": lambda: _broker(batch, mapping.fields["broker"]).is_valid().to_pylist(),
        "kind": lambda: _kind(batch, mapping.fields["kind"]).is_valid().to_pylist(),
        "amount": lambda: ((moments := _amount(batch, mapping.fields["amount"]))[1] & (moments[0] >= 0)).tolist(),
    }
    if mapping.semantics == DELTA:
        checks["interval"] = lambda: is_within_second(
            _moments(batch, mapping.fields["ts"]).micros, _interval(batch, mapping.fields["interval"])[0]
        ).tolist()
    for name, check in checks.items():
        field = mapping.fields[name]
        good = check()
        if not any(good):
            value = texts(batch.column(field.column))[0].as_py() if field.column in batch.schema.names else field.constant
            return f"columns.{name}: {value!r} in column {field.column!r} {_what_is_wrong(name, field, batch)}"
    return "no row has a time, a broker, a kind and an amount"


def _what_is_wrong(name: str, field: Field, batch: pa.RecordBatch) -> str:
    if name == "interval":
        return "is not within one second of the clock, which a delta must be"
    if name != "ts":
        return f"gives no {name}"
    units = (replace(field, how={"unit": unit}) for unit in ("s", "ms", "us", "ns"))
    fitting = [unit.how["unit"] for unit in units if (read := _moments(batch, unit)).valid[0] and is_in_time(read.micros)[0]]
    advice = f"Write unit: {fitting[0]} at columns.ts" if fitting else "Name the column and the unit of the time"
    return f"is not a time of the years 2000 to 2099 with unit {field.how.get('unit', 'text')}. {advice}"


def normal_batch(batch: pa.RecordBatch, mapping: TrafficMapping) -> pa.RecordBatch:
    """The normal form of a batch with the columns that the mapping names."""
    fields, count = mapping.fields, batch.num_rows
    moments = _moments(batch, fields["ts"])
    amount, has_amount = _amount(batch, fields["amount"])
    timely = moments.valid & is_in_time(moments.micros)
    micros, semantics = np.where(timely, moments.micros, 0), pa.repeat(mapping.semantics, count)
    interval_ms = pa.nulls(count, pa.int32())
    if mapping.semantics != EVENT:
        interval_us, has_interval = _interval(batch, fields.get("interval"))
        if mapping.semantics == DELTA:
            within = has_interval & is_within_second(micros, interval_us)
            semantics = pc.if_else(pa.array(within), EVENT, DELTA)
            micros = np.where(within, micros - 1, micros)
        fits = has_interval & (interval_us >= 0) & (interval_us < _INT32 * 1000)
        interval_ms = pa.array(np.where(fits, interval_us, 0) // 1000, mask=~fits).cast(pa.int32())
    columns = {
        "ts": pa.array(micros, mask=~timely).cast(pa.timestamp("us")),
        "broker": _broker(batch, fields["broker"]),
        "kind": _kind(batch, fields["kind"]),
        "user": _name(batch, fields.get("user")),
        "client_id": _name(batch, fields.get("client_id")),
        "ip": _name(batch, fields.get("ip")),
        "amount": pa.array(amount, mask=~has_amount),
        "semantics": semantics,
        "interval_ms": interval_ms,
        UNCLEAR: pa.array(moments.unclear),
        **({"throttled": _flag(batch, fields["throttled"])} if "throttled" in fields else {}),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _value(batch: pa.RecordBatch, field: Field) -> pa.Array:
    """A column as it is; of a Parquet file that lacks it, null."""
    if field.column is None:
        return pa.repeat(field.constant, batch.num_rows)
    if field.column not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string())
    column = batch.column(field.column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return texts(column) if pa.types.is_binary(column.type) else column


def _moments(batch: pa.RecordBatch, field: Field) -> Moments:
    unit, column = field.how.get("unit", "text"), _value(batch, field)
    if unit != "text":
        if unit == "ns":
            nanos, valid = read_scaled(column, 1)
            micros = nanos // 1000
        else:
            micros, valid = read_scaled(column, _TICKS[unit])
        return Moments(micros, valid, np.zeros(len(micros), dtype=np.bool_))
    zone = str(field.how.get("timezone", "UTC"))
    return moments_of_timestamps(column, zone) if pa.types.is_timestamp(column.type) else moments_of_text(column, zone)


def _interval(batch: pa.RecordBatch, field: Field | None) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    if field is None:
        return np.zeros(batch.num_rows, dtype=np.int64), np.ones(batch.num_rows, dtype=np.bool_)
    return read_scaled(_value(batch, field), 1_000 if field.how.get("unit", "s") == "ms" else _SECOND_US)


def _amount(batch: pa.RecordBatch, field: Field) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    return read_scaled(_value(batch, field), _UNITS[field.how.get("unit", "B")])


def _broker(batch: pa.RecordBatch, field: Field) -> pa.Array:
    pattern = re.compile(str(field.how["pattern"])) if "pattern" in field.how else None

    def broker(text: str) -> int | None:
        match = pattern.search(text) if pattern else None
        digits = (match[1] or "" if match else "") if pattern else text.strip()
        number = int(digits) if re.fullmatch(r"[+-]?\d{1,10}", digits, re.ASCII) else None
        return number if number is not None and -_INT32 <= number < _INT32 else None

    return map_distinct(_value(batch, field), broker, pa.int32())


def _kind(batch: pa.RecordBatch, field: Field) -> pa.Array:
    if field.column is None:
        return _value(batch, field)
    words = field.how.get("values") or {kind.value: kind.value for kind in Kind}
    return map_distinct(_value(batch, field), words.get, pa.string())


def _name(batch: pa.RecordBatch, field: Field | None) -> pa.Array:
    if field is None:
        return pa.nulls(batch.num_rows, pa.string())
    if field.column is None:
        return pa.repeat(str(field.constant), batch.num_rows)
    strip, encoded = str(field.how.get("strip") or ""), bool(field.how.get("encoded"))

    def name(text: str) -> str | None:
        text = text.removeprefix(strip)
        if not encoded:
            return text
        # A plus is itself: Kafka writes a blank as %20.
        return None if re.search(r"%(?![0-9A-Fa-f]{2})", text) else urllib.parse.unquote(text, errors="replace")

    names = map_distinct(_value(batch, field), name, pa.string())
    return pc.fill_null(names, "") if field.how.get("missing") == "empty" else names


def _flag(batch: pa.RecordBatch, field: Field) -> pa.Array:
    return map_distinct(_value(batch, field), lambda text: _WORDS.get(text.strip().lower()), pa.bool_())
