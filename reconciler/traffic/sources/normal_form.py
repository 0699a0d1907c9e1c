"""The canonical traffic schema: one row an observation, whatever it was read from, and its form as Parquet (the normal form).

``kind``, ``amount`` and the identity are what was charged to which client. By ``semantics`` a row is a single request
(``event``), a difference of counters within one second of the clock (``delta``), or a broker's own sampled rate at a moment
(``gauge``, which is also the status of such a row). A longer delta has an unclear time, and any other row is unreadable. Only
events can be judged request by request.
A null ``user`` or ``client_id`` is not known; an empty one is really empty.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.model import GAUGE, TRAFFIC_SCHEMA, escaped
from reconciler.text import list_some, percent_text
from reconciler.traffic.kernels.sampled_rate import Flags, Integers
from reconciler.traffic.kinds import Kind

COLUMNS: Final = tuple((column.name, column.type) for column in TRAFFIC_SCHEMA)
"""``ts``: the charge time, or the end of the interval; UTC, microseconds. ``amount``: bytes (produce, fetch), nanoseconds of a
thread (request), partitions (mutation), connections (connection). ``overhead``: the part of ``amount`` that is not records, which
a fetch quota does not cut. ``tie``: orders requests of one microsecond.

A mutation has one row for each topic of its request: the same ``ts`` and ``tie``, and ``part`` counts the topics from 0 in the
order of the request; ``strict`` states whether its API version is refused topics (CreateTopics from 6, CreatePartitions from 3,
DeleteTopics from 5; null: it is) or only delayed. A connection has an ``ip``, and neither user nor client id. From ``throttled``
on, columns may be missing or null."""
IDENTITY: Final = ("broker", "kind", "user", "client_id", "ip")
"""The columns of rows that identify a client: its requests of one kind on one broker. Only a connection has an ``ip``."""
_REQUIRED: Final = tuple(column.name for column in TRAFFIC_SCHEMA if column.required)
EVENT: Final = "event"
"""The semantics of a single request."""
DELTA: Final = "delta"

UNKNOWN_IDENTITY: Final = "unknown-identity"
SECOND_SUM: Final = "second-sum"
"""The status of a delta within one second of the clock: as good as a per-second total."""

RECORDED_THROTTLE: Final = "recorded_throttle_ms"
"""The column: for how long the broker throttled a request when it was recorded."""
IDENTITY_COLUMNS: Final = ("connection", "correlation_id", RECORDED_THROTTLE)
"""They identify a request, and make rows large."""

CHARGED: Final = "charged"
FOLLOWER: Final = "follower"
REFUSED: Final = "refused-transaction"
"""A transactional produce refused as a whole (error 53 everywhere) is not charged."""
UNSIZED: Final = "share-fetch"
"""Of a share group: charged as a fetch, but the log does not give its size."""
EXEMPT: Final = "exempt"
"""Its time is not charged to any client."""
OTHER_API: Final = "other-api"
UNCLEAR_TIME: Final = "unclear-time"
"""Its local time is there twice, or never, because the clocks were changed; or it is a delta of more than one second."""
DUPLICATE: Final = "duplicate"
"""Another line of the same connection, number and time is counted: a log was copied, or is given under two names."""
UNKNOWN_PARTITIONS: Final = "unknown-partitions"
"""A topic that was deleted or extended: no line shows how many partitions that cost."""
UNCHARGED: Final[Mapping[str, str]] = {UNCLEAR_TIME: "unplaced", UNKNOWN_PARTITIONS: "uncounted"}
"""What rows of known clients lack to be charged, by status: the name of the figure that counts them for each client."""
UNREADABLE: Final = "unreadable"
UNSTATED: Final = "throttle-unstated"
"""Counts charged rows, once more, that do not state whether the broker throttled them."""
SILENT: Final = "silent-minute"
"""A minute that a recorder watched, and in which the broker charged no client."""
_SECOND_US: Final = 1_000_000
FIRST_US: Final = 946_684_800_000_000
END_US: Final = 4_102_444_800_000_000
"""The years 2000 to 2099, as microseconds since 1970: any other time comes from a damaged row or a wrong unit."""
MOST_AMOUNT: Final = 2**42
"""Of one row: 4 TiB, or 73 minutes of a thread. Two million such rows can be added up in 64 bits."""
DEFAULT_MOST: Final = 0.01
"""One row in a hundred: what a few lines cut by rotation or a full disk never reach, and a wrong layout always does."""

ROWS: Final = pa.schema(
    [
        ("status", pa.string()), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        ("ts_us", pa.int64()), ("records", pa.int64()), ("overhead", pa.int64()), ("throttled", pa.bool_()), ("tie", pa.int64()),
        ("detail", pa.string()), ("strict", pa.bool_()), ("part", pa.int32()), ("interval_us", pa.int64()), ("ip", pa.string()),
    ]
)  # fmt: skip
"""Rows as those of ``request_log``. ``interval_us``: of a gauge, the time since the sample before it. Null: a request, or
not known. ``ip``: the address of a connection; null for all other rows."""
FILE: Final = pa.field("file", pa.string())
"""The address of each row's file, behind ``ROWS``."""
_STATUSES: Final = (UNREADABLE, SECOND_SUM, UNCLEAR_TIME, GAUGE, UNKNOWN_IDENTITY, CHARGED)
_TYPES: Final = {
    "timestamp": pa.types.is_timestamp, "int": pa.types.is_integer, "bigint": pa.types.is_integer, "boolean": pa.types.is_boolean,
    "string": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
}  # fmt: skip


