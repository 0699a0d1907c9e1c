"""``ManifestCluster.backtest`` of recorded traffic: the numbers and the document of the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.client import BacktestReport, manifests, to_json, verdict_rows
from tests.support.command import invoke
from tests.support.recorded_parquet import Flow, write_traffic
from tests.traffic.conftest import RECORDINGS, recorded_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = f"3={RECORDINGS / 'kafka-4.3.1' / 'kafka-request.log.gz'}"
HEAD = "apiVersion: kafka-quotas/v1\n"
CLUSTER = f"{HEAD}kind: Cluster\nmetadata: {{name: prod}}\nspec:\n  prune: never\n"
RULE = "  backtest: {fail: [{verdicts: [throttled]}]}\n"
ENTRY = "    - match: {user: alice}\n      quotas: {producer_byte_rate: 100KiB}\n"
QUOTAS = f"{HEAD}kind: ClientQuotas\nspec:\n  quotas:\n{ENTRY}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "now.json").write_text(recorded_snapshot(), encoding="utf-8")
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "quotas" / "q.yaml").write_text(QUOTAS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged() -> BacktestReport:
    return manifests(["quotas"], snapshot="now.json").backtest([LOG])


def test_a_backtest_is_the_one_of_the_command_byte_for_byte(folder: Path) -> None:
    command = invoke("backtest", "quotas", "--current", "now.json", "--traffic", LOG, "--format", "json", cwd=folder)

    result = judged()

    assert to_json(result) == command.out
    assert len(verdict_rows(result)) == len(command.json()["verdicts"]) > 0
    assert verdict_rows(result)[0]["user"] == "alice"


def test_a_rule_of_the_cluster_refuses_as_the_command_does(folder: Path) -> None:
    assert not judged().refused

    (folder / "quotas" / "cluster.yaml").write_text(CLUSTER + RULE, encoding="utf-8")

    assert judged().refused
    assert invoke("backtest", "quotas", "--current", "now.json", "--traffic", LOG, cwd=folder).code == 1


@pytest.mark.spark
def test_a_frame_of_a_running_session_is_judged_by_its_name_and_the_session_stays(spark: SparkSession, folder: Path) -> None:
    rows = write_traffic(folder / "rows.parquet", [Flow(user="alice", amount=200_000)])
    (folder / "quotas" / "cluster.yaml").write_text(CLUSTER + "  backtest: {history: {hours: 0}}\n", encoding="utf-8")
    spark.read.parquet(str(rows)).createGlobalTempView("recorded_today")
    try:
        before = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
        of_table = manifests(["quotas"]).backtest(["table:global_temp.recorded_today"])
        assert {row["key"]: row["value"] for row in spark.sql("SET").collect()} == before
    finally:
        spark.catalog.dropGlobalTempView("recorded_today")
    assert verdict_rows(of_table) == verdict_rows(manifests(["quotas"]).backtest([str(rows)])) != []
    assert type(spark).getActiveSession() is spark
