"""Rows added up by client and second: kept, so that judging by seconds reads the traffic once, or stored by day.

One batch has the totals of a share's clients, the minutes with a row, and the amount of each client in each second. Such sums are
fewer than rows, often a fourth, and have everything that verdicts by seconds and plots need.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.client_totals import CLIENT_TOTALS, COUNTED, MINUTE_TOTALS, MINUTES, count_batch, minutes_of_rows
from reconciler.traffic.client_totals import SCHEMA as TOTALS
from reconciler.traffic.columns import NAME_CODES, ChargedRows, GroupIndex, charged_rows, client_seconds, grouped_seconds, moments
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.rows import LocalRows, Rows, Sums, tables_of
from reconciler.traffic.sources.normal_form import CHARGED

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


def _structs(batches: Iterable[pa.RecordBatch], name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = zip(batch.column(name).flatten().flatten(), schema, strict=True)
        yield pa.RecordBatch.from_arrays([column.cast(field.type) for column, field in columns], schema=schema)


_OF_ROWS: Final = (CLIENT_TOTALS, MINUTE_TOTALS)
ONE_PASS: Final = (
    replace(CLIENT_TOTALS, count=functools.partial(_structs, name="totals", schema=TOTALS), columns=("totals",)),
    replace(MINUTE_TOTALS, count=functools.partial(_structs, name="minutes", schema=MINUTES), columns=("minutes",)),
)
"""The same totals of rows that are added up already. One pass gives them."""
KEYED: Final = ("totals", *_SUMS)
"""The columns of ``SCHEMA`` that ``keyed_sums`` and ``summed_seconds`` read."""


def keyed_sums(batches: Iterable[pa.RecordBatch], groups: GroupIndex) -> Iterator[tuple[Integers, Integers]]:
    """Yield the same as ``columns.keyed_seconds`` of sums. ``batches``: with the columns ``KEYED``."""
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
