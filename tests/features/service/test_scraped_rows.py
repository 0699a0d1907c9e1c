"""From pages of samples to rows and files, and what a poller notes of the clock."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus import PageColumns, RecordedFolder, Unattributed
from reconciler.features.prometheus.exporter_page import PageSeries

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
VALUES = st.sampled_from([0.0, 1.5, 2e6, float("nan"), float("inf"), -1.0, 1e300])


def rate(user: str, **labels: str) -> PageSeries:
    return PageSeries({"__name__": "kafka_server_produce_byte_rate", "user": user, "client_id": "", "broker": "1", **labels})


def throttle(user: str) -> PageSeries:
    return rate(user, __name__="kafka_server_produce_throttle_time")


@given(st.lists(st.tuples(st.dictionaries(NAMES, VALUES), st.dictionaries(NAMES, VALUES)), max_size=6))
def test_rows_are_those_of_a_plain_loop(pages: list[tuple[dict[str, float], dict[str, float]]]) -> None:
    columns = PageColumns()
    series = {(user, made): made(user) for user in "abcde" for made in (rate, throttle)}
    last: dict[str, float] = {}
    for number, (rates, throttles) in enumerate(pages):
        samples = [(series[user, rate], value) for user, value in rates.items()]
        samples += [(series[user, throttle], value) for user, value in throttles.items()]
        scraped = columns.rows(samples, at_s=1e9 + number, monotonic_s=10.0 * number)
        wanted = {}
        for user, value in rates.items():
            if 0 <= value <= 2**42:
                interval = 0 if user not in last else round((10.0 * number - last[user]) * 1000)
                state = -1 if user not in throttles else int(throttles[user] > 0)
                wanted[user] = (interval, int(value), state)
                last[user] = 10.0 * number
        rows = scraped.rows
        users = [scraped.clients[place].user for place in rows.clients.tolist()]
        made_rows = zip(rows.interval_ms.tolist(), rows.amounts.tolist(), rows.throttled.tolist(), strict=True)
        assert dict(zip(users, made_rows, strict=True)) == wanted


def test_series_that_come_and_go_do_not_grow_the_columns_for_ever() -> None:
    columns = PageColumns()
    for number in range(6):
        samples = [(rate(f"user-{number}-{one}"), 1.0) for one in range(1000)]
        rows = columns.rows(samples, at_s=1e9, monotonic_s=float(number))
        assert rows.rows.count == 1000
        assert len(rows.clients) <= 4000


def test_series_of_no_broker_are_counted_and_a_second_spelling_of_a_client_is_left_out() -> None:
    columns = PageColumns()
    samples = [(rate("a", broker=""), 1.0), (rate("b"), 2.0), (rate("b", __name__="kafka_server_Produce_byte_rate"), 3.0)]
    rows = columns.rows(samples, at_s=1e9, monotonic_s=0.0)
    assert rows.rows.amounts.tolist() == [2]
    (unknown,) = columns.unattributed.items()
    assert unknown == (Unattributed.NO_BROKER, (1, samples[0][0].labels))


def test_files_of_one_second_have_names_of_their_own_and_only_ours_are_removed(tmp_path: Path) -> None:
    folder = RecordedFolder(tmp_path)
    rows = PageColumns().rows([(rate("a"), 1.0)], at_s=1_795_356_180.5, monotonic_s=0.0)
    first, second = folder.write([rows]), folder.write([rows, rows])
    assert [first.name, second.name] == ["2026-11-22T140300Z.parquet", "2026-11-22T140300Z-2.parquet"]
    assert [pq.read_metadata(path).num_rows for path in (first, second)] == [1, 2]
    (tmp_path / "mine.parquet").write_bytes(b"x")
    assert folder.remove_old(before_s=0, most_bytes=10**9) == ()
    assert folder.remove_old(before_s=0, most_bytes=second.stat().st_size) == (second,)
    assert folder.remove_old(before_s=first.stat().st_mtime + 1, most_bytes=10**9) == (first,)
    assert {path.name for path in tmp_path.iterdir()} == {"mine.parquet"}


@pytest.mark.parametrize("jump_s", [-3600.0, 90.0])
def test_intervals_do_not_follow_a_clock_that_jumps(jump_s: float) -> None:
    columns = PageColumns()
    series = rate("a")
    columns.rows([(series, 1.0)], at_s=1e9, monotonic_s=10.0)
    assert columns.rows([(series, 1.0)], at_s=1e9 + jump_s, monotonic_s=15.0).rows.interval_ms.tolist() == [5000]
