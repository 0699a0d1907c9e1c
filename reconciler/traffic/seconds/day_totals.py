"""Recorded rows added up by client and second, as Spark keeps them by day: the figures of ``client_totals``, one row a second.

Rows of no client are counted by status, broker and second. They show that a broker was recorded while it was quiet.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.client_totals import COUNTED, FOLDS, NAMES, SCHEMA, count_charged, count_uncharged
from reconciler.traffic.columns.charged import ChargedRows, charged_rows, number_codes
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.rows import Totals, tables_of
from reconciler.traffic.sources.normal_form import CHARGED, UNCHARGED, UNSTATED, are_known, charge_second_sums, integers

DATE: Final = "date"
TIME: Final = "ts"
_SECOND_US: Final = 1_000_000
_DAY_S: Final = 86_400
DAY_SCHEMA: Final = pa.schema([(DATE, pa.date32()), (TIME, pa.timestamp("us", "UTC")), *SCHEMA])
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
    columns = [known.get(field.name, nothing).cast(field.type) for field in SCHEMA]
    return _timed(pa.table(columns, schema=SCHEMA), counted.column("second"))


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
