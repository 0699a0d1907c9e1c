"""Gauges of Kafka's own sensors: what they prove against the requests behind them, and what they never say."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_advice import MARGINS, margin_factor
from reconciler.features.prometheus.metric_verdicts import share_interval
from reconciler.model import Verdict
from reconciler.model.entity import Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic import BacktestRequest, find_traffic
from reconciler.traffic.judging.evidence import Evidence
from tests.support.backtest_reports import provenance
from tests.support.kafka_quota_classes import Rate
from tests.support.local_traffic import open_here
from tests.support.quota_oracles import Arrival, replayed
from tests.support.recorded_parquet import SCHEMA

KEY = "producer_byte_rate"
ALICE = Entity.of({"user": "alice"})
ORIGIN_MS = 1_700_000_000_000
NAMES = {0: None, 1: "app", 2: "other"}
"""Client-ids in the series of each sensor: that of the user alone, as after a change of level, and two of pairs."""

gaps = st.integers(min_value=0, max_value=3000) | st.integers(min_value=9_500, max_value=11_500) | st.just(40_000)
worlds = st.lists(
    st.tuples(gaps, st.integers(min_value=1, max_value=50_000), st.integers(min_value=0, max_value=2)), min_size=1, max_size=50
)


def arrivals_of(world: list[tuple[int, int, int]]) -> list[tuple[int, Arrival]]:
    at, found = ORIGIN_MS, []
    for number, (gap, amount, sensor) in enumerate(world):
        at += gap
        one = Arrival(
            ts_us=at * 1000, broker=1, user="alice", client_id=NAMES[sensor] or "", kind="produce", amount=amount, tie=number
        )
        found.append((sensor, one))
    return found


def scrapes(arrivals: list[tuple[int, Arrival]], every_ms: int, shift_ms: int) -> list[dict[str, object]]:
    """What an exporter shows: each sensor's own rate, measured at each scrape after its first request."""
    sensors: dict[int, Rate] = {}
    rows, pending = [], list(arrivals)
    at, end = ORIGIN_MS + shift_ms, arrivals[-1][1].ts_us // 1000 + 13_000
    while at <= end:
        while pending and pending[0][1].ts_us // 1000 <= at:
            number, one = pending.pop(0)
            sensors.setdefault(number, Rate(11, 1000, spare=True)).record(one.amount, one.ts_us // 1000)
        for number, sensor in sensors.items():
            rows.append(row(at, "alice", NAMES[number], int(sensor.measure(at)[0]), every_ms))
        at += every_ms
    return rows


def row(at_ms: int, user: str, client_id: str | None, amount: int, every_ms: int | None, **more: object) -> dict[str, object]:
    return {
        "ts": datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC),
        "interval_ms": every_ms, "broker": 1, "user": user, "client_id": client_id, "kind": "produce", "amount": amount,
        "semantics": "gauge", "throttled": False, **more,
    }  # fmt: skip


def judged(folder: Path, rows: list[dict[str, object]], limit: float) -> Evidence:
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "gauges.parquet", row_group_size=50)
    traffic = open_here(find_traffic([str(folder)]))
    tables = {KEY: Resolver({ALICE: {KEY: limit}}, KEY)}
    question = BacktestRequest(current=None, proposed={}, declared={})
    return traffic.evidence(question, (tables, tables), provenance())


@settings(max_examples=120, deadline=None)
@given(worlds, st.sampled_from([1000, 5000, 15_000]), st.integers(0, 15_000), st.floats(min_value=0.05, max_value=1.4))
def test_a_throttled_verdict_means_that_kafka_throttles_and_no_gauge_clears(
    tmp_path_factory: pytest.TempPathFactory, world: list[tuple[int, int, int]], every_ms: int, shift_ms: int, share: float
) -> None:
    folder = tmp_path_factory.mktemp("gauges")
    arrivals = arrivals_of(world)
    rows = scrapes(arrivals, every_ms, shift_ms)
    if not rows:
        return
    totals: dict[object, int] = {}
    # A sensor that shows nothing at all is no traffic.
    active = {one["client_id"] for one in rows if one["amount"]}
    for one in (one for one in rows if one["client_id"] in active):
        totals[one["ts"]] = totals.get(one["ts"], 0) + int(str(one["amount"]))
    limit = max(1.0, max(totals.values(), default=0) * share)
    if not active:
        assert judged(folder, rows, limit).verdicts == ()
        return
    (verdict,) = judged(folder, rows, limit).verdicts
    assert verdict.verdict is not Verdict.CLEAR
    if verdict.verdict is Verdict.THROTTLED:
        assert replayed([one for _, one in arrivals], limit, spare=True).throttled > 0
    # The series of one moment are added up, and never the largest one taken.
    assert verdict.metrics is not None
    assert verdict.metrics.highest == max(totals.values())
    assert verdict.metrics.samples == len(totals)
    assert verdict.metrics.over == verdict.metrics.over_before == sum(total > limit for total in totals.values())
    assert verdict.metrics.every_s == every_ms / 1000


