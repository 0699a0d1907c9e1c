"""Rows of a producer counted against the canonical traffic schema: violations with an example, times, and repeated rows.

Each function gives partial sums of a share, which ``shuffle.rows.Totals`` adds up, in this process and on Spark.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.kernels.sampled_rate import Flags, Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import Rows, Totals
from reconciler.traffic.sources.normal_form import (
    CHARGED,
    COLUMNS,
    DELTA,
    EVENT,
    GAUGE,
    MEAN,
    MOST_AMOUNT,
    OF_METRICS,
    are_known,
    canonical_rows,
    integers,
    row_hashes,
    times_of,
)

_FOLDS: Final = {"rows": "sum", "low": "min", "high": "max"}
_COUNTS: Final = pa.schema([("what", pa.string()), ("example", pa.string()), *((name, pa.int64()) for name in _FOLDS)])
_REPEATS: Final = pa.schema([("hash", pa.int64()), ("rows", pa.int64()), ("first_us", pa.int64())])
_ENCODED: Final = r"%[0-9A-Fa-f]{2}|^User:|[\x00-\x1f\x7f]"
_LONGEST: Final = 200
_MINUTE_US, _SECOND_US = 60_000_000, 1_000_000
_MOST_HASHES: Final = 1_000_000
"""Of more rows than this, repeated ones are looked for in a share: all rows of some hashes."""
ROWS, TIMES = "rows", "times"
"""What is counted beside violations: all rows, and those with a usable time, whose ``low`` and ``high`` these are."""
COUNTED_ALONE: Final = ("events", "seconds-only", "minutes-only", "metrics", "long-deltas", "connections")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Rows of one kind with the first example. ``low``, ``high``: extremes of a number that belongs to the kind, else 0."""

    rows: int = 0
    example: str | None = None
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRows:
    """``repeats``: rows that are equal to an earlier one, of ``looked_at`` rows. ``first_us``: the time of one of them."""

    looked_at: int = 0
    repeats: int = 0
    first_us: int | None = None


def count_rows(rows: Rows[pa.RecordBatch], *, latest_us: int) -> Mapping[str, Counted]:
    """By violation, and by ``ROWS``, ``TIMES`` and ``COUNTED_ALONE``. Times after ``latest_us`` are in the future."""
    counted = rows.total(
        Totals(
            name="rows against the schema",
            columns=tuple(name for name, _ in COLUMNS),
            count=functools.partial(_count, latest_us=latest_us),
            schema=_COUNTS,
            keys=("what", "example"),
            folds=_FOLDS,
        )
    )
    whole: dict[str, Counted] = {}
    for row in sorted(counted.to_pylist(), key=lambda row: (row["what"], row["example"] is None, row["example"] or "")):
        before = whole.get(row["what"])
        whole[row["what"]] = Counted(
            rows=row["rows"] + (before.rows if before else 0),
            example=before.example if before else row["example"],
            low=row["low"] if before is None else min(before.low, row["low"]),
            high=row["high"] if before is None else max(before.high, row["high"]),
        )
    return whole


