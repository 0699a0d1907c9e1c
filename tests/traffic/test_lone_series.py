"""Samples of groups of one series: counted as they come they are those that are counted after they are sorted by moment."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus.sample_counts import (
    FOLDS,
    SCHEMA,
    count_lone_samples,
    count_samples,
    keyed_samples,
    lone_groups,
)
from reconciler.model.entity import Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.columns import NEEDED, GroupIndex
from reconciler.traffic.judging.exact import limits_of
from reconciler.traffic.judging.grouping import Grouping, Series, group_series
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import add_up
from reconciler.traffic.sources.normal_form import canonical_rows

KEY = "producer_byte_rate"
USERS = ["a", "b", "c"]
LIMITS = {Entity.of({"user": user}): {KEY: 100.0 * number} for number, user in enumerate(USERS, start=1)}
# The third user has two series: with and without a client-id.
CLIENTS: list[tuple[str, str | None]] = [("a", None), ("b", "app"), ("c", None), ("c", "app")]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2_000), st.integers(0, 400)), min_size=1, max_size=300)


def grouped() -> tuple[list[Series], Grouping]:
    series = [
        Series(broker=1, kind=Kind.PRODUCE, user=user, client_id=client_id, requests=1, amount=1) for user, client_id in CLIENTS
    ]
    tables = {KEY: Resolver(LIMITS, KEY)}
    return series, group_series(series, tables, {KEY: Resolver({}, KEY)} | tables)


@given(rows=ROWS, sorts=st.booleans(), size=st.sampled_from([7, 1000]))
def test_rows_counted_one_by_one_are_those_counted_by_moment(rows: list[tuple[int, int, int]], sorts: bool, size: int) -> None:
    distinct = list({(client, moment): (client, moment, amount) for client, moment, amount in rows}.values())
    batch = batch_of(sorted(distinct) if sorts else distinct)
    series, grouping = grouped()
    alone = lone_groups(series, grouping, set(range(len(grouping.targets))))
    assert len(alone) == 2
    before, after = limits_of(grouping.groups)
    index = GroupIndex.of(series, grouping, alone)
    batches = [canonical_rows(batch.slice(at, size), NEEDED) for at in range(0, batch.num_rows, size)]

    counted = add_up(pa.Table.from_batches(count_lone_samples(batches, index, before, after), SCHEMA), ("group",), FOLDS)

    parts = list(keyed_samples(batches, index))
    keys, amounts = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else (np.empty(0), np.empty(0))
    order = np.argsort(keys, kind="stable")
    pieces = [(keys[order].astype(np.int64), amounts[order].astype(np.int64))]
    by_moment = add_up(pa.Table.from_batches(count_samples(pieces, before, after), SCHEMA), ("group",), FOLDS)
    wanted = [row for row in counted.to_pylist() if row["moments"]]
    assert sorted(map(repr, wanted)) == sorted(map(repr, by_moment.to_pylist()))


def batch_of(rows: list[tuple[int, int, int]]) -> pa.RecordBatch:
    begin = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
    moments = [begin + datetime.timedelta(milliseconds=moment) for _, moment, _ in rows]
    count = len(rows)
    columns = {
        "ts": pa.array(moments, pa.timestamp("us", "UTC")), "interval_ms": pa.array([0] * count, pa.int32()),
        "broker": pa.array([1] * count, pa.int32()), "user": pa.array([CLIENTS[client][0] for client, _, _ in rows]),
        "client_id": pa.array([CLIENTS[client][1] for client, _, _ in rows], pa.string()),
        "kind": pa.array(["produce"] * count), "amount": pa.array([amount for _, _, amount in rows], pa.int64()),
        "semantics": pa.array(["gauge"] * count),
    }  # fmt: skip
    return pa.RecordBatch.from_pydict(columns)
