"""Rows added up by client and second: kept, so that judging by seconds reads the traffic once, or stored by day.

One batch has the totals of a share's clients, the minutes with a row, and the amount of each client in each second. Such sums are
fewer than rows, often a fourth, and have everything that verdicts by seconds and plots need.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.client_totals import (
    CLIENT_TOTALS,
    COUNTED,
    FOLDS,
    MINUTE_TOTALS,
    MINUTES,
    NAMES,
    count_batch,
    count_charged,
    count_uncharged,
    minutes_of_rows,
)
from reconciler.traffic.client_totals import SCHEMA as TOTALS
from reconciler.traffic.columns import (
    NAME_CODES,
    ChargedRows,
    GroupIndex,
    charged_rows,
    client_seconds,
    grouped_seconds,
    moments,
    number_codes,
)
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.rows import LocalRows, Rows, Sums, Totals, tables_of
from reconciler.traffic.sources.normal_form import CHARGED, UNCHARGED, UNSTATED, are_known, charge_second_sums, integers

if TYPE_CHECKING:
    from reconciler.traffic.shuffle.on_spark import KeptRows, SparkRows

_STRUCTS: Final = {
    "totals": pa.struct([pa.field(f.name, NAME_CODES if pa.types.is_string(f.type) else f.type) for f in TOTALS]),
    "minutes": pa.struct(list(MINUTES)),
}
_SUMS: Final = {"client": pa.int32(), "second": pa.int64(), "amount": pa.int64()}
SCHEMA: Final = pa.schema([(name, pa.list_(kind)) for name, kind in (_STRUCTS | _SUMS).items()])
"""One row a share. ``totals``: ``client_totals.SCHEMA``, clients first. ``client``: their indexes, one item for each second."""
_SECOND_US: Final = 1_000_000
READ: Final = COUNTED
"""The columns of rows that ``add_up_seconds`` reads."""


def add_up_seconds(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``SCHEMA``, a batch for some million rows. ``batches``: canonical rows with the columns ``READ``."""
    for table in tables_of(batches):
        for batch in table.unify_dictionaries().combine_chunks().to_batches():
            rows = charged_rows(batch)
            client, second, amount = client_seconds(rows, np.ones(rows.clients, dtype=np.bool_))
            columns = [
                _as_item(count_batch(rows, batch), "totals"),
                _as_item(_minutes(rows, batch, client, second), "minutes"),
                *(_item(pa.array(values, kind)) for values, kind in zip((client, second, amount), _SUMS.values(), strict=True)),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _minutes(rows: ChargedRows, batch: pa.RecordBatch, client: Integers, second: Integers) -> pa.Table:
    """``MINUTES`` of all rows. Of charged ones alone, their seconds have them, which are fewer."""
    return minutes_of_rows(*moments(batch)) if rows.others else minutes_of_rows(second * _SECOND_US, rows.broker[client])


def _as_item(table: pa.Table, name: str) -> pa.Array:
    kind = _STRUCTS[name]
    return _item(table.cast(pa.schema(list(kind))).combine_chunks().to_struct_array().combine_chunks())


def _item(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _structs(batch: pa.RecordBatch, name: str, schema: pa.Schema) -> pa.RecordBatch:
    rows = batch.column(name).flatten()
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(rows.flatten(), schema, strict=True)], schema=schema
    )


