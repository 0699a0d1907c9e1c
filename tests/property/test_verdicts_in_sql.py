"""The verdict from seconds as SQL, run by DuckDB: another engine, another author of sums, the kernel's bytes."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.judging.exact import near_limits
from reconciler.traffic.judging.grouping import Group, Side
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.second_sums import GroupVerdict, SecondsJudge, keys_of
from reconciler.traffic.kinds import Kind
from tests.support.seconds_in_sql import limits_table, verdict_of_row, verdict_query

LIMITS = st.none() | st.sampled_from([0.01, 1.0, 64.0, 1000.0, 12_345.678, 1e6])
RULES = st.sampled_from(
    [
        *(Window(era=era) for era in Era),
        Window(samples=3, sample_ms=2000),
        Window(samples=20, sample_ms=5000, era=Era.OVERLAPPING),
    ]
)
CELLS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 60), st.sampled_from([0, 1, 7, 640, 10_240, 12_000, 999_983, 2**40])),
    max_size=150,
)


def kernel(cells: Sequence[tuple[int, int, int]], groups: Sequence[Group], rule: Window) -> dict[int, GroupVerdict]:
    limits = [
        np.array([np.nan if (s := getattr(g, side)).limit is None else s.limit for g in groups]) for side in ("before", "after")
    ]
    judge = SecondsJudge(limits, rule, near=near_limits(limits[0]))
    ordered = sorted(cells)
    table = np.array(ordered, dtype=np.int64).reshape(-1, 3)
    judge.feed(keys_of(table[:, 0], table[:, 1]), table[:, 2])
    return {verdict.group: verdict for verdict in judge.verdicts()}


def in_duckdb(cells: Sequence[tuple[int, int, int]], groups: Sequence[Group], rule: Window) -> dict[int, GroupVerdict]:
    columns = list(zip(*cells, strict=True)) or [(), (), ()]
    tables = {
        "cells": pa.table(dict(zip(("grp", "second", "amount"), (pa.array(c, type=pa.int64()) for c in columns), strict=True))),
        "limits": limits_table(groups),
    }
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(f"{name}_given", table)
        found = connection.sql(verdict_query(rule, cells="cells_given", limits="limits_given")).to_arrow_table()
    return {row["grp"]: verdict_of_row(row) for row in found.to_pylist()}


@settings(max_examples=30)
@given(CELLS, st.lists(st.tuples(LIMITS, LIMITS), min_size=4, max_size=4), RULES, st.randoms(use_true_random=False))
def test_duckdb_says_what_the_kernel_says(cells, limits, rule, chance) -> None:
    groups = [Group(kind=Kind.PRODUCE, before=Side(limit=before), after=Side(limit=after)) for before, after in limits]
    shuffled = list(cells)
    chance.shuffle(shuffled)

    assert in_duckdb(shuffled, groups, rule) == kernel(cells, groups, rule)
