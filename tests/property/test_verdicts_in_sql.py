"""The verdict from seconds as SQL, run by DuckDB: another engine, another author of sums, the kernel's bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.judging.exact import NEAR, limits_of, near_limits
from reconciler.traffic.judging.grouping import Group, Side
from reconciler.traffic.kernels.exact_totals import BINS, NEARLY_ALL, top_of
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.second_sums import ROUNDING, GroupVerdict, SecondsJudge, SideVerdict, frames, keys_of
from reconciler.traffic.kinds import Kind

_SIDES: Final = ("before", "after")

_FLAGS: Final = ("certain", "expected", "possible")

_BINS_PER_OCTAVE: Final = 32

_BIN_OF_ONE: Final = 512


def limits_table(groups: Sequence[Group]) -> pa.Table:
    """By group, null where there is none: columns ``grp``, ``before`` and ``after``."""
    sides = {side: pa.array(limits, mask=np.isnan(limits)) for side, limits in zip(_SIDES, limits_of(groups), strict=True)}
    return pa.table({"grp": pa.array(range(len(groups)), type=pa.int64()), **sides})


def verdict_query(rule: Window, *, cells: str = "{cells}", limits: str = "{limits}") -> str:
    """The query over the tables ``cells`` (``grp``, ``second``, ``amount``) and ``limits``; one row a group that has cells."""
    parts = {
        "whole": f"SELECT grp, second, CAST(SUM(amount) AS BIGINT) AS amount FROM {cells} GROUP BY grp, second",
        "bounded": f"SELECT grp, second, amount, {_bounds(rule)} FROM whole",
        "judged": f"SELECT bounded.grp, second, amount, rate, upper_rate, {_bin('upper_rate')} AS bin, "
        f"{_each(partial(_judged, rule))}, "
        f"CASE WHEN limits.before > 0 AND rate >= {_number(NEAR)} * limits.before THEN 1 ELSE 0 END AS near "
        f"FROM bounded JOIN {limits} AS limits ON bounded.grp = limits.grp",
        "stepped": f"SELECT *, LAG(second) OVER (PARTITION BY grp ORDER BY second) AS earlier, {_each(_earlier)} FROM judged",
        "numbered": f"SELECT *, {_each(lambda side: _island(side, rule.expiry_ms // 1000))} FROM stepped",
        **{f"run_{side}": _runs(side) for side in _SIDES},
        "bins": "SELECT grp, bin, COUNT(*) AS here FROM judged GROUP BY grp, bin",
        "reached": "SELECT grp, bin, SUM(here) OVER (PARTITION BY grp ORDER BY bin) AS seen, "
        "SUM(here) OVER (PARTITION BY grp) AS total FROM bins",
        "nearly_all": f"SELECT grp, MIN(bin) AS bin FROM reached WHERE seen >= {_number(NEARLY_ALL)} * total GROUP BY grp",
        "counted": "SELECT grp, COUNT(*) AS active, CAST(SUM(amount) AS BIGINT) AS amount, MAX(upper_rate) AS peak_upper, "
        f"MAX(rate) AS peak_expected, CAST(SUM(near) AS BIGINT) AS near, {_each(_counts)} FROM judged GROUP BY grp",
    }
    longest = _each(lambda side: f"run_{side}.seconds AS longest_{side}, run_{side}.since AS since_{side}")
    runs = " ".join(f"LEFT JOIN run_{side} ON counted.grp = run_{side}.grp AND run_{side}.place = 1" for side in _SIDES)
    tables = ",\n".join(f"{name} AS ({text})" for name, text in parts.items())
    found = f"counted.*, nearly_all.bin, {longest} FROM counted JOIN nearly_all ON counted.grp = nearly_all.grp {runs}"
    return "\n".join((f"WITH {tables}", "SELECT", found))


def verdict_of_row(row: Mapping[str, Any]) -> GroupVerdict:
    """A row of the query's result."""
    return GroupVerdict(
        group=row["grp"],
        active=row["active"],
        amount=row["amount"],
        peak_upper=row["peak_upper"],
        peak_expected=row["peak_expected"],
        p999=top_of(row["bin"]),
        sides=tuple(_side(row, side) for side in _SIDES),
        near=row["near"],
    )


