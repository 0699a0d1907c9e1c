"""Traffic that moves between brokers: nothing is lost or invented, and every engine moves the same."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.simulating.moved_traffic import TrafficMoves, divide, move_rows, move_series
from reconciler.traffic import Kind, Series

AMOUNTS = st.lists(st.integers(min_value=0, max_value=2**42), min_size=1, max_size=20)


@given(AMOUNTS, st.integers(1, 12), st.sampled_from([1.0, 0.5, 1.5, 3.0]), st.integers(min_value=0, max_value=2**51))
def test_the_parts_of_an_amount_add_up_to_it(amounts: list[int], count: int, factor: float, first: int) -> None:
    whole = np.asarray(amounts, dtype=np.int64)
    parts = divide(whole, count, factor, np.arange(first, first + len(whole)))
    assert len(parts) == count
    assert all((part >= 0).all() for part in parts)
    assert (sum(parts) == np.rint(whole * factor)).all()
    assert all((np.abs(part - whole * factor / count) <= 2).all() for part in parts)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_single_units_go_to_every_part_alike(count: int) -> None:
    moments = 1_700_000_000_000_000 + 1_000_000 * np.arange(12_000)
    parts = divide(np.ones(len(moments), dtype=np.int64), count, 1.0, moments)
    assert [part.sum() for part in parts] == [12_000 // count] * count


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
        TrafficMoves(lost=frozenset({3}), left=(1, 2)),
        TrafficMoves(lost=frozenset({1, 3}), left=(2, 4, 9), factor=1.5),
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
    assert math.isclose(sum(after.values()), sum(before.values()) * moves.factor, abs_tol=2 * len(clients))
    assert {place for place in after if place[1] == "mutation"} == {place for place in before if place[1] == "mutation"}
