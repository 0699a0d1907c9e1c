"""The workflows that replay recorded traffic: their own steps, down to the comment and the page of the run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.forge import Forge
from tests.support.github_server import GitHubServer, github_server
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.markdown_views import by_github

RECORDING = Path(__file__).parent / "recordings" / "kafka-4.3.1" / "kafka-request.log.gz"
REF = "refs/kafka-quotas/traffic/prod"


def proposing(folder: Path, github: GitHubServer, traffic: dict[str, str] | None) -> Forge:
    """A repository whose pull request cuts the limit of one user, of a cluster with this ``spec.traffic``."""
    forge = Forge(folder, github)
    settings = {"connection": {"bootstrapServers": ["127.0.0.1:1"]}} | ({} if traffic is None else {"traffic": traffic})
    forge.work.write("cluster.yaml", cluster("prod", **settings))
    forge.work.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "1GiB"})))
    forge.push()
    forge.store("refs/kafka-quotas/snapshot/prod", {"snapshot.json": snapshot({}, cluster_id=None)})
    forge.work.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "10KiB"})))
    return forge


def comment_text(github: GitHubServer) -> str:
    (posted,) = github.comments.values()
    return by_github(str(posted["body"])).text()


def test_a_pull_request_is_judged_by_the_traffic_that_a_reference_of_the_repository_has(tmp_path: Path) -> None:
    with github_server() as github:
        forge = proposing(tmp_path, github, {"source": REF})
        forge.store(REF, {"kafka-request.log": gzip.decompress(RECORDING.read_bytes()).decode()})
        (planned,) = forge.on_pull_request(*forge.propose(), fail_on="warning")["plan"]
        assert planned.matrix["traffic"] == "reference"
        report = json.loads((planned.artifacts["quotas-plan-prod"] / "backtest.json").read_text(encoding="utf-8"))
        assert "would-throttle" in {finding["id"] for finding in report["findings"]}
        assert "throttled" in comment_text(github)


@pytest.mark.parametrize(
    ("traffic", "result", "reason"),
    [
        (None, "success", "set it up"),
        ({"source": REF}, "failure", f"git knows no commit '{REF}'"),
        pytest.param({"source": "nowhere"}, "failure", "nowhere: no such file or folder", marks=pytest.mark.large),
        pytest.param({"prometheus": "http://127.0.0.1:9/"}, "failure", "127.0.0.1:9", marks=pytest.mark.large),
    ],
)
def test_a_comment_says_that_nothing_was_checked_and_why(
    traffic: dict[str, str] | None, result: str, reason: str, tmp_path: Path
) -> None:
    with github_server() as github:
        forge = proposing(tmp_path, github, traffic)
        (planned,) = forge.on_pull_request(*forge.propose())["plan"]
        assert planned.result == result, planned.log
        assert "not checked" in comment_text(github).splitlines()[1]
        assert "Nothing was checked against traffic" in comment_text(github)
        assert reason in comment_text(github)


def test_traffic_that_no_run_stored_judges_nothing(tmp_path: Path) -> None:
    with github_server() as github:
        forge = proposing(tmp_path, github, {"source": REF})
        forge.store(REF, {"kafka-request.log": gzip.decompress(RECORDING.read_bytes()).decode()}, run=77)
        (planned,) = forge.on_pull_request(*forge.propose())["plan"]
        assert any("traffic not trusted" in line for line in planned.step("Fetch the traffic of the cluster").annotations)
        assert planned.step("backtest").outcome == "failure"
        assert "Nothing was checked against traffic" in comment_text(github)
