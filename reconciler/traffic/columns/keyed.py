"""Charged rows, keyed by the group in which they are judged: as sums of seconds, or one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from reconciler.traffic.columns.charged import ChargedRows, charged_rows
from reconciler.traffic.columns.group_index import GroupIndex
from reconciler.traffic.columns.numbering import summed
from reconciler.traffic.kernels.exact_totals import MICRO_BITS, ORDER_BITS, pack
from reconciler.traffic.kernels.second_sums import Flags, keys_of
from reconciler.traffic.kernels.timeline import Integers

More: TypeAlias = Callable[[ChargedRows, pa.RecordBatch], Sequence[Integers]]
"""Further columns of the charged rows of a batch."""


def keyed_seconds(batches: Iterable[pa.RecordBatch], groups: GroupIndex) -> Iterator[tuple[Integers, Integers]]:
    """Keys (``second_sums.keys_of``) and amounts of seconds of groups; a key can come again."""
    for batch in batches:
        rows = charged_rows(batch)
        _, slots = groups.of_rows(rows)
        if not slots:
            continue
        client, second, total = client_seconds(rows, np.logical_or.reduce([group >= 0 for group in slots]))
        for of_client in slots:
            group = of_client[client]
            mine = group >= 0
            if mine.all():
                yield keys_of(group, second), total
            else:
                yield keys_of(group[mine], second[mine]), total[mine]


def keyed_requests(
    batches: Iterable[pa.RecordBatch], groups: GroupIndex, more: More | None = None
) -> Iterator[Sequence[Integers]]:
    """Key (``exact_batch.pack``), order, records, overhead, series, and ``more``; a row of two groups is there twice.

    The order decides between requests of one ms: the microseconds within it, then a hash of what identifies the request.
    """
    for batch in batches:
        rows = charged_rows(batch)
        series, slots = groups.of_rows(rows)
        if not slots:
            continue
        milli, micros = np.divmod(rows.ts_us, 1000)
        rest = rows.numbers(batch, "tie") & (1 << ORDER_BITS - MICRO_BITS) - 1
        order = micros << ORDER_BITS - MICRO_BITS | rest
        columns = [order, rows.records, rows.overhead, series[rows.of], *(more(rows, batch) if more else ())]
        for of_client in slots:
            group = of_client[rows.of]
            mine = group >= 0
            if mine.all():
                yield [pack(group, milli), *columns]
            elif mine.any():
                yield [pack(group[mine], milli[mine]), *(column[mine] for column in columns)]


def client_seconds(rows: ChargedRows, wanted: Flags) -> tuple[Integers, Integers, Integers]:
    """Client, second and amount, one item each, rising; of the clients that are ``wanted``."""
    of, ts_us, amount = rows.of, rows.ts_us, rows.amount
    if not wanted.all():
        mine = wanted[of]
        of, ts_us, amount = of[mine], ts_us[mine], amount[mine]
    if not len(of):
        return of, ts_us, amount
    seconds = ts_us // 1_000_000
    first = int(seconds.min())
    span = int(seconds.max()) - first + 1
    found, total = summed(of * span + (seconds - first), rows.clients * span, amount)
    return found // span, found % span + first, total