def _clients_of_sums(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (_structs(batch, "totals", TOTALS) for batch in batches)


def _minutes_of_sums(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (_structs(batch, "minutes", MINUTES) for batch in batches)


_OF_ROWS: Final = (CLIENT_TOTALS, MINUTE_TOTALS)
ONE_PASS: Final = (
    replace(CLIENT_TOTALS, count=_clients_of_sums, columns=("totals",)),
    replace(MINUTE_TOTALS, count=_minutes_of_sums, columns=("minutes",)),
)
"""The same totals of rows that are added up already. One pass gives them."""
KEYED: Final = ("totals", *_SUMS)
"""The columns of ``SCHEMA`` that ``keyed_sums`` and ``summed_seconds`` read."""


def keyed_sums(batches: Iterable[pa.RecordBatch], groups: GroupIndex) -> Iterator[tuple[Integers, Integers]]:
    """As ``group_index.keyed_seconds``. ``batches``: with the columns ``KEYED``."""
    for batch in batches:
        clients, *columns = summed_seconds(batch)
        names = (clients.column(name) for name in ("user", "client_id", "ip", "kind", "broker"))
        yield from grouped_seconds(groups.of_names(*names)[1], *columns)


def summed_seconds(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Integers, Integers, Integers]:
    """The clients of charged rows (``client_totals.SCHEMA``), and client, second and amount of each sum.

    ``batch``: with the columns ``KEYED``.
    """
    totals = pa.RecordBatch.from_struct_array(batch.column("totals").flatten())
    client, second, amount = (np.asarray(batch.column(name).flatten().to_numpy(), dtype=np.int64) for name in _SUMS)
    return totals.filter(pc.equal(totals.column("status"), CHARGED)), client, second, amount


def sum_here(rows: LocalRows[pa.RecordBatch]) -> LocalRows[pa.RecordBatch]:
    """``rows`` with their sums. They are read when they are needed first."""
    sums = functools.cache(lambda: list(add_up_seconds(rows.read(READ))))
    return rows.with_sums(_sums(LocalRows(lambda _: sums(), ONE_PASS)))


def sum_on_spark(rows: SparkRows[pa.RecordBatch]) -> SparkRows[pa.RecordBatch]:
    """The same of rows on Spark, which keeps the sums until they are closed."""
    return rows.with_sums(_sums(keep_sums(rows)))


def _sums(rows: Rows[pa.RecordBatch]) -> Sums[pa.RecordBatch]:
    return Sums(rows=rows, columns=KEYED, totals=tuple(zip(_OF_ROWS, ONE_PASS, strict=True)))


def keep_sums(rows: SparkRows[pa.RecordBatch]) -> KeptRows:
    """The sums of rows, batches of ``SCHEMA``, which Spark keeps until they are closed."""
    return rows.keep("per-second totals", add_up_seconds, READ, SCHEMA.names, ONE_PASS)


DATE: Final = "date"
TIME: Final = "ts"
_DAY_S: Final = 86_400
DAY_SCHEMA: Final = pa.schema([(DATE, pa.date32()), (TIME, pa.timestamp("us", "UTC")), *TOTALS])
"""``ts``: the begin of the second. Rows whose time cannot be read have neither day nor second."""


def count_days(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``DAY_SCHEMA`` of some million rows at a time. ``batches``: with the columns ``COUNTED``."""
    for table in tables_of(batches):
        for batch in table.unify_dictionaries().combine_chunks().to_batches():
            yield from _count_batch(charge_second_sums(batch)).to_batches()


DAY_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="seconds of clients", columns=COUNTED, count=count_days, schema=DAY_SCHEMA, keys=(DATE, TIME, *NAMES), folds=FOLDS
)


def _count_batch(batch: pa.RecordBatch) -> pa.Table:
    charged, second = _by_second(charged_rows(batch))
    parts = [_timed(count_charged(charged, batch), second), _others(batch)]
    for status in UNCHARGED:
        if status in charged.others:
            uncharged, second = _by_second(charged_rows(batch, status))
            parts.append(_timed(count_uncharged(uncharged, status), second))
            # With their amounts, too: what they can have been is judged by itself.
            of_status = pa.repeat(status, uncharged.clients)
            parts.append(_timed(count_charged(uncharged, batch).set_column(0, "status", of_status), second))
    return pa.concat_tables(parts)


def _by_second(rows: ChargedRows) -> tuple[ChargedRows, Integers]:
    """The same rows with each second of a client as a client, and which second that is."""
    if not len(rows.of):
        return rows, rows.of[:0]
    second = rows.ts_us // _SECOND_US
    begin = int(second.min())
    span = int(second.max()) - begin + 1
    distinct, number = number_codes(rows.of * span + second - begin, rows.clients * span)
    client, names = distinct // span, ("kind", "user", "client_id", "ip")
    chosen = {name: getattr(rows, name).take(pa.array(client)) for name in names}
    return replace(rows, of=number, broker=rows.broker[client], begins=None, **chosen), distinct % span + begin


def _others(batch: pa.RecordBatch) -> pa.Table:
    """Rows of no client, and charged rows that do not state a throttle once more as ``UNSTATED``."""
    status = batch.column("status").cast(pa.string())
    charged = pc.equal(status, CHARGED)
    unstated = batch.column("throttled").is_null() if "throttled" in batch.schema.names else charged
    status = pc.if_else(pc.and_(charged, unstated), UNSTATED, status)
    wanted = pc.invert(pc.is_in(status, pa.array([CHARGED, *UNCHARGED])))
    rows, status = batch.select(["ts_us", "broker"]).filter(wanted), status.filter(wanted)
    second, broker = integers(rows.column("ts_us")) // _SECOND_US, integers(rows.column("broker"))
    unknown = ~(are_known(rows.column("ts_us")) & are_known(rows.column("broker")))
    table = pa.table({"status": status, "second": pa.array(second, mask=unknown), "broker": pa.array(broker, mask=unknown)})
    counted = table.group_by(["status", "second", "broker"], use_threads=False).aggregate([([], "count_all")])
    nothing = pa.nulls(counted.num_rows, pa.int64())
    known = {"status": counted.column("status"), "broker": counted.column("broker"), "lines": counted.column("count_all")}
    columns = [known.get(field.name, nothing).cast(field.type) for field in TOTALS]
    return _timed(pa.table(columns, schema=TOTALS), counted.column("second"))


def _timed(counted: pa.Table, second: Integers | pa.ChunkedArray) -> pa.Table:
    """``DAY_SCHEMA`` of rows of ``client_totals.SCHEMA``."""
    seconds = second if isinstance(second, pa.ChunkedArray) else pa.chunked_array([pa.array(second, pa.int64())])
    date = pc.cast(pc.divide(seconds, _DAY_S), pa.int32()).cast(pa.date32())
    time = pc.multiply(seconds, _SECOND_US).cast(DAY_SCHEMA.field(TIME).type)
    return pa.table([date, time, *counted.columns], schema=DAY_SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerDay:
    """A day that was not written, since the dataset has more requests of this broker than the traffic."""

    date: datetime.date
    """The day (UTC)."""
    broker: int
    """A broker that has fewer requests in the traffic."""
    kind: str
    """The kind of these requests, such as produce."""
    before: int
    """The charged requests of this broker and kind that are there."""
    now: int
    """Those that the traffic has."""
