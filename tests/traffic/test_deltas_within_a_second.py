"""A counter's difference within one second of the clock is that second's sum, in every form in which it is recorded."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.sources.normal_form import canonical_rows, is_within_second
from tests.support.command import Command, Done, invoke
from tests.traffic.test_gauges_of_metrics import QUOTAS

SECOND = 1_763_900_000
ROWS = [
    *((SECOND + 1 + number, 1000, "busy", 40_000 if number % 10 == 0 else 10, "delta") for number in range(60)),
    *((SECOND + 1 + number, 1000, "calm", 100, "delta") for number in range(60)),
]
Row = tuple[float, int, str, int, str]


def written(file: Path, rows: Sequence[Row]) -> Path:
    """Canonical Parquet of produce requests at broker 1: end in seconds, interval in ms, user, bytes, semantics."""
    moments = [datetime.datetime.fromtimestamp(row[0], datetime.UTC) for row in rows]
    columns = {
        "ts": pa.array(moments, pa.timestamp("us", "UTC")), "interval_ms": pa.array([row[1] for row in rows], pa.int32()),
        "broker": pa.array([1] * len(rows), pa.int32()), "user": [row[2] for row in rows], "client_id": [""] * len(rows),
        "kind": ["produce"] * len(rows), "amount": pa.array([row[3] for row in rows], pa.int64()),
        "semantics": [row[4] for row in rows],
    }  # fmt: skip
    pq.write_table(pa.table(columns), file)
    return file


def backtest(command: Command, folder: Path, *more: str) -> Done:
    (folder / "quotas").mkdir(exist_ok=True)
    (folder / "quotas" / "q.yaml").write_text(QUOTAS, encoding="utf-8")
    return command("backtest", "quotas", "--format", "json", "--traffic", *more, cwd=folder)


def judged(done: Done) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    document = done.json()
    (observed,) = document["provenance"]["observations"]
    assert (observed["semantics"], observed["rows"], observed["series"]) == ("second", 120, 2)
    return [one for one in document["verdicts"] if one["bucket"]["user"] != "idle"]


def test_an_average_is_unreadable_and_clears_nothing(tmp_path: Path) -> None:
    written(tmp_path / "canonical.parquet", [*ROWS, (SECOND + 1, 1000, "idle", 7, "mean")])

    document = backtest(invoke, tmp_path, "canonical.parquet").json()

    assert "has 'mean', which is none of event, delta, gauge" in "".join(document["provenance"]["unreadable"]["samples"])
    assert [one["entity"] for one in document["unjudged"]] == [{"user": "idle"}]


@pytest.mark.parametrize("compacted", [False, True], ids=["parquet", "folder"])
@pytest.mark.parametrize(("end_s", "interval_ms"), [(0.5, 1000), (60, 60_000), (1, 0)], ids=["across", "minute", "none"])
def test_one_longer_delta_of_a_client_leaves_its_limit_without_a_clear_verdict(
    tmp_path: Path, end_s: float, interval_ms: int, compacted: bool
) -> None:
    """It can have been over the limit in a second that no row shows, however few such rows there are."""
    calm = [(SECOND + 1 + number, 1000, "calm", 100, "delta") for number in range(300)]
    written(tmp_path / "canonical.parquet", [*calm, (SECOND + end_s, interval_ms, "calm", 10**9, "delta")])
    if compacted:
        assert invoke("compact", "--traffic", "canonical.parquet", "--folder", "totals", cwd=tmp_path).code == 0

    document = backtest(invoke, tmp_path, "totals" if compacted else "canonical.parquet").json()

    found = {one["bucket"]["user"]: (one["verdict"], one["uncharged"], one["safe"]) for one in document["verdicts"]}
    assert found["calm"] == ("inconclusive", 1, None)


def test_one_sum_of_a_second_among_requests_leaves_no_single_request(tmp_path: Path) -> None:
    events = [(SECOND + 0.25, 0, "calm", 5, "event"), (SECOND + 1, 1000, "busy", 5, "delta")]
    written(tmp_path / "canonical.parquet", events)

    document = backtest(invoke, tmp_path, "canonical.parquet").json()
    refused = backtest(invoke, tmp_path, "canonical.parquet", "--exact")

    assert [(one["semantics"], one["rows"]) for one in document["provenance"]["observations"]] == [("second", 2)]
    assert (refused.code, "--exact needs single requests" in refused.err) == (64, True)


def test_compact_keeps_sums_of_seconds_and_that_of_longer_deltas_none_is_known(tmp_path: Path) -> None:
    written(tmp_path / "seconds.parquet", ROWS)
    written(tmp_path / "minutes.parquet", [(SECOND, 60_000, "busy", 7, "delta")])

    made = invoke("compact", "--traffic", "seconds.parquet", "--folder", "totals", cwd=tmp_path)
    empty = invoke("compact", "--traffic", "minutes.parquet", "--folder", "more", cwd=tmp_path)
    refused = backtest(invoke, tmp_path, "more")

    assert (made.code, "0 counted requests" in empty.out, refused.code) == (0, True, 1), empty.out
    assert "1 of 1 rows are not counted, since the second is not known" in refused.err
    totals = judged(backtest(invoke, tmp_path, "totals"))
    assert totals == judged(backtest(invoke, tmp_path, "seconds.parquet"))


@given(st.lists(st.tuples(st.integers(-3_000_000, 3_000_000), st.integers(-1, 3_000_000)), min_size=1, max_size=20))
def test_only_intervals_inside_one_second_are_sums(rows: list[tuple[int, int]]) -> None:
    end_us, length_us = (np.asarray(column, dtype=np.int64) for column in zip(*rows, strict=True))
    within = is_within_second(end_us, length_us)
    for (end, length), inside in zip(rows, within.tolist(), strict=True):
        first, behind = (end - length) // 1_000_000, -(-end // 1_000_000)
        assert inside == (length > 0 and behind - first == 1)


def test_the_end_of_a_second_belongs_to_it(tmp_path: Path) -> None:
    batch = pq.read_table(written(tmp_path / "a.parquet", ROWS[:1])).to_batches()[0]
    rows = canonical_rows(batch, ("status", "ts_us"))
    assert rows.to_pylist() == [{"status": "second-sum", "ts_us": (SECOND + 1) * 1_000_000 - 1}]