@given(st.integers(1, 10_000), st.data())
def test_an_interval_has_the_share_in_it_and_more_samples_never_widen_it(samples: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, samples))
    low, high = share_interval(hits, samples)
    assert 0 <= low <= hits / samples <= high <= 1
    for times in (2, 3, 10):
        narrower = share_interval(hits * times, samples * times)
        assert narrower[1] - narrower[0] <= high - low + 1e-12
    fewer = share_interval(hits, samples, samples / 2)
    assert fewer[1] - fewer[0] >= high - low - 1e-12


def test_the_interval_is_wilsons_and_with_no_hit_the_rule_of_three() -> None:
    low, high = share_interval(10, 100)
    # Of the published tables: 10 of 100 is 0.0552 to 0.1744.
    assert (round(low, 4), round(high, 4)) == (0.0552, 0.1744)
    assert share_interval(0, 300) == (0.0, 0.01)
    assert share_interval(0, 2) == (0.0, 1.0)


@given(st.floats(min_value=0.1, max_value=70), st.floats(min_value=0.1, max_value=70))
def test_samples_further_apart_never_have_a_smaller_margin(one: float, other: float) -> None:
    near, far = (margin_factor(every_s) for every_s in sorted((one, other)))
    assert far is None or (near is not None and 1 < near <= far)


def test_the_margins_are_those_of_the_table_and_clocks_may_jitter() -> None:
    for every_s, factor in MARGINS:
        assert margin_factor(every_s) == margin_factor(every_s * 1.01) == factor
    assert margin_factor(MARGINS[-1][0] * 1.2) is None
    assert margin_factor(0) is None


samples = st.lists(
    st.builds(
        row,
        st.integers(ORIGIN_MS, ORIGIN_MS + 30).map(lambda n: ORIGIN_MS + (n - ORIGIN_MS) * 15_000),
        st.sampled_from(["alice", "bob", "<default>"]),
        st.sampled_from([None, "", "app"]),
        st.integers(0, 2000),
        st.sampled_from([None, 15_000, 400_000]),
        throttled=st.booleans(),
        broker=st.integers(1, 2),
    ),
    min_size=1,
    max_size=120,
)


@settings(max_examples=30)
@given(samples)
def test_samples_are_folded_as_in_sql(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]) -> None:
    folder = tmp_path_factory.mktemp("folded")
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    pq.write_table(table, folder / "a.parquet", row_group_size=7)
    traffic = open_here(find_traffic([str(folder)]))
    relation = duckdb.sql(
        "select broker, user, client_id, max(amount), count(*), epoch_us(min(ts)), epoch_us(max(ts)), "
        "count(*) filter (throttled), avg(interval_ms) filter (interval_ms <= 300000) from "
        f"'{folder}/a.parquet' group by all"
    )
    assert relation is not None
    expected = relation.fetchall()
    found = {
        (one.series.broker, one.series.user, one.series.client_id): (
            one.series.amount, one.series.requests, one.start_us, one.end_us, one.series.throttled, one.since_us,
        )
        for one in traffic.gauges
    }  # fmt: skip
    assert len(found) == len(expected) == len(traffic.gauges)
    for broker, user, client_id, most, count, first, last, throttled, since in expected:
        *same, since_us = found[broker, user, client_id]
        assert same == [most, count, first, last, throttled]
        usual = since * 1000 if since is not None else (last - first) / (count - 1) if count > 1 else 0
        assert since_us == math.floor(usual)
