"""Traffic that moves between brokers: nothing is lost or invented, and every engine moves the same."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity
from reconciler.traffic.columns.group_index import KeyIndex
from reconciler.traffic.judging.by_seconds import judge_seconds
from reconciler.traffic.judging.grouping import BrokerRule, Series, group_series, quota_tables
from reconciler.traffic.kernels.sampled_rate import Era
from reconciler.traffic.kinds import Kind
from reconciler.traffic.relocation import KeyMoves, TrafficMoves, divide, move_rows, move_series
from reconciler.traffic.seconds.history import SecondTotals
from reconciler.traffic.seconds.spread_groups import SpreadGroups
from reconciler.traffic.shuffle.rows import LocalRows

AMOUNTS = st.lists(st.integers(min_value=0, max_value=2**42), min_size=1, max_size=20)
WEIGHTS = st.lists(st.integers(min_value=1, max_value=100), min_size=1, max_size=12)


@given(AMOUNTS, WEIGHTS, st.sampled_from([1.0, 0.5, 1.5, 3.0]), st.integers(min_value=0, max_value=2**51))
def test_the_parts_of_an_amount_add_up_to_it(amounts: list[int], weights: list[int], factor: float, first: int) -> None:
    whole = np.asarray(amounts, dtype=np.int64)
    shares = [weight / sum(weights) for weight in weights]
    parts = list(divide(whole, shares, factor, np.arange(first, first + len(whole))))
    assert len(parts) == len(shares)
    assert all((part >= 0).all() for part in parts)
    assert (sum(parts) == np.rint(whole * factor)).all()
    for part, share in zip(parts, shares, strict=True):
        assert (np.abs(part - whole * factor * share) <= 2).all()


def test_single_units_go_to_every_share_alike() -> None:
    seconds = np.arange(1_700_000_000, 1_700_010_000)
    parts = list(divide(np.ones(len(seconds), dtype=np.int64), [0.5, 0.25, 0.25], 1.0, seconds))
    assert [part.sum() for part in parts] == pytest.approx([5000, 2500, 2500], rel=0.01)


CLIENTS = st.lists(
    st.builds(
        lambda broker, kind, user, amount: (broker, kind, user, amount),
        st.integers(min_value=1, max_value=4),
        st.sampled_from(list(Kind)),
        st.sampled_from(["a", "b", None]),
        st.integers(min_value=0, max_value=10**9),
    ),
    min_size=1,
    max_size=30,
)
MOVES = st.sampled_from(
    [
        TrafficMoves(),
        TrafficMoves(factor=2.5),
        TrafficMoves(shares={3: ((1, 0.5), (2, 0.5))}),
        TrafficMoves(shares={1: ((1, 0.25), (9, 0.75)), 3: ((1, 1.0),)}, factor=1.5),
        TrafficMoves(shares=dict.fromkeys((1, 2, 3, 4), ((1, 0.125),)), also=(1, 2)),
    ]
)


def rows_of(clients: list[tuple[int, Kind, str | None, int]]) -> pa.RecordBatch:
    count = len(clients)
    return pa.RecordBatch.from_pydict(
        {
            "status": pa.array(["charged"] * count),
            "broker": pa.array([client[0] for client in clients], pa.int32()),
            "kind": pa.array([client[1].value for client in clients]).dictionary_encode(),
            "user": pa.array([client[2] for client in clients], pa.string()),
            "ts_us": pa.array([1_700_000_000_000_000 + 1000 * number for number in range(count)]),
            "records": pa.array([client[3] for client in clients], pa.int64()),
            "overhead": pa.array([number % 3 for number in range(count)], pa.int64()),
        }
    )


def sums(rows: pa.RecordBatch) -> dict[tuple[int, str, str | None], int]:
    totals: dict[tuple[int, str, str | None], int] = {}
    for row in rows.to_pylist():
        place = row["broker"], row["kind"], row["user"]
        totals[place] = totals.get(place, 0) + row["records"] + row["overhead"]
    return totals


@given(CLIENTS, MOVES)
def test_rows_and_clients_move_to_the_same_brokers(clients: list[tuple[int, Kind, str | None, int]], moves: TrafficMoves) -> None:
    batch = rows_of(clients)
    (moved,) = move_rows([batch], moves)
    assert moved.schema == batch.schema
    before, after = sums(batch), sums(moved)
    series = [
        Series(broker=broker, kind=Kind(kind), user=user, client_id="", requests=1, amount=amount, key=number)
        for number, ((broker, kind, user), amount) in enumerate(before.items())
    ]
    expected = {(client.broker, client.kind.value, client.user): client.amount for client in move_series(series, moves)}
    assert after.keys() <= expected.keys()
    assert all(after.get(place, 0) == pytest.approx(amount, abs=3 * len(clients) + 3) for place, amount in expected.items())
    if not moves.also:
        tolerance = len(clients)
        assert math.isclose(sum(after.values()), sum(before.values()) * moves.factor, abs_tol=2 * tolerance)
    assert {place for place in after if place[1] == "mutation"} == {place for place in before if place[1] == "mutation"}


@given(CLIENTS, MOVES, st.data())
def test_seconds_of_clients_move_as_their_rows_do(
    clients: list[tuple[int, Kind, str | None, int]], moves: TrafficMoves, data: st.DataObject
) -> None:
    before = sums(rows_of(clients))
    keys = data.draw(st.permutations(range(5, 5 + len(before))))
    series = [
        Series(broker=broker, kind=Kind(kind), user=user, client_id="", requests=1, amount=amount, key=key)
        for key, ((broker, kind, user), amount) in zip(keys, before.items(), strict=True)
    ]
    moved = move_series(series, moves)
    key_moves = KeyMoves.of(series, moved, moves)
    totals = dict.fromkeys((client.key for client in moved), 0)
    order = sorted(series, key=lambda client: client.key)
    columns = (np.asarray([getattr(client, name) for client in order], dtype=np.int64) for name in ("key", "amount"))
    known, amounts = columns
    for targets, _, parts in key_moves.moved(known, np.full(len(known), 1_700_000_000), amounts):
        for target, part in zip(targets.tolist(), parts.tolist(), strict=True):
            totals[target] += part
    assert all(totals[client.key] == pytest.approx(client.amount, abs=2 * len(series) + 2) for client in moved)
    for client in moved:
        sources = key_moves.sources_of(np.asarray([client.key]))
        shares = [moves.shares_of(each.broker, each.kind.value) for each in series if each.key in sources]
        assert all(client.broker in dict(row) for row in shares)
        assert len(sources) >= 1


QUOTAS = st.dictionaries(
    st.sampled_from([("a", None), ("b", None), (None, None), ("a", "x"), (None, "x")]), st.integers(1, 3000), max_size=4
).map(
    lambda limits: {
        Entity.of(
            {name: DEFAULT if value is None else value for name, value in zip(("user", "client-id"), place, strict=True)}
        ): {
            "producer_byte_rate": float(limit),
            "consumer_byte_rate": float(limit),
        }
        for place, limit in limits.items()
    }
)
RECORDED = st.dictionaries(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from([Kind.PRODUCE, Kind.FETCH]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", "y"]),
    ),
    st.dictionaries(st.integers(1_700_000_000, 1_700_000_060), st.integers(0, 20_000), min_size=1, max_size=20),
    min_size=1,
    max_size=16,
)


@given(RECORDED, QUOTAS, QUOTAS, MOVES, st.booleans(), st.data())
def test_totals_divided_where_they_are_judged_have_the_verdicts_of_totals_divided_before(
    recorded: dict[tuple[int, Kind, str | None, str], dict[int, int]],
    before: dict[Entity, dict[str, float]],
    after: dict[Entity, dict[str, float]],
    moves: TrafficMoves,
    known: bool,
    data: st.DataObject,
) -> None:
    keys = data.draw(st.permutations(range(5, 5 + len(recorded))))
    series = [
        Series(broker=broker, kind=kind, user=user, client_id=client_id, requests=len(totals), amount=1, key=key)
        for key, ((broker, kind, user, client_id), totals) in zip(keys, recorded.items(), strict=True)
    ]
    moved = move_series(series, moves)
    key_moves = KeyMoves.of(series, moved, moves)
    grouping = group_series(moved, *quota_tables(before if known else None, after, BrokerRule(), (1, 2, 3, 4, 9)))
    groups = data.draw(st.sets(st.sampled_from(range(len(grouping.groups)))))
    rows = sorted((key, at, total) for key, totals in zip(keys, recorded.values(), strict=True) for at, total in totals.items())
    # Of a client that is not known, too, as files have them beside the others.
    sources, seconds, amounts = np.asarray([*rows, (99, 1_700_000_000, 1)], dtype=np.int64).T
    index = KeyIndex.of(moved, grouping, groups)
    divided: LocalRows[SecondTotals] = LocalRows(lambda _: key_moves.moved(sources[:-1], seconds[:-1], amounts[:-1]))
    expected = judge_seconds(divided, index.keyed, [0] * len(grouping.groups), grouping.groups, Era.OVERLAPPING)
    whole: LocalRows[SecondTotals] = LocalRows(lambda _: iter([(sources, seconds, amounts)]))
    spread = SpreadGroups.of(moved, grouping, groups, key_moves)
    assert spread.judge(whole, grouping.groups, Era.OVERLAPPING) == expected
    assert expected.keys() <= groups
    assert len(groups) == 0 or len(expected) > 0
