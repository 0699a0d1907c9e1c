"""The flags of the table of seconds are those of the verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.verdict_tables.session_frames import judge_seconds_here, seconds_work, target_rows
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import ADDRESS_KEY, AddressLimits, Resolver
from reconciler.traffic.columns import KeyIndex
from reconciler.traffic.judging.by_seconds import judge_seconds
from reconciler.traffic.judging.exact import tokens_by_seconds
from reconciler.traffic.judging.grouping import Series, group_series, rows_of_groups
from reconciler.traffic.judging.verdicts import seconds_verdicts
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kinds import KEY_OF_KIND, Kind
from reconciler.traffic.shuffle.rows import LocalRows

LIMIT = 1000.0
QUOTAS = {
    Entity.of({"user": DEFAULT}): {kind.key.value: LIMIT for kind in Kind if kind is not Kind.CONNECTION},
    Entity.of({"ip": DEFAULT}): {Kind.CONNECTION.key.value: LIMIT},
}


@pytest.mark.parametrize("largest", [0, 20_000])
@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=20)
@given(
    amounts=st.lists(st.integers(0, 30_000), min_size=1, max_size=60), steps=st.lists(st.integers(1, 9), min_size=60, max_size=60)
)
def test_flags_of_seconds_add_up_to_the_verdict(kind: Kind, largest: int, amounts: list[int], steps: list[int]) -> None:
    of_address = kind is Kind.CONNECTION
    names = [(None, None, f"10.0.0.{n}") if of_address else (f"user-{n}", "app", None) for n in range(2)]
    lines, total = len(amounts), sum(amounts)
    series = [
        Series(broker=1, kind=kind, user=user, client_id=name, ip=ip, key=key, requests=lines, amount=total, largest=largest)
        for key, (user, name, ip) in enumerate(names)
    ]
    tables = {key.value: Resolver(QUOTAS, key) for key in KEY_OF_KIND.values()} | {ADDRESS_KEY: AddressLimits(QUOTAS)}
    grouping = group_series(series, None, tables)
    window, groups = Window(), range(len(grouping.groups))
    unit = int(kind.amounts_a_unit)
    seconds = np.cumsum(np.asarray(steps[: len(amounts)], dtype=np.int64))
    cells = [(np.full(len(amounts), client.key), seconds, np.asarray(amounts, dtype=np.int64) * unit) for client in series]

    index = KeyIndex.of(series, grouping, groups)
    if kind is Kind.MUTATION:
        judged = tokens_by_seconds(index.keyed(cells), grouping, groups, window)
    else:
        judged = judge_seconds(
            LocalRows(lambda _: cells), index.keyed, rows_of_groups(series, grouping, groups), grouping.groups, window
        )
    work = seconds_work(series, grouping, groups, (window, window), send=index.keyed)
    rows = judge_seconds_here(work, cells, target_rows(grouping, groups)).to_pylist()

    for number, verdict in seconds_verdicts(judged, series, grouping, window, stated=False).items():
        own = [row for row in rows if row["group"] == number]
        assert sum(row["certain"] for row in own) == verdict.over.certain
        assert sum(row["possible"] for row in own) == verdict.over.possible
        assert max(sum(row["over"] for row in own), verdict.over.certain) == verdict.over.seconds
        assert all(row["possible"] for row in own if row["certain"])