def rows_of(batch: pa.RecordBatch, file: str | None = None) -> pa.RecordBatch:
    """``ROWS``, and with a ``file`` that, of a batch in the normal form. Names are dictionaries: each is there once.

    For readers that add up seconds: a delta within one second is a charged row.
    """
    rows = charge_second_sums(canonical_rows(batch))
    return rows if file is None else rows.append_column(FILE, pa.repeat(file, batch.num_rows))


def canonical_rows(batch: pa.RecordBatch, columns: Sequence[str] = ROWS.names) -> pa.RecordBatch:
    """Make some columns of ``ROWS`` of a batch in the normal form, names as dictionaries of strings with int32 indices.

    A row that is not a request has the reason as status. A connection has an ``ip``, and neither user nor client id; all other
    rows have no ``ip``. ``file_columns`` gives the columns that ``batch`` needs for this.
    """
    kind = _names(batch, "kind")
    user, client_id = (_names(batch, name) for name in ("user", "client_id"))
    of_address = _one_of(kind, {Kind.CONNECTION})
    known, ip = np.ones(batch.num_rows, dtype=np.bool_), pa.nulls(batch.num_rows, _NAMES)
    if of_address.any():
        user, client_id = (_only_where(names, ~of_address) for names in (user, client_id))
        ip = _only_where(_names(batch, "ip"), of_address)
        # A client without a known name may still be judged; of an address there is nothing else to know.
        known = ~of_address | are_known(ip)
    broker, ts_us = _column(batch, "broker", pa.int32()), times_of(batch)
    amount = _column(batch, "amount", pa.int64())
    counts = integers(amount)
    countable = are_known(amount) & (counts >= 0) & (counts <= MOST_AMOUNT)
    semantics = _names(batch, "semantics")
    of_delta, of_gauge = _one_of(semantics, {DELTA}), _one_of(semantics, {GAUGE})
    of_second = of_delta
    if of_delta.any():
        interval_us = integers(_column(batch, "interval_ms", pa.int32())) * 1000
        of_second = of_delta & is_within_second(integers(ts_us), interval_us)
        # Of (end - interval, end], so that the end of a second belongs to it.
        ts_us = pc.subtract(ts_us, pa.array(of_second).cast(pa.int64()))
    usable = are_known(ts_us) & countable & are_known(broker) & _one_of(kind, set(Kind))
    usable &= of_delta | of_gauge | _one_of(semantics, {EVENT})
    # Its amount is known, and counts against a limit in seconds that are not: no limit of its client is clear.
    wrong = [~usable, of_second & known, of_delta & known, of_gauge, ~known]
    more = np.zeros(batch.num_rows, dtype=np.int64)
    if "overhead" in batch.schema.names:
        # Anything else would spoil sums and spans.
        more = np.clip(integers(_column(batch, "overhead", pa.int64())), 0, np.where(countable, counts, 0))
    uncountable = None if countable.all() else ~countable
    made: dict[str, Callable[[], pa.Array]] = {
        "status": lambda: _statuses(wrong),
        "broker": lambda: broker,
        "kind": lambda: kind,
        "user": lambda: user,
        "client_id": lambda: client_id,
        "ts_us": lambda: ts_us,
        "records": lambda: pa.array(counts - more, mask=uncountable),
        "overhead": lambda: pa.array(more, mask=uncountable),
        "throttled": lambda: _column(batch, "throttled", pa.bool_()),
        "tie": lambda: ties_of(batch),
        "detail": lambda: _details(batch, usable),
        "strict": lambda: _column(batch, "strict", pa.bool_()),
        "part": lambda: _column(batch, "part", pa.int32()),
        "interval_us": lambda: _interval_us(~_one_of(semantics, {EVENT}), _column(batch, "interval_ms", pa.int32())),
        "ip": lambda: ip,
    }
    return pa.RecordBatch.from_arrays([made[name]() for name in columns], names=list(columns))


