"""The workflows that replay recorded traffic: their own steps, with a real Spark, down to the comment and the page of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.forge import Forge
from tests.support.github_server import github_server
from tests.support.manifests import cluster, quotas
from tests.support.markdown_views import by_github

RECORDING = Path(__file__).parent / "recordings" / "kafka-4.3.1" / "kafka-request.log.gz"


@pytest.mark.spark
def test_a_proposal_is_replayed_against_recorded_traffic_and_the_comment_says_so(tmp_path: Path) -> None:
    with github_server() as github:
        forge = Forge(tmp_path, github)
        forge.work.write("cluster.yaml", cluster("prod", connection={"bootstrapServers": ["127.0.0.1:1"]}))
        forge.work.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "1GiB"})))
        state = {
            "format_version": "1.0",
            "cluster": {"name": None, "id": None, "kafka_version": None},
            "observed": {"at": "2026-01-02T00:00:00Z", "from": "broker"},
            "entities": [],
        }
        forge.push()
        forge.store("refs/kafka-quotas/snapshot/prod", {"snapshot.json": json.dumps(state)})
        forge.work.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "10KiB"})))
        (planned,) = forge.on_pull_request(*forge.propose(), traffic=f"\n1={RECORDING}\n", fail_on="warning")["plan"]
        assert planned.step("backtest").outcome == "failure", planned.log
        report = json.loads((planned.artifacts["quotas-plan-prod"] / "backtest.json").read_text(encoding="utf-8"))
        assert "would-throttle" in {finding["id"] for finding in report["findings"]}
        assert (planned.artifacts["quotas-plan-prod"] / "backtest.html").is_file()
        (posted,) = github.comments.values()
        assert "Kafka quotas for" in by_github(str(posted["body"])).text()
        assert "Backtest" in by_github(str(posted["body"])).text()
        assert planned.step("backtest").summary


def test_outside_of_pull_requests_the_same_script_runs_and_traffic_that_is_not_there_is_said(tmp_path: Path) -> None:
    with github_server() as github:
        forge = Forge(tmp_path, github)
        forge.work.write("cluster.yaml", cluster("prod eu", connection={"bootstrapServers": ["127.0.0.1:1"]}))
        forge.work.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "1GiB"})))
        (ran,) = forge.on_push(forge.push(), "backtest.yml", cluster="prod eu", traffic="nowhere")["backtest"]
    assert ran.step("cluster").outputs["slug"].startswith("prod-eu-")
    assert (ran.result, ran.step("Backtest").outcome) == ("failure", "failure")
    assert "nowhere" in ran.step("Backtest").err