def count_repeats(rows: Rows[pa.RecordBatch], known: int, *, most: int = _MOST_HASHES) -> RepeatedRows:
    """Rows that are equal in all columns of the schema. ``known``: how many rows there are; about ``most`` are compared."""
    bits = (-(-known // most) - 1).bit_length()
    counted = rows.total(
        Totals(
            name="repeated rows",
            columns=tuple(name for name, _ in COLUMNS),
            count=functools.partial(_count_hashes, bits=bits),
            schema=_REPEATS,
            keys=("hash",),
            folds={"rows": "sum", "first_us": "min"},
        )
    )
    repeated = counted.filter(pc.field("rows") > 1)
    whole = pc.sum(counted.column("rows")).as_py() or 0
    if not repeated.num_rows:
        return RepeatedRows(looked_at=whole)
    return RepeatedRows(
        looked_at=whole,
        repeats=pc.sum(repeated.column("rows")).as_py() - repeated.num_rows,
        first_us=pc.min(repeated.column("first_us")).as_py(),
    )


def _count(batches: Iterable[pa.RecordBatch], *, latest_us: int) -> Iterator[pa.RecordBatch]:
    counts: dict[str, Counted] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        for what, more in _counts_of(batch, latest_us):
            before = counts.get(what)
            counts[what] = more if before is None else _joined(before, more)
    rows = [
        {"what": what, "example": count.example, "rows": count.rows, "low": count.low, "high": count.high}
        for what, count in counts.items()
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNTS)


def _joined(before: Counted, more: Counted) -> Counted:
    return Counted(
        rows=before.rows + more.rows,
        example=before.example if before.example is not None else more.example,
        low=min(before.low, more.low),
        high=max(before.high, more.high),
    )


def _counts_of(batch: pa.RecordBatch, latest_us: int) -> Iterator[tuple[str, Counted]]:
    times = times_of(batch)
    timely = are_known(times)
    ts_us = integers(times)
    yield ROWS, Counted(rows=batch.num_rows)
    if timely.any():
        some = ts_us[timely]
        yield TIMES, Counted(rows=len(some), low=int(some.min()), high=int(some.max()))
        back = np.flatnonzero(np.diff(some) < 0)
        if len(back):
            yield ("time-order", Counted(rows=len(back), example=_row(batch, int(np.flatnonzero(timely)[back[0] + 1]))))
    for what, rows, column in _violations(batch, ts_us, timely, latest_us):
        if rows.any():
            place = int(np.flatnonzero(rows)[0])
            example = _row(batch, place) if column is None else _cell(batch, column, place)
            yield what, Counted(rows=int(rows.sum()), example=example)
    for what, rows in _facts(batch, ts_us, timely):
        if rows.any():
            yield what, Counted(rows=int(rows.sum()))


def _violations(batch: pa.RecordBatch, ts_us: Integers, timely: Flags, latest_us: int) -> Iterator[tuple[str, Flags, str | None]]:
    """Each with its rows, and the column that the example shows (``None``: the row)."""
    known = {name: are_known(batch.column(name)) for name in batch.schema.names}
    kind, semantics = _texts(batch, "kind"), _texts(batch, "semantics")
    amount, interval = _numbers(batch, "amount"), _numbers(batch, "interval_ms")
    of_address = _is_one_of(kind, {Kind.CONNECTION})
    for name in ("ts", "broker", "kind", "amount", "semantics"):
        yield (f"null-{name}", ~known[name], None)
    yield ("time-range", known["ts"] & ~timely, None)
    yield "future", timely & (ts_us > latest_us), None
    yield "kinds", known["kind"] & ~_is_one_of(kind, set(Kind)), "kind"
    yield "semantics", known["semantics"] & ~_is_one_of(semantics, {EVENT, DELTA, GAUGE, MEAN}), "semantics"
    yield "amounts", known["amount"] & ((amount < 0) | (amount > MOST_AMOUNT)), None
    yield "brokers", known["broker"] & ((_numbers(batch, "broker") < 0) | (_numbers(batch, "broker") >= 2**31)), "broker"
    if "overhead" in known:
        overhead = _numbers(batch, "overhead")
        yield "overhead", known["overhead"] & known["amount"] & (amount >= 0) & ((overhead < 0) | (overhead > amount)), None
    without = ~known.get("interval_ms", np.zeros(batch.num_rows, dtype=np.bool_)) | (interval <= 0)
    yield "intervals", _is_one_of(semantics, {DELTA, MEAN}) & without, None
    yield ("event-intervals", _is_one_of(semantics, {EVENT}) & (interval != 0), None)
    nothing = np.zeros(batch.num_rows, dtype=np.bool_)
    for name in ("user", "client_id"):
        yield (f"no-{name}", ~of_address & ~known[name], None)
        yield ("identity-encoding", ~of_address & _matches(_texts(batch, name), _ENCODED), name)
    yield ("no-ip", of_address & ~known.get("ip", nothing), None)
    status = canonical_rows(batch, ["status"]).column(0)
    yield "unreadable", ~_is_one_of(status, {CHARGED, *OF_METRICS}), None


def _facts(batch: pa.RecordBatch, ts_us: Integers, timely: Flags) -> Iterator[tuple[str, Flags]]:
    """Of which rows there are, and how fine their times are; ``COUNTED_ALONE``."""
    semantics = _texts(batch, "semantics")
    events = timely & _is_one_of(semantics, {EVENT}) & (_numbers(batch, "interval_ms") == 0)
    yield "events", events
    yield ("seconds-only", events & (ts_us % _SECOND_US == 0))
    yield ("minutes-only", events & (ts_us % _MINUTE_US == 0))
    yield "metrics", _is_one_of(semantics, set(OF_METRICS))
    yield ("long-deltas", _is_one_of(semantics, {DELTA}) & (_numbers(batch, "interval_ms") > 1000))
    yield "connections", _is_one_of(_texts(batch, "kind"), {Kind.CONNECTION})


def _count_hashes(batches: Iterable[pa.RecordBatch], *, bits: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        hashes, ts_us = row_hashes(batch), integers(times_of(batch))
        chosen = hashes & np.int64((1 << bits) - 1) == 0
        ones = np.ones(int(chosen.sum()), dtype=np.int64)
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in (hashes[chosen], ones, ts_us[chosen])], schema=_REPEATS)


def _texts(batch: pa.RecordBatch, name: str) -> pa.DictionaryArray:
    column = batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
    return column if pa.types.is_dictionary(column.type) else column.cast(pa.string()).dictionary_encode()


def _numbers(batch: pa.RecordBatch, name: str) -> Integers:
    """0 where they are null or missing."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, dtype=np.int64)
    return integers(pc.cast(batch.column(name), pa.int64(), safe=False))


def _is_one_of(names: pa.DictionaryArray, wanted: Iterable[str]) -> Flags:
    words = frozenset(map(str, wanted))
    return _by_name(names, [name in words for name in names.dictionary.to_pylist()])


def _matches(names: pa.DictionaryArray, pattern: str) -> Flags:
    return _by_name(names, [name is not None and re.search(pattern, name) is not None for name in names.dictionary.to_pylist()])


def _by_name(names: pa.DictionaryArray, chosen: Sequence[bool]) -> Flags:
    return np.asarray([*chosen, False], dtype=np.bool_)[integers(pc.fill_null(names.indices, len(chosen)))]


def _cell(batch: pa.RecordBatch, name: str, place: int) -> str:
    return str(batch.column(name)[place].as_py())[:_LONGEST]


def _row(batch: pa.RecordBatch, place: int) -> str:
    names = [name for name, _ in COLUMNS[:8] if name in batch.schema.names]
    cells = (f"{name}={_value(batch.column(name)[place])}" for name in names)
    return " ".join(cells)[:_LONGEST]


def _value(scalar: pa.Scalar) -> str:
    """A time as its number where Python has no such date."""
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):
        return str(scalar.value)
    return "null" if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)
