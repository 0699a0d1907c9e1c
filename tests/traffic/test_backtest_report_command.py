"""``backtest`` and its report as a user gets it: the policy's exit code, and the same from cells without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.command import Command, Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.recorded_parquet import Flow, write_traffic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOUR = 3600
NAME = "<script>|`@team"
REPOSITORY = """
apiVersion: kafka-quotas/v1
kind: Repository
spec:
  owners:
    payments: {entities: [{user: {prefix: pay-}}]}
    platform: {}
"""
CLUSTER = """
apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: prod-eu}
spec:
  prune: always
  backtest:
    history: {hours: 0}
    fail:
      - {verdicts: [throttled], owners: [payments], reason: gold is never throttled}
      - {verdicts: [throttled], match: {user: nobody}}
"""
QUOTAS = f"""
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {{name: payments, owner: payments}}
spec:
  quotas:
    - match: {{user: pay-api, client-id: {{default: true}}}}
      quotas: {{producer_byte_rate: 150000}}
---
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {{name: others, owner: platform}}
spec:
  quotas:
    - match: {{user: {{default: true}}}}
      quotas: {{producer_byte_rate: 100000}}
    - match: {{user: "{NAME}"}}
      quotas: {{producer_byte_rate: 52000}}
"""
LIVE = (
    {"entity": {"user": "pay-api"}, "quotas": {"producer_byte_rate": 400_000}},
    {"entity": {"user": None}, "quotas": {"producer_byte_rate": 100_000}},
)
# Whole seconds prove no more of one request a second than that its rate is at most S12 / 10: a fifth above what is sent.
FLOWS = (
    Flow(user="pay-api", client_id="steady", amount=100_000, begin_s=0, end_s=120),
    Flow(user="pay-api", client_id="burst", amount=200_000, begin_s=60, end_s=90),
    Flow(user="pay-api", client_id="steady", amount=1_000, begin_s=2 * HOUR, end_s=2 * HOUR + 60),
    Flow(user=NAME, amount=50_000, begin_s=0, end_s=60),
    Flow(user="calm", amount=1_000, begin_s=0, end_s=30),
    *(Flow(user="calm", broker=2, amount=1_000, begin_s=hour * HOUR, end_s=hour * HOUR + 30) for hour in (0, 1, 2, 4, 5)),
    *(Flow(user="pay-api", broker=1, amount=1, begin_s=hour * HOUR, end_s=hour * HOUR + 3) for hour in (1, 3, 4, 5)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("backtest")
    (made / "quotas").mkdir()
    for name, text in (("kafka-quotas.yaml", REPOSITORY), ("cluster.yaml", CLUSTER), ("quotas.yaml", QUOTAS)):
        (made / "quotas" / name).write_text(text, encoding="utf-8")
    snapshot = {
        "format_version": "1.0",
        "cluster": {"name": None, "id": None, "kafka_version": "4.3"},
        "observed": {"at": "2026-11-21T13:00:00Z", "from": "broker"},
        "entities": LIVE,
    }
    (made / "live.json").write_text(json.dumps(snapshot), encoding="utf-8")
    write_traffic(made / "traffic.parquet", FLOWS)
    return made


def backtest(command: Command, folder: Path, *arguments: str, traffic: str = "traffic.parquet", cwd: str = ".") -> Done:
    options = ("--traffic", str(folder / traffic), "--current", str(folder / "live.json"), "--master", "local[2]")
    return command("backtest", "quotas", *options, *arguments, cwd=folder / cwd)


@pytest.fixture(scope="module")
def whole(folder: Path, warm_command: Command) -> Done:
    """One run that prints its report, and writes it as JSON."""
    return backtest(warm_command, folder, "--out", "json=out.json")


@pytest.fixture(scope="module")
def document(folder: Path, whole: Done) -> Any:
    assert whole.code in (0, 1), whole.err
    return json.loads((folder / "out.json").read_text(encoding="utf-8"))


def test_the_policy_refuses_with_exit_code_1_and_names_rule_and_bucket(document: Any, whole: Done) -> None:
    assert (whole.code, whole.err) == (1, "")
    gold, nobody = document["rules"]
    assert (gold["reason"], gold["line"], nobody["failed"]) == ("gold is never throttled", 10, [])
    (failed,) = gold["failed"]
    assert failed["bucket"] == {"user": "pay-api", "client-id": "burst"}
    assert failed["owners"] == ["payments"]
    found = next(one for one in document["findings"] if one["id"] == "backtest-policy")
    assert (found["severity"], Path(found["file"]).name, found["line"]) == ("error", "quotas.yaml", 8)
    assert whole.out.splitlines()[1].startswith("Rule fails: gold is never throttled. ")


@pytest.fixture(scope="module")
def cells(folder: Path, spark: SparkSession) -> str:
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic.seconds.folder import SegmentFolder

    path = folder / "traffic.parquet"
    file = SourceFile(path=path, id="one", size=path.stat().st_size)
    Compaction(files={path.resolve(): file}, folder=SegmentFolder(folder / "cells")).of_normal_form(spark)
    return "cells"


STAYING = """
  backtest:
    fail: [{verdicts: [throttled, possible], unchanged: true}]