_DETAILS: Final = 5
"""Of the rows of a batch that cannot be read, so many are described."""
_LONGEST_SHOWN: Final = 80


def _details(batch: pa.RecordBatch, usable: Flags) -> pa.Array:
    """Describe what is wrong with the first rows that are not usable: a column and its value."""
    texts = {place: _detail(batch.slice(place, 1)) for place in np.flatnonzero(~usable)[:_DETAILS].tolist()}
    return pa.array(map(texts.get, range(batch.num_rows)), pa.string()) if texts else pa.nulls(batch.num_rows, pa.string())


def _detail(row: pa.RecordBatch) -> str | None:
    broker, amount = _column(row, "broker", pa.int32()), _column(row, "amount", pa.int64())
    checks = {
        "kind": (_one_of(_names(row, "kind"), set(Kind))[0], f"is none of {', '.join(kind.value for kind in Kind)}"),
        "ts": (are_known(times_of(row))[0], "is not a time of the years 2000 to 2099"),
        "broker": (are_known(broker)[0], "is not the number of a broker"),
        "amount": (are_known(amount)[0] and 0 <= integers(amount)[0] <= MOST_AMOUNT, f"is not a number from 0 to {MOST_AMOUNT}"),
        "semantics": (_one_of(_names(row, "semantics"), {EVENT, DELTA, GAUGE})[0], "is none of event, delta, gauge"),
    }
    for name, (holds, words) in checks.items():
        if not holds:
            value = row.column(name).cast(pa.string())[0].as_py() if name in row.schema.names else None
            return f"column {name!r} " + ("has no value" if value is None else f"has {value[:_LONGEST_SHOWN]!r}, which {words}")
    return None