def _side(row: Mapping[str, Any], side: str) -> SideVerdict:
    return SideVerdict(
        certain=row[f"certain_{side}"],
        expected=row[f"expected_{side}"],
        possible=row[f"possible_{side}"],
        first_certain=row[f"first_certain_{side}"],
        first_expected=row[f"first_expected_{side}"],
        first_possible=row[f"first_possible_{side}"],
        longest_s=row[f"longest_{side}"] or 0,
        longest_from=row[f"since_{side}"],
    )


def _each(part: Callable[[str], str]) -> str:
    return ", ".join(map(part, _SIDES))


def _number(value: float) -> str:
    return f"CAST({value!r} AS DOUBLE)"


def _bounds(rule: Window) -> str:
    lower, expected, *upper = (f"{_sum(seconds)} / {_number(divisor)}" for seconds, divisor in frames(rule))
    return f"{lower} AS lower_rate, {expected} AS rate, GREATEST({', '.join((*upper, _number(0.0)))}) AS upper_rate"


def _sum(seconds: int) -> str:
    frame = f"RANGE BETWEEN {seconds - 1} PRECEDING AND CURRENT ROW"
    return f"CAST(SUM(amount) OVER (PARTITION BY grp ORDER BY second {frame}) AS DOUBLE)"


def _judged(rule: Window, side: str) -> str:
    """Of bytes, whose throttles are not capped and so may wrap around."""
    possible = f"COALESCE(upper_rate > {side} * {_number(1 - ROUNDING)}, FALSE)"
    window = rule if isinstance(rule, Window) else Window(era=rule)
    longest_window_ms = (window.samples + (window.era is Era.OVERLAPPING)) * window.sample_ms
    wraps_at = f"{side} * {_number(1 + (2**31 - 1) / longest_window_ms)}"
    certain = f"lower_rate > {side} * {_number(1 + ROUNDING)} AND upper_rate < {wraps_at} * {_number(1 - ROUNDING)}"
    return (
        f"COALESCE({certain}, FALSE) AS certain_{side}, "
        f"COALESCE(rate > {side} AND rate < {wraps_at}, FALSE) AND {possible} AS expected_{side}, {possible} AS possible_{side}"
    )


def _earlier(side: str) -> str:
    return f"LAG(expected_{side}) OVER (PARTITION BY grp ORDER BY second) AS earlier_{side}"


def _island(side: str, pause: int) -> str:
    """Each second that does not go on with what the one before it did begins another island."""
    goes_on = f"expected_{side} AND earlier_{side} AND second - earlier <= {pause}"
    begins = f"CASE WHEN {goes_on} THEN 0 ELSE 1 END"
    return f"SUM({begins}) OVER (PARTITION BY grp ORDER BY second ROWS UNBOUNDED PRECEDING) AS island_{side}"


def _runs(side: str) -> str:
    islands = (
        "SELECT grp, MIN(second) AS since, MAX(second) - MIN(second) + 1 AS seconds "
        f"FROM numbered WHERE expected_{side} GROUP BY grp, island_{side}"
    )
    place = "ROW_NUMBER() OVER (PARTITION BY grp ORDER BY seconds DESC, since) AS place"
    return " ".join(("SELECT grp, seconds, since,", place, f"FROM ({islands}) AS islands_{side}"))


def _counts(side: str) -> str:
    counts = (f"CAST(SUM(CASE WHEN {flag}_{side} THEN 1 ELSE 0 END) AS BIGINT) AS {flag}_{side}" for flag in _FLAGS)
    firsts = (f"MIN(CASE WHEN {flag}_{side} THEN second END) AS first_{flag}_{side}" for flag in _FLAGS)
    return ", ".join((*counts, *firsts))


def _bin(rate: str) -> str:
    """``bins_of`` as an expression of SQL over a column. Logarithms there are not exact for powers of two, so those go apart."""
    octave = f"CASE WHEN POWER(2, ROUND(LOG2({rate}))) = {rate} THEN ROUND(LOG2({rate})) ELSE LOG2({rate}) END"
    within = f"GREATEST(LEAST({octave}, {(BINS - _BIN_OF_ONE) // _BINS_PER_OCTAVE}), {-_BIN_OF_ONE // _BINS_PER_OCTAVE})"
    place = f"CAST(FLOOR({within} * {_BINS_PER_OCTAVE}) AS BIGINT) + {_BIN_OF_ONE}"
    return f"CASE WHEN {rate} <= 0 THEN 0 ELSE LEAST({place}, {BINS - 1}) END"


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
