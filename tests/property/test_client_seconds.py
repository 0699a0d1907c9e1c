"""Rows added up by client and second, which are read once: every total and every second is that of the rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity
from reconciler.traffic.client_seconds import add_up_seconds, keyed_sums, sum_here
from reconciler.traffic.client_totals import CLIENT_TOTALS, MINUTE_TOTALS, series_of
from reconciler.traffic.columns import NEEDED, GroupIndex, keyed_seconds
from reconciler.traffic.judging.grouping import BrokerRule, group_series, quota_tables
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import GroupWork, LocalRows, Pieces, Totals
from reconciler.traffic.sources.normal_form import ROWS

SECOND_US = 1_000_000
BEGIN_US = 1_795_000_000 * SECOND_US
NAMES = st.sampled_from([None, "", "alice", "bob", "<default>"])
CHARGED = st.fixed_dictionaries(
    {
        "status": st.just("charged"),
        "broker": st.sampled_from([1, 2, 70_000]),
        "kind": st.sampled_from(["produce", "fetch", "request"]),
        "user": NAMES,
        "client_id": NAMES,
        "ts_us": st.integers(BEGIN_US, BEGIN_US + 150 * SECOND_US),
        "records": st.sampled_from([0, 1, 1000, 2**42]),
        "overhead": st.sampled_from([0, 60]),
        "throttled": st.booleans(),
    }
)
OTHERS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["unreadable", "other-api"]),
        "broker": st.sampled_from([None, 1, 2]),
        "ts_us": st.none() | st.integers(BEGIN_US, BEGIN_US + 900 * SECOND_US),
    }
)
TRAFFIC = st.lists(CHARGED | OTHERS, min_size=1, max_size=60)
CUTS = st.lists(st.integers(0, 60), max_size=4)


def batches_of(rows: Sequence[dict[str, object]], cuts: Sequence[int]) -> list[pa.RecordBatch]:
    """The rows in batches, names as dictionaries, which differ from batch to batch."""
    borders = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    made = []
    for begin, end in itertools.pairwise(borders):
        batch = pa.RecordBatch.from_pylist(list(rows[begin:end]), ROWS)
        columns = [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in batch.columns]
        made.append(pa.RecordBatch.from_arrays(columns, names=ROWS.names))
    return made


def totals(rows: LocalRows[pa.RecordBatch], work: Totals[pa.RecordBatch]) -> list[dict[str, object]]:
    table = rows.total(work)
    assert table.schema == work.schema
    return sorted(table.to_pylist(), key=repr)


def seconds(keyed: Iterable[tuple[np.ndarray, np.ndarray]]) -> dict[int, int]:
    """The sum of the amounts of each key."""
    sums: dict[int, int] = {}
    for keys, amounts in keyed:
        for key, amount in zip(keys.tolist(), amounts.tolist(), strict=True):
            sums[key] = sums.get(key, 0) + amount
    return sums


@given(rows=TRAFFIC, cuts=CUTS)
def test_totals_of_sums_are_those_of_rows(rows: list[dict[str, object]], cuts: list[int]) -> None:
    batches = batches_of(rows, cuts)
    plain: LocalRows[pa.RecordBatch] = LocalRows(lambda _: batches)
    summed = sum_here(plain)
    for work in (CLIENT_TOTALS, MINUTE_TOTALS):
        assert totals(summed, work) == totals(plain, work)


@given(rows=TRAFFIC, cuts=CUTS)
def test_each_second_of_a_quota_group_has_the_sum_of_its_rows(rows: list[dict[str, object]], cuts: list[int]) -> None:
    batches = batches_of(rows, cuts)
    series = series_of(LocalRows(lambda _: batches).total(CLIENT_TOTALS))
    limit = {Entity.of({"user": DEFAULT}): {"producer_byte_rate": 1000.0}}
    users = limit | {Entity.of({"user": "alice"}): {"producer_byte_rate": 10.0, "consumer_byte_rate": 10.0}}
    before, after = quota_tables(limit, users, BrokerRule(), {client.broker for client in series}, tuple(Kind))
    grouping = group_series(series, before, after)
    index = GroupIndex.of(series, grouping, range(len(grouping.groups)))
    assert seconds(keyed_sums(add_up_seconds(batches), index)) == seconds(keyed_seconds(batches, index))


def work_of(sent: list[str]) -> GroupWork[pa.RecordBatch]:
    """A work that notes of which batches its rows are made."""

    def send(name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        sent.extend(name for _ in batches)
        return iter(())

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        yield from (pa.RecordBatch.from_arrays([pa.array(piece[0])], schema=_JUDGED) for piece in pieces)

    return GroupWork(
        name="test",
        columns=NEEDED,
        send=lambda batches: send("rows", batches),
        judge=judge,
        schema=_JUDGED,
        rows=[1],
        bits=33,
        send_sums=lambda batches: send("sums", batches),
    )


_JUDGED = pa.schema([("key", pa.int64())])
ROW = {"status": "charged", "broker": 1, "kind": "produce", "ts_us": BEGIN_US, "records": 1, "overhead": 0, "throttled": False}


@pytest.mark.parametrize("of_sums", [True, False])
def test_sums_do_not_stand_for_rows_that_are_changed_on_their_way(of_sums: bool) -> None:
    batches = batches_of([ROW], [])
    summed = sum_here(LocalRows(lambda _: batches))
    rows = summed if of_sums else summed.map(lambda given: (batch.slice(0, 0) for batch in given), ())
    sent: list[str] = []
    rows.judge(work_of(sent))
    assert sent == (["sums"] if of_sums else ["rows"])
    assert rows.total(CLIENT_TOTALS).num_rows == (1 if of_sums else 0)
