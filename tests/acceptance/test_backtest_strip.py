"""The strip under a plot is as high as the share of each interval that is over, for clients that send in every second."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import invoke
from tests.support.manifests import cluster, quotas

START = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
DAY = 86_400
LIMIT = 60_000
QUIET = 50_000
STRIP = 18
MAPPING = """apiVersion: kafka-quotas/v1
kind: TrafficMapping
spec:
  columns:
    ts: {column: ts}
    broker: {column: broker}
    user: {column: user}
    client_id: {column: client_id}
    kind: {column: kind, values: {produce: produce}}
    amount: {column: amount}
"""
BAR = re.compile(r'<rect class="(over|possible)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/>')


def amounts(broker: int) -> list[int]:
    """50 kB in each second. On broker 1 one second in five minutes is over the limit, on broker 2 one stretch of half an hour."""
    sent = [QUIET] * DAY
    if broker == 1:
        # Both are in the window of eleven seconds for one second only.
        for at in range(150, DAY, 300):
            sent[at - 10] = sent[at] = QUIET + 45_000
    else:
        sent[40_000:41_800] = [80_000] * 1800
    return sent


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The report of such a day, and its page."""
    folder = tmp_path_factory.mktemp("day")
    (folder / "mapping.yaml").write_text(MAPPING)
    moments = [START + datetime.timedelta(seconds=at, milliseconds=500) for at in range(DAY)]
    rows = {
        "ts": moments * 2,
        "broker": [1] * DAY + [2] * DAY,
        "kind": ["produce"] * 2 * DAY,
        "user": ["alice"] * 2 * DAY,
        "client_id": ["app"] * 2 * DAY,
        "amount": amounts(1) + amounts(2),
    }
    schema = pa.schema(
        [
            ("ts", pa.timestamp("us", tz="UTC")), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()),
            ("client_id", pa.string()), ("amount", pa.int64()),
        ]
    )  # fmt: skip
    pq.write_table(pa.table(rows, schema=schema), folder / "day.parquet")
    (folder / "quotas").mkdir()
    (folder / "quotas/cluster.yaml").write_text(cluster("prod", backtest={"history": {"hours": 0}}))
    (folder / "quotas/alice.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": LIMIT})))
    done = invoke(
        "backtest",
        "quotas",
        "--traffic",
        "day.parquet",
        "--mapping",
        "mapping.yaml",
        "--out",
        "json=report.json",
        "--out",
        "html=page.html",
        cwd=folder,
    )
    assert done.code == 0, done.err
    return json.loads((folder / "report.json").read_text()), (folder / "page.html").read_text()


def bars(page: str, style: str) -> list[tuple[float, float]]:
    """Width and height of each, as shares of the strip."""
    strip = page.partition('<svg class="strip"')[2].partition("</svg>")[0]
    return [(float(width) / 1000, float(height) / STRIP) for kind, _, _, width, height in BAR.findall(strip) if kind == style]


def test_an_hour_with_a_few_seconds_over_is_a_thin_line_and_no_block(judged: tuple[dict[str, Any], str]) -> None:
    report, page = judged
    rates = [row["rates"] for row in report["verdicts"]]
    step = rates[0]["step_s"]
    most = [max(counts) for counts in zip(*(one["over"] for one in rates), strict=True)]
    assert step >= 300
    assert sum(0 < count < 10 for count in most) > 100, "many intervals have a few seconds"
    assert max(most) == step, "and some are over as a whole"
    drawn = bars(page, "over")
    shown = sum(width * height for width, height in drawn)
    assert shown == pytest.approx(sum(most) / step / len(most), abs=1 / STRIP)
    assert max(height for _, height in drawn) == 1.0
    assert min(height for _, height in drawn) == pytest.approx(1 / STRIP, abs=0.01)
    assert sum(width for width, height in drawn if height > 0.5) < 0.04, "half an hour of a day is a fiftieth of the strip"


def test_the_first_second_over_the_time_and_its_longest_part_follow_one_rule(judged: tuple[dict[str, Any], str]) -> None:
    for row in judged[0]["verdicts"]:
        assert row["seconds_over"] == sum(row["rates"]["over"])
        first = datetime.datetime.fromisoformat(row["first"])
        longest = datetime.datetime.fromisoformat(row["longest_from"])
        assert first <= longest
        interval = int((first - START).total_seconds()) // row["rates"]["step_s"]
        assert row["rates"]["over"][interval] > 0
        assert sum(row["rates"]["over"][:interval]) == 0
