"""A pull request that changes 5,000 limits on each of two clusters, within what the forge takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.features.pull_requests.plan_comment import LIMIT
from tests.builders import user
from tests.support.forge import Forge
from tests.support.github_server import github_server
from tests.support.manifests import cluster, quotas, snapshot

pytestmark = pytest.mark.large

CLUSTERS = ("east", "west")
MANY, GONE = 5_000, 20
MOST_OF_A_STATUS = 65_535
"""Characters of the summary of a check run, by GitHub's documentation."""


def declared(name: str, rate: int, count: int) -> str:
    """One entity a line, so that each has a line of its own in the change."""
    rows = (({"user": f"{name}-{number:04d}"}, {"producer_byte_rate": rate}) for number in range(count))
    return quotas(*rows, clusters=[name]).replace('}, {"match"', '},\n    {"match"')


def test_two_clusters_with_5000_changes_each_stay_within_the_limits_of_the_forge(tmp_path: Path) -> None:
    with github_server() as github:
        forge = Forge(tmp_path, github)
        for name in CLUSTERS:
            forge.work.write(f"{name}.yaml", cluster(name, prune="never", guards={"large-reduction": {"factor": 0.5}}))
            forge.work.write(f"quotas/{name}.yaml", declared(name, 1000, MANY + GONE))
        forge.push()
        for name in CLUSTERS:
            live = {user(f"{name}-{number:04d}"): {"producer_byte_rate": 1000.0} for number in range(MANY + GONE)}
            forge.store(f"refs/kafka-quotas/snapshot/{name}", {"snapshot.json": snapshot(live, None)})
            forge.work.write(f"quotas/{name}.yaml", declared(name, 100, MANY))
        head, merge = forge.propose()
        patches = {
            f"quotas/{name}.yaml": forge.work.git("diff", f"main...{head}", "--", f"quotas/{name}.yaml") for name in CLUSTERS
        }
        github.files = [{"filename": name, "patch": text[text.find("@@") :]} for name, text in patches.items()]
        # The runner checks annotations and summaries, the server the length of comments.
        runs = forge.on_pull_request(head, merge, fail_on_guard=True)["plan"]

        assert {run.matrix["cluster"]: run.step("plan").outputs["changes"] for run in runs} == dict.fromkeys(CLUSTERS, str(MANY))
        assert [run.step("Comment").outcome for run in runs] == ["success", "success"], runs[0].log
        bodies = [str(comment["body"]) for comment in github.comments.values()]
        assert len(bodies) == len(CLUSTERS)
        for body in bodies:
            assert len(body.encode()) <= LIMIT
            assert "of 5,020 changed limits" in body
            assert "large-reduction" in body
        for name in CLUSTERS:
            assert github.status(f"kafka-quotas/{name}", head) == "action_required"
        sent = [request.body for request in github.requests if request.method == "POST" and request.path.endswith("/check-runs")]
        assert all(len(json.dumps(body)) <= MOST_OF_A_STATUS for body in sent)
        assert 0 < len(github.line_comments) <= 10 * len(CLUSTERS)
