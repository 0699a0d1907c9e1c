"""One client with most of the rows, one hour with half of them, and settings of Spark that cut shuffles anew: equal reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.model import DEFAULT, Entity, Form, Verdict
from reconciler.traffic import Backtest, BacktestRequest, Reading, Traffic, find_traffic, open_traffic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 12_000
START_US, HOUR_US = 1_795_000_000_000_000, 3_600_000_000
LIMITS = {Entity.of({"user": DEFAULT}): {"producer_byte_rate": 9_000.0}}
NOW = {Entity.of({"user": DEFAULT}): {"producer_byte_rate": 20_000.0}}
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "adaptive": {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1k",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
        "spark.sql.shuffle.partitions": "7",
    },
    "not adaptive": {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "3"},
}


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Traffic:
    """Nine of ten rows are of one client, and half of the rows are in the third of six hours."""
    chance, folder = np.random.default_rng(11), tmp_path_factory.mktemp("skew")
    hour = np.where(chance.random(ROWS) < 0.5, 2, chance.integers(0, 6, ROWS))
    times = START_US + hour * HOUR_US + chance.integers(0, HOUR_US // 6, ROWS)
    client = np.where(chance.random(ROWS) < 0.9, 0, chance.integers(1, 40, ROWS))
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "interval_ms": pa.array(np.zeros(ROWS, dtype=np.int32)),
            "broker": pa.array(chance.integers(1, 4, ROWS).astype(np.int32)),
            "user": pa.array([f"team-{number:02}" for number in client.tolist()]),
            "client_id": pa.array(["app"] * ROWS),
            "kind": pa.array(["produce"] * ROWS),
            "amount": pa.array(chance.integers(1_000, 60_000, ROWS)),
            "semantics": pa.array(["event"] * ROWS),
            "tie": pa.array(chance.integers(0, 2**62, ROWS)),
        }
    )
    for number in range(4):
        pq.write_table(table.slice(number * ROWS // 4, ROWS // 4), Path(folder) / f"{number}.parquet")
    return find_traffic([str(folder)])


LARGE = pytest.mark.large


@pytest.mark.parametrize(
    ("settings", "exact"),
    [
        ("adaptive", True),
        pytest.param("not adaptive", False, marks=LARGE),
        ("adaptive", False),
        pytest.param("not adaptive", True, marks=LARGE),
    ],
)
def test_skew_and_adaptive_plans_change_no_number(spark: SparkSession, traffic: Traffic, settings: str, exact: bool) -> None:
    asked = BacktestRequest(current=NOW, proposed=LIMITS, declared=LIMITS, exact=exact)
    here = open_traffic(traffic, lambda: spark, in_process=True)
    expected = Backtest(here, asked).report()
    session = spark.newSession()
    for name, value in SETTINGS[settings].items():
        session.conf.set(name, value)

    form = Form.EXACT if exact else Form.SECONDS
    on_workers = Backtest(open_traffic(traffic, lambda: session, Reading(by_seconds=form is Form.SECONDS)), asked).report()
    assert on_workers == expected
    assert expected.counts.changed[Verdict.THROTTLED]