def is_within_second(end_us: Integers, interval_us: Integers) -> Flags:
    """Mark the rows whose time, (end - interval, end], is of one second of the clock and not empty."""
    return np.asarray((interval_us > 0) & ((end_us - 1) // _SECOND_US == (end_us - interval_us) // _SECOND_US), dtype=np.bool_)


def charge_second_sums(batch: pa.RecordBatch) -> pa.RecordBatch:
    """``canonical_rows`` with sums of a second as charged rows, for judging by seconds. ``batch`` has the column ``status``."""
    status = batch.column("status")
    names = status.dictionary.to_pylist() if pa.types.is_dictionary(status.type) else pc.unique(status).to_pylist()
    if SECOND_SUM not in names:
        return batch
    texts = status.cast(pa.string())
    charged = pc.if_else(pc.equal(texts, SECOND_SUM), CHARGED, texts).dictionary_encode()
    return batch.set_column(batch.schema.names.index("status"), "status", charged.cast(status.type))


def with_missing(made: Mapping[str, pa.Array], columns: Sequence[str], count: int) -> pa.RecordBatch:
    """Make columns of ``ROWS`` of those that are made; others are null. ``count``: of the rows."""
    arrays = [made[name] if name in made else pa.nulls(count, ROWS.field(name).type) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def file_columns(columns: Sequence[str], *, may_have_deltas: bool = True) -> tuple[str, ...]:
    """The columns of the normal form from which ``canonical_rows`` makes some columns of ``ROWS``.

    ``may_have_deltas``: the status of such a row depends on its interval.
    """
    more = {"throttled": ("throttled",), "tie": ("tie", "part"), "strict": ("strict",), "part": ("part",),
            "interval_us": ("interval_ms",)}  # fmt: skip
    read = {name for column in columns for name in more.get(column, ())}
    read |= {"interval_ms"} if may_have_deltas else set()
    read |= {"ts", "broker", "user", "client_id", "ip", "kind", "amount", "semantics", "overhead"}
    return tuple(name for name, _ in COLUMNS if name in read)


def _statuses(wrong: Sequence[Flags]) -> pa.DictionaryArray:
    """The first thing that is wrong with each row, in the order of ``_STATUSES``."""
    codes = np.full(len(wrong[0]), len(wrong), dtype=np.int32)
    for code in reversed(range(len(wrong))):
        if wrong[code].any():
            codes[wrong[code]] = code
    return pa.DictionaryArray.from_arrays(codes, pa.array(_STATUSES))


def _interval_us(of_metric: Flags, interval_ms: pa.Array) -> pa.Array:
    length = integers(interval_ms)
    return pa.array(length * 1000, mask=~(of_metric & (length > 0)))


def ties_of(batch: pa.RecordBatch) -> pa.Array:
    """The column ``tie``; where it is null or missing, a number that only the row's client and amount decide.

    The topics of one request stay together.
    """
    given = _column(batch, "tie", pa.int64())
    if "tie" in batch.schema.names and not given.null_count:
        return given
    alone = ~are_known(_column(batch, "part", pa.int32()))
    mixed = np.where(alone, integers(_column(batch, "amount", pa.int64())), 0).astype(np.uint64)
    for name in ("user", "client_id", "ip", "kind"):
        mixed = _mixed(mixed, _name_hashes(batch, name))
    made = pa.array((mixed >> np.uint64(1)).astype(np.int64))
    return pc.coalesce(given, made)


def _mixed(before: Hashes, more: Hashes) -> Hashes:
    mixed = (before ^ more) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(mixed ^ mixed >> np.uint64(29), dtype=np.uint64)


def is_in_time(ts_us: Integers) -> Flags:
    """Whether a time can be that of recorded traffic."""
    return (ts_us >= FIRST_US) & (ts_us < END_US)


def require_columns(schema: pa.Schema, file: str) -> None:
    """Raise ``TrafficError`` when a column is missing or of another type."""
    missing = [name for name in _REQUIRED if name not in schema.names]
    if missing and {"start_us", "end_us"} <= set(schema.names):
        raise TrafficError(
            f"recorded traffic {file} has per-second totals by day. Give the address of their folder, such as file:///data/seconds"
        )
    if missing:
        raise TrafficError(
            f"recorded traffic {file}: the canonical traffic schema needs the column {missing[0]!r}, and the file has "
            f"{', '.join(sorted(schema.names))}. For other columns give a --mapping"
        )
    types = {field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema}
    for name, kind in COLUMNS:
        if name in types and not _TYPES[kind](types[name]):
            raise TrafficError(f"recorded traffic {file}: the column {name!r} is {types[name]}, not {kind}")


_TICKS: Final = {"s": (1, 1_000_000), "ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}
"""How many ticks of a unit are how many microseconds."""
_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
Hashes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, kind)
    column = batch.column(name)
    if kind == pa.int32():
        # A number of more than 32 bits is not a broker.
        wide = integers(pc.cast(column, pa.int64(), safe=False))
        return pa.array(wide, mask=~are_known(column) | (wide < -(2**31)) | (wide >= 2**31)).cast(kind)
    return pc.cast(column, kind, safe=False)


def times_of(batch: pa.RecordBatch) -> pa.Array:
    """Microseconds since 1970, null outside of the years that a row may be of, and where the batch has no times."""
    if "ts" not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.int64())
    column = batch.column("ts")
    finer, coarser = _TICKS[column.type.unit]
    ticks = integers(pc.cast(column, pa.int64()))
    # In its own unit, since 64 bits of microseconds are too few for every number of seconds.
    usable = are_known(column) & (ticks >= FIRST_US * finer // coarser) & (ticks < END_US * finer // coarser)
    return pa.array(np.where(usable, ticks, 0) * coarser // finer, mask=~usable)


def _names(batch: pa.RecordBatch, name: str) -> pa.DictionaryArray:
    column = batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    return column.cast(_NAMES)


def _only_where(names: pa.DictionaryArray, rows: Flags) -> pa.DictionaryArray:
    """The names of some rows; the others are null."""
    return pa.DictionaryArray.from_arrays(pc.if_else(pa.array(rows), names.indices, None), names.dictionary)


def _one_of(names: pa.DictionaryArray, wanted: Collection[str]) -> Flags:
    chosen = [name in wanted for name in names.dictionary.to_pylist()]
    if not any(chosen):
        return np.zeros(len(names), dtype=np.bool_)
    if all(chosen) and not names.null_count:
        return np.ones(len(names), dtype=np.bool_)
    return np.asarray([*chosen, False], dtype=np.bool_)[integers(pc.fill_null(names.indices, len(chosen)))]


def _name_hashes(batch: pa.RecordBatch, name: str) -> Hashes:
    """Hash each name; 0 for one that is not known."""
    encoded = _names(batch, name)
    hashes = [zlib.crc32(text.encode("utf-8", "surrogatepass")) + 1 for text in encoded.dictionary.to_pylist()]
    places = integers(pc.fill_null(encoded.indices, len(hashes)))
    return np.asarray([*hashes, 0], dtype=np.uint64)[places]


def are_known(column: pa.Array) -> Flags:
    """Mark the rows in which a column is not null."""
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def integers(column: pa.Array) -> Integers:
    """Whole numbers or flags, 0 where they are null."""
    whole = column.cast(pa.int64())
    if whole.null_count:
        whole = pc.fill_null(whole, 0)
    return np.asarray(whole.to_numpy(zero_copy_only=False), dtype=np.int64)


def require_readable(unreadable: int, rows: int, most: float, *, files: Sequence[str], samples: Sequence[str] = ()) -> None:
    """Raise ``TrafficError`` when more than the share ``most`` of ``rows`` is ``unreadable``."""
    if not rows or unreadable <= most * rows:
        return
    where = list_some([escaped(file) for file in files], 1)
    shown = f", for instance: {list_some([escaped(sample) for sample in samples], 1)}" if samples else ""
    raise TrafficError(
        f"recorded traffic {where}: {unreadable} of {rows} rows cannot be read ({percent_text(unreadable / rows)}), and "
        f"--max-unreadable allows {percent_text(most)}{shown}"
    )