"""


def test_a_rule_about_limits_that_stay_is_judged_from_per_second_totals_too(
    folder: Path, cells: str, tmp_path: Path, warm_command: Command
) -> None:
    (tmp_path / "quotas").mkdir()
    cluster = CLUSTER[: CLUSTER.index("  backtest:")] + STAYING.removeprefix("\n")
    quotas = QUOTAS.replace("quotas: {producer_byte_rate: 150000}", "quotas: {producer_byte_rate: 400000}")
    for name, text in (("kafka-quotas.yaml", REPOSITORY), ("cluster.yaml", cluster), ("quotas.yaml", quotas)):
        (tmp_path / "quotas" / name).write_text(text, encoding="utf-8")
    live = json.loads((folder / "live.json").read_text(encoding="utf-8"))
    # The stranger's limit is what it is today, and all of its traffic is over it.
    live["entities"] += [{"entity": {"user": NAME}, "quotas": {"producer_byte_rate": 52_000}}]
    (tmp_path / "live.json").write_text(json.dumps(live), encoding="utf-8")
    options = ("--current", str(tmp_path / "live.json"), "--format", "json", "--master", "local[2]")
    found = [
        warm_command("backtest", "quotas", "--traffic", str(folder / traffic), *options, cwd=tmp_path)
        for traffic in ("traffic.parquet", cells)
    ]
    assert [done.code for done in found] == [1, 1], found[1].err
    rows, totals = (done.json() for done in found)
    assert [one["bucket"] for one in totals["rules"][0]["failed"]] == [{"user": NAME}]
    assert totals["rules"] == rows["rules"]


def test_a_pull_request_cannot_lift_the_rule_that_judges_it(folder: Path, cells: str, tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "repo")
    for name, text in (("kafka-quotas.yaml", REPOSITORY), ("cluster.yaml", CLUSTER), ("quotas.yaml", QUOTAS)):
        repository.write(f"quotas/{name}", text)
    repository.commit("the base")
    repository.branch()
    repository.write("quotas/cluster.yaml", CLUSTER[: CLUSTER.index("  backtest:")])
    repository.commit("no rules")
    arguments = (
        "backtest",
        "quotas",
        "--traffic",
        str(folder / cells),
        "--current",
        str(folder / "live.json"),
        "--format",
        "json",
    )
    free, judged = (invoke(*arguments, *more, cwd=repository.folder) for more in ((), ("--trusted-ref", "main")))
    assert (free.code, free.json()["rules"], free.json()["notes"]) == (0, [], [])
    assert judged.code == 1
    assert [bool(rule["failed"]) for rule in judged.json()["rules"]] == [True, False]
    (note,) = judged.json()["notes"]
    assert note.startswith("backtest of the Cluster manifest prod-eu differs from main.")
