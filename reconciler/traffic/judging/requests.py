"""Every single charged request under the proposed quotas, with the range that its throttle can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from reconciler.traffic.judging.exact import Work, batch_of, numbers_of
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.kernels.band import Bands, BandStream
from reconciler.traffic.kernels.exact_stream import ExactStream, JudgedBatch
from reconciler.traffic.kernels.exact_totals import group_of
from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS

REQUESTS: Final = pa.schema(
    [
        ("ts_us", pa.int64()), ("order_", pa.int64()), ("series", pa.int32()), ("amount", pa.int64()), ("rate", pa.float64()),
        ("limit", pa.float64()), ("throttle_ms", pa.int64()), ("low", pa.int64()), ("high", pa.int64()),
        ("connection", pa.string()), ("correlation_id", pa.int32()), ("recorded_throttle_ms", pa.int64()), ("part", pa.int32()),
        ("refused", pa.bool_()),
    ]
)  # fmt: skip
"""``part`` and ``refused`` are of mutations: the topic's place in its request, and whether it is not done."""


class JudgedRequest(NamedTuple):
    """A row of ``REQUESTS``."""

    ts_us: int
    order_: int
    series: int
    amount: int
    rate: float | None
    limit: float | None
    throttle_ms: int
    low: int
    high: int
    connection: str | None
    correlation_id: int | None
    recorded_throttle_ms: int | None
    part: int | None
    refused: bool | None


ORDER: Final = ("ts_us", "order_", "series", "part", "amount")
"""The order of charging, whoever judged the requests."""


def limited_groups(grouping: Grouping, *, mutations: bool) -> frozenset[int]:
    """Those after the change: of mutations, or all others."""
    return frozenset(
        number
        for number, group in enumerate(grouping.groups)
        if group.after is not None and (group.kind is Kind.MUTATION) is mutations
    )


def judge_requests(batches: Iterable[pa.RecordBatch], work: Work) -> Iterator[pa.RecordBatch]:
    """Rows of ``REQUESTS``, of every request that a sampled rate limits.

    ``batches``: columns ``key``, ``order_``, ``records``, ``overhead``, ``series``, ``ts_us`` and
    ``IDENTITY_COLUMNS``, in the order of their keys.
    """
    return _Requests(work).judged(batches)


class _Requests:
    """One partition: requests wait until their verdict and their range are both known."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._stream = ExactStream([work.after], work.window)
        self._bands = BandStream(work.after, work.window)
        self._table: pa.Table | None = None
        self._first = 0
        """The number of the table's first row; rows are numbered as they come."""
        self._verdicts = np.empty((0, 3))
        self._ranges = np.empty((0, 2), dtype=np.int64)

    def judged(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Whatever is known after each batch, then the rest."""
        for batch in batches:
            begin = self._first + len(self._verdicts)
            self._add(pa.Table.from_batches([batch]))
            requests = batch_of(batch, np.arange(begin, begin + batch.num_rows, dtype=np.int64))
            self._note(self._stream.feed(requests), self._bands.feed(requests))
            yield from self._known()
        self._note(self._stream.finish(), self._bands.finish())
        yield from self._known()

    def _add(self, table: pa.Table) -> None:
        self._table = table if self._table is None else pa.concat_tables([self._table, table])
        self._verdicts = np.concatenate((self._verdicts, np.full((table.num_rows, 3), np.nan)))
        self._ranges = np.concatenate((self._ranges, np.full((table.num_rows, 2), -1, dtype=np.int64)))

    def _note(self, judged: JudgedBatch | None, bands: Bands) -> None:
        if judged is not None:
            side = judged.sides[0]
            # Amounts and throttles are below 2^53, where a double holds whole numbers.
            values = np.stack((side.amount, side.rate, np.maximum(side.throttle, 0)), axis=1)
            self._verdicts[judged.requests.rows - self._first] = values
        self._ranges[bands.rows - self._first] = np.stack((bands.low, bands.high), axis=1)

    def _known(self) -> Iterator[pa.RecordBatch]:
        """The leading rows that are known whole; rows behind an unknown one wait with it."""
        if self._table is None:
            return
        unknown = np.flatnonzero(np.isnan(self._verdicts[:, 0]) | (self._ranges[:, 0] < 0))
        count = int(unknown[0]) if len(unknown) else len(self._verdicts)
        if not count:
            return
        table, verdicts, ranges = self._table.slice(0, count), self._verdicts[:count], self._ranges[:count]
        limits = self._work.after.limits[group_of(numbers_of(table, "key"))]
        columns = {
            "ts_us": table.column("ts_us"),
            "order_": table.column("order_"),
            "series": table.column("series"),
            "amount": verdicts[:, 0].astype(np.int64),
            "rate": verdicts[:, 1],
            "limit": pa.array(limits, from_pandas=True),
            "throttle_ms": verdicts[:, 2].astype(np.int64),
            # The replay without noise is one more.
            "low": np.minimum(ranges[:, 0], verdicts[:, 2].astype(np.int64)),
            "high": np.maximum(ranges[:, 1], verdicts[:, 2].astype(np.int64)),
            **{name: table.column(name) for name in IDENTITY_COLUMNS},
            "part": pa.nulls(count, pa.int32()),
            "refused": pa.nulls(count, pa.bool_()),
        }
        yield from pa.table(columns).combine_chunks().to_batches()
        self._first += count
        self._table = self._table.slice(count)
        self._verdicts, self._ranges = self._verdicts[count:], self._ranges[count:]
