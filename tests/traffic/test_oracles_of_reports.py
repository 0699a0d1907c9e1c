"""Whole reports of unpleasant traffic: the same bytes however rows are cut, shuffled and rebalanced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.documents import BACKTEST
from reconciler.formats.canonical import document_text
from reconciler.model.cluster import HistoryNeeds
from reconciler.model.entity import DEFAULT, Entity
from tests.support.command import Command, run
from tests.support.manifests import quotas
from tests.support.random_traffic import Flow, arrivals_of, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic.request_traffic import TrafficSource

pytestmark = pytest.mark.spark
EACH = {"producer_byte_rate": 20_000.0, "consumer_byte_rate": 9000.0}
CURRENT = {Entity.of({"user": DEFAULT, "client-id": DEFAULT}): EACH}
PROPOSED = CURRENT | {
    Entity.of({"user": "hot"}): {"producer_byte_rate": 500_000.0, "consumer_byte_rate": 40_000.0},
    Entity.of({"user": "alice"}): {"producer_byte_rate": 30_000.0},
}
HOUR_US = 3_600_000_000


def flow(user: str, client_id: str, number: int, **given: Any) -> Flow:
    fields: dict[str, Any] = {
        "broker": 1 + number % 3, "user": user, "client_id": client_id, "kind": ("produce", "fetch")[number % 2],
        "pattern": ("dense", "bursts", "sparse", "same millisecond", "long pauses")[number % 5], "seed": number, "count": 40,
        "scale": 1, "pause_us": 3 * HOUR_US, "silent_after": 25, "twice_every": 6,
    }  # fmt: skip
    return Flow(**fields | given)


FLOWS = (
    # Nine of ten requests are one client's.
    flow("hot", "app", 0, pattern="dense", count=4000, silent_after=4000),
    *(flow("hot", f"app-{number}", number) for number in range(5)),
    *(flow("alice", client_id, number) for number, client_id in enumerate(["", "x", "y"])),
    flow("bob", "<default>", 1, scale=0),
    flow("bob", "large", 2, scale=2**30),
)


def report(recorded: TrafficSource, *, exact: bool = False) -> str:
    """The report as JSON, without the names of its files."""
    from reconciler.traffic import Backtest, BacktestRequest

    # There are hours of silence in it, which is not the matter here.
    needs = HistoryNeeds(hours=0.0, coverage_percent=0.0)
    question = BacktestRequest(current=CURRENT, proposed=PROPOSED, declared=PROPOSED, exact=exact, needs=needs)
    try:
        found = Backtest(recorded, question).report()
    finally:
        recorded.close()
    return document_text(BACKTEST.write(replace(found, provenance=replace(found.provenance, files=(), source="traffic"))))


PARTITIONS = "spark.sql.shuffle.partitions"
AS_MANY_AS_ASKED = {"spark.sql.adaptive.coalescePartitions.enabled": "false"}
REBALANCED = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1k",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
}
"""Of a session that cuts the partition of the client with most of the rows anew."""


def session_with(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


@pytest.mark.parametrize(
    "cuts",
    [pytest.param({1: 1, 3: 2}, id="two cuts"), pytest.param({1: 1, 2: 3, 7: 5, 16: 2}, id="four cuts", marks=pytest.mark.large)],
)
def test_reports_are_the_same_bytes_however_rows_are_cut_and_shuffled(
    spark: SparkSession, tmp_path: Path, cuts: dict[int, int]
) -> None:
    """``cuts``: the number of files of the traffic for each number of partitions of the shuffle."""
    from reconciler.traffic import find_traffic, open_traffic

    arrivals = arrivals_of(FLOWS)
    assert sum(one.client_id == "app" for one in arrivals) > 0.85 * len(arrivals)
    found: dict[str, dict[int, str]] = {"seconds": {}, "exact": {}}
    for partitions, files in cuts.items():
        session = session_with(spark, {**(AS_MANY_AS_ASKED if partitions == 1 else REBALANCED), PARTITIONS: str(partitions)})
        folder = tmp_path / str(partitions)
        write_files(folder, arrivals, files=files, seed=partitions)

        def opened(folder: Path = folder, session: SparkSession = session) -> TrafficSource:
            return open_traffic(find_traffic([str(folder)]), lambda: session)

        found["seconds"][partitions] = report(opened())
        if partitions in (1, max(cuts)):
            found["exact"][partitions] = report(opened(), exact=True)
    for way, texts in found.items():
        assert len(set(texts.values())) == 1, way

    assert {row["verdict"] for row in json.loads(found["seconds"][1])["verdicts"]} >= {"throttled", "clear"}


MANIFEST = quotas(
    ({"user": "alice"}, {"producer_byte_rate": "100KiB", "controller_mutation_rate": 10}),
    ({"user": "hot"}, {"producer_byte_rate": "500KB", "consumer_byte_rate": "40KB"}),
)
NO_PYTHON = {"PYSPARK_PYTHON": "/nowhere/python", "PYSPARK_DRIVER_PYTHON": "/nowhere/python"}


def test_workers_without_python_are_a_sentence(
    tmp_path: Path, spark: SparkSession, warm_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = write_files(tmp_path / "rows", arrivals_of(FLOWS[1:3]), files=1, seed=1)
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
    done = warm_command("backtest", "quotas.yaml", "--traffic", str(file), "--master", "local[2]", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "/nowhere/python" in done.err


@pytest.mark.large
def test_the_environment_chooses_the_python_of_workers(tmp_path: Path) -> None:
    (file,) = write_files(tmp_path / "rows", arrivals_of(FLOWS[1:3]), files=1, seed=1)
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    done = run(
        "backtest", "quotas.yaml", "--traffic", str(file), "--master", "local[2]", cwd=tmp_path, env=NO_PYTHON, timeout=600
    )
    assert (done.code, done.out) == (1, "")
    assert "/nowhere/python" in done.err
