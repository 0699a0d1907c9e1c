"""Somebody's Parquet or CSV, read through a mapping file, as rows like those of ``request_log``.

A difference of counters (``delta``) within one second is as good as a cell: its sum is that second's. A longer one, and a sampled
rate (``gauge``), say nothing certain about single seconds; they get the status ``NOT_AN_EVENT`` and are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.line_time import clock_turns
from reconciler.traffic.sources.log_files import literal_path
from reconciler.traffic.sources.mapping import Field, TrafficMapping, require_plausible_times
from reconciler.traffic.sources.normal_form import EVENT, UNCLEAR, from_normal_form
from reconciler.traffic.sources.readable import END_US, FIRST_US

DELTA: Final = "delta"
_FILE: Final = "file of this row"
"""A column that no file has."""
_SECOND_US: Final = 1_000_000
_UNITS: Final = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9,
}  # fmt: skip
_LOOKED_AT: Final = 20
"""Rows whose times must not all be in a wrong unit."""
_OFFSET: Final = r"([Zz]|[+-]\d{2}:?\d{2})$"
_TICKS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_FLAGS: Final = {"throttled": "boolean", "overhead": "bigint", "tie": "bigint", "strict": "boolean", "part": "int"}


def read_mapped(spark: SparkSession, files: Sequence[str], mapping: TrafficMapping, *, also: Sequence[str] = ()) -> DataFrame:
    """Rows as ``request_log`` has them; ``also``: ``file``, the address of each row's file.

    Raises ``TrafficError`` when a file is neither Parquet nor CSV, or lacks a column that the mapping names.
    """
    by_form: dict[str, list[str]] = {}
    for file in files:
        by_form.setdefault(mapping.form_of(Path(file)), []).append(file)
    frames = [_normal(_read(spark, form, names, mapping), mapping) for form, names in sorted(by_form.items())]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return from_normal_form(rows, also=also)


def _read(spark: SparkSession, form: str, files: Sequence[str], mapping: TrafficMapping) -> DataFrame:
    paths = [literal_path(file) for file in files]
    if form == "parquet":
        found = spark.read.option("mergeSchema", "true").parquet(*paths)
    else:
        # By name: a file with its columns in another order must not be read as the first one is.
        options = {"header": "true", "sep": mapping.delimiter, "enforceSchema": "false", "escape": '"', "multiLine": "false"}
        frames = [
            spark.read.options(**options).csv(path).withColumn(_FILE, F.lit(Path(f).as_uri()))
            for path, f in zip(paths, files, strict=True)
        ]
        found = frames[0]
        for frame in frames[1:]:
            found = found.unionByName(frame, allowMissingColumns=True)
    missing = sorted({one.column for one in mapping.fields.values() if one.column} - set(found.columns))
    if missing:
        raise TrafficError(
            f"recorded traffic {files[0]}: the mapping names the column {missing[0]!r}, and the files have "
            f"{', '.join(sorted(found.columns))}"
        )
    _look_at_times(found, files[0], mapping.fields["ts"])
    return found if form == "csv" else found.withColumn(_FILE, F.col("_metadata.file_path"))


def _look_at_times(found: DataFrame, file: str, ts: Field) -> None:
    if dict(found.dtypes).get(str(ts.column), "").startswith(("timestamp", "date")):
        return
    shown = found.select(_column(ts).cast("string").alias("ts")).where("ts is not null").limit(_LOOKED_AT).collect()
    require_plausible_times([row.ts for row in shown], ts, file)


def _normal(found: DataFrame, mapping: TrafficMapping) -> DataFrame:
    fields, kinds = mapping.fields, dict(found.dtypes)
    written_us = _micros(fields["ts"], kinds)
    # What is outside is unreadable; without it no sum below can overflow.
    end_us = F.when((written_us >= FIRST_US) & (written_us < END_US), written_us)
    interval_us = _interval(fields.get("interval"))
    amount, kind = _amount(fields["amount"]), _kind(fields["kind"])
    semantics, moment = F.lit(mapping.semantics), end_us
    if mapping.semantics == DELTA:
        # Of (end - interval, end], to the microsecond.
        last = end_us - 1
        within = (interval_us > 0) & (F.floor(last / _SECOND_US) == F.floor((end_us - interval_us) / _SECOND_US))
        semantics = F.when(within, F.lit(EVENT)).otherwise(F.lit(DELTA))
        moment = F.when(within, last).otherwise(end_us)
    columns = {
        "ts": F.timestamp_micros(moment),
        "interval_ms": F.floor(interval_us / 1000).try_cast("int"),
        "broker": _broker(fields["broker"]),
        "kind": kind,
        "user": _name(fields.get("user")),
        "client_id": _name(fields.get("client_id")),
        "ip": _name(fields.get("ip")),
        "amount": amount,
        "semantics": semantics,
        UNCLEAR: _is_unclear(fields["ts"], kinds),
        "file": F.col(_FILE),
    }
    columns |= {name: _column(fields[name]).try_cast(kind) for name, kind in _FLAGS.items() if name in fields}
    return found.select(*(column.alias(name) for name, column in columns.items()))


def _column(one: Field) -> Column:
    # Column names are the files' own, dots and blanks included.
    return F.col("`" + str(one.column).replace("`", "``") + "`")


def _micros(one: Field, kinds: dict[str, str]) -> Column:
    unit, zone = one.how.get("unit", "text"), one.how.get("timezone", "UTC")
    column = _column(one)
    if unit in _TICKS:
        return F.round(F.try_multiply(column.try_cast("decimal(38,6)"), F.lit(_TICKS[unit]))).try_cast("bigint")
    if unit == "ns":
        return F.floor(column.try_cast("decimal(38,0)") / 1000).try_cast("bigint")
    if kinds.get(str(one.column)) == "timestamp":
        return F.unix_micros(column)
    text = _text_of(column)
    # Spark wants a colon in an offset.
    whole = F.when(text.rlike(_OFFSET), F.regexp_replace(text, r"([+-]\d{2})(\d{2})$", "$1:$2")).otherwise(
        F.concat(text, F.lit(f" {zone}"))
    )
    return F.unix_micros(whole.try_cast("timestamp"))


def _is_unclear(one: Field, kinds: dict[str, str]) -> Column:
    """Whether the local time of a row occurs twice or never in its zone, because the clocks were changed."""
    turns = clock_turns(one.how.get("timezone", "UTC"))
    if not turns or one.how.get("unit", "text") != "text" or kinds.get(str(one.column)) == "timestamp":
        return F.lit(False)
    text = _text_of(_column(one))
    wall = F.unix_micros(F.concat(text, F.lit(" UTC")).try_cast("timestamp"))
    found = F.lit(False)
    for begin, end in turns:
        found |= (wall >= begin) & (wall < end)
    return F.coalesce(found & ~text.rlike(_OFFSET), F.lit(False))


def _text_of(column: Column) -> Column:
    return F.trim(F.replace(column.cast("string"), F.lit(","), F.lit(".")))


def _interval(one: Field | None) -> Column:
    if one is None:
        return F.lit(0).cast("bigint")
    factor = 1_000 if one.how.get("unit", "s") == "ms" else _SECOND_US
    value = F.lit(one.constant) if one.column is None else _column(one)
    return F.round(F.try_multiply(value.try_cast("double"), F.lit(factor))).try_cast("bigint")


def _amount(one: Field) -> Column:
    value = F.lit(one.constant) if one.column is None else _column(one)
    amount = F.try_multiply(value.try_cast("decimal(38,6)"), F.lit(_UNITS[one.how.get("unit", "B")]))
    return F.round(amount).try_cast("bigint")


def _broker(one: Field) -> Column:
    if one.column is None:
        return F.lit(one.constant).cast("int")
    text = _column(one).cast("string")
    pattern = one.how.get("pattern")
    return (F.regexp_extract(text, pattern, 1) if pattern else text).try_cast("int")


def _kind(one: Field) -> Column:
    if one.column is None:
        return F.lit(one.constant)
    text = _column(one).cast("string")
    words = one.how.get("values") or {kind.value: kind.value for kind in Kind}
    found = F.lit(None).cast("string")
    for word, kind in words.items():
        found = F.when(text == word, F.lit(kind)).otherwise(found)
    return found


def _name(one: Field | None) -> Column:
    if one is None:
        return F.lit(None).cast("string")
    if one.column is None:
        return F.lit(one.constant)
    text = _column(one).cast("string")
    if strip := one.how.get("strip"):
        text = F.when(F.startswith(text, F.lit(strip)), F.substring(text, len(strip) + 1, 2**31 - 1)).otherwise(text)
    if one.how.get("encoded"):
        # A plus is itself: Kafka writes a blank as %20.
        text = F.try_url_decode(F.replace(text, F.lit("+"), F.lit("%2B")))
    return F.coalesce(text, F.lit("")) if one.how.get("missing") == "empty" else text
