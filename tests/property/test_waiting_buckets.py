"""What workers make of the requests of several buckets, wherever batches end."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.judging.waiting import Player
from reconciler.traffic.kernels.closed_loop import Sent, outcome_of, play
from reconciler.traffic.kernels.exact_totals import Batch, pack
from reconciler.traffic.kernels.sampled_rate import Window
from tests.support.arrivals import PATTERNS, arrivals

WINDOW = Window()
GROUPS = st.lists(
    st.tuples(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 120), st.booleans()), min_size=1, max_size=3
)
Drawn = list[tuple[str, int, int, bool]]


def table_of(drawn: Drawn) -> tuple[Batch, dict[int, Sent]]:
    sent, columns = {}, []
    for place, (pattern, seed, count, _) in enumerate(drawn):
        times, overhead, records = arrivals(pattern, seed, count)
        # Hashes of connections may be of any size and sign.
        connections = np.random.default_rng(seed).choice([-(2**62), 5, 2**61], count)
        sent[3 * place] = Sent(times_ms=times, records=records, overhead=overhead, connections=connections)
        columns.append((pack(np.full(count, 3 * place), times), np.arange(count), records, overhead, connections))
    return Batch(*(np.concatenate(column) for column in zip(*columns, strict=True))), sent


def played(drawn: Drawn, *, cut: int, most: int = 10**6) -> dict[int, dict[str, object]]:
    batch, sent = table_of(drawn)
    limits = {group: 0.4 * float((one.records + one.overhead).sum()) / 11 + 1 for group, one in sent.items()}
    player = Player(limits, {3 * place: one[3] for place, one in enumerate(drawn)}, WINDOW, most)
    rows = player.rows([batch.part(slice(at, at + cut)) for at in range(0, len(batch), cut)])
    return {row["group"]: row for found in rows for row in found.to_pylist()}


@settings(max_examples=60, deadline=None)
@given(GROUPS, st.integers(1, 50), st.integers(1, 400))
def test_batches_may_end_anywhere(drawn: Drawn, one: int, other: int) -> None:
    assert played(drawn, cut=one) == played(drawn, cut=other)


@settings(max_examples=40, deadline=None)
@given(GROUPS)
def test_each_bucket_is_played_by_itself(drawn: Drawn) -> None:
    rows, sent = played(drawn, cut=17), table_of(drawn)[1]
    assert sorted(rows) == sorted(sent)
    for (group, one), (_, _, _, refuses) in zip(sent.items(), drawn, strict=True):
        limit = 0.4 * float((one.records + one.overhead).sum()) / 11 + 1
        result = play(one, limit=limit, refuses=refuses, window=WINDOW)
        wanted = outcome_of(one, result, limit=limit, window=WINDOW)
        row = rows[group]
        assert (row["requests"], row["complete"]) == (len(one.times_ms), result.complete)
        assert row["connections"] == len(set(one.connections.tolist()))
        assert (row["throughput"], row["waited"], row["wait_longest_s"]) == (
            wanted.throughput, wanted.waited, wanted.wait_longest_s,
        )  # fmt: skip


def test_of_too_many_requests_the_first_are_played_and_it_is_said() -> None:
    drawn: Drawn = [("dense", 1, 100, False), ("sparse", 2, 30, False)]
    rows = played(drawn, cut=7, most=40)
    assert [(row["requests"], row["complete"]) for row in rows.values()] == [(40, False), (30, True)]
