"""Times that ``record`` noted as not observed, in the coverage of a history."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import TrafficError
from reconciler.model import Coverage
from reconciler.traffic import Backtest, BacktestRequest, find_traffic, open_traffic
from reconciler.traffic.judging.history_gaps import add_gaps, holes_of
from reconciler.traffic.traffic_source import RecordingGap, gap_minutes, read_gaps
from tests.support.gauge_parquet import START_S, steady, write_gauges

MINUTE = datetime.timedelta(minutes=1)


def moment(minute: float) -> str:
    return f"{datetime.datetime.fromtimestamp(START_S + 60 * minute, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def gap_line(broker: int, begin: float, end: float) -> str:
    return json.dumps(
        {"broker": broker, "address": "x", "from": moment(begin), "until": moment(end), "missed": 3, "reason": "away"}
    )


def gap(begin_s: int, end_s: int) -> RecordingGap:
    begin, until = (datetime.datetime.fromtimestamp(at, datetime.UTC) for at in (begin_s, end_s))
    return RecordingGap(broker=1, begin=begin, until=until)


def coverage_of(folder: Path) -> tuple[Coverage, ...]:
    recorded = open_traffic(find_traffic([str(folder)]), lambda: pytest.fail("Spark"), in_process=True)
    return Backtest(recorded, BacktestRequest(current=None, proposed={}, declared={})).report().provenance.coverage


def test_noted_gaps_count_in_the_coverage_of_their_broker(tmp_path: Path) -> None:
    write_gauges(tmp_path, {("alice", "app", 1): steady(1000), ("alice", "app", 2): steady(1000)}, hours=1)
    assert [one.minutes_missing for one in coverage_of(tmp_path)] == [0, 0]
    lines = [gap_line(1, 20, 25), "half a li", json.dumps({"clock_set_by": 90.0, "at": moment(3)}), gap_line(1, 24, 27.2)]
    (tmp_path / "gaps.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "gaps.old.jsonl").write_text(gap_line(2, -600, 4) + "\n" + gap_line(9, 0, 60) + "\n")
    first, second = coverage_of(tmp_path)
    assert (first.minutes_missing, first.first_missing) == (
        7,
        datetime.datetime.fromtimestamp(START_S, datetime.UTC) + 20 * MINUTE,
    )
    assert first.gap_words is not None
    assert first.gap_words.startswith("broker 1 has no lines for 7 min")
    assert second.minutes_missing == 4


def test_short_gaps_count_to_the_nearest_minute() -> None:
    assert gap_minutes([gap(60 * 5 + 20, 60 * 5 + 29), gap(629, 700)])[1].tolist() == [10, 11]


def test_a_folder_of_notes_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "gaps.jsonl").mkdir()
    with pytest.raises(TrafficError, match=r"gaps\.jsonl cannot be read"):
        read_gaps([tmp_path])


@given(
    st.sets(st.integers(0, 200), min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(-50, 250), st.integers(0, 40)), max_size=5),
)
def test_minutes_missing_are_those_of_silences_and_of_notes(lines: set[int], gaps: list[tuple[int, int]]) -> None:
    start = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
    base = int(start.timestamp()) // 60
    coverage = (Coverage(broker=1, requests=1, start=start, end=start + 200 * MINUTE),)
    minutes = {1: np.asarray(sorted(lines), dtype=np.int64) + base}
    known = gap_minutes(gap(60 * (base + begin), 60 * (base + begin + length)) for begin, length in gaps)
    silent = {minute for begin, end in holes_of(coverage, minutes)[1].tolist() for minute in range(begin, end)}
    noted = {base + minute for begin, length in gaps for minute in range(begin, begin + length) if 0 <= minute < 200}
    holes = holes_of(coverage, minutes, known)
    assert {minute for begin, end in holes[1].tolist() for minute in range(begin, end)} == silent | noted
    assert add_gaps(coverage, holes)[0].minutes_missing == len(silent | noted)
