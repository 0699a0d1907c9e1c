"""The steps of ``docs/pull-requests.md``, run as written: what happens to the comment never changes how plan and apply end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Done, run_script
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, TOKEN, GitHubServer, github_server
from tests.support.manifests import PLAIN_QUOTAS, cluster, snapshot
from tests.support.markdown_views import by_github
from tests.support.pages import part

PAGE = part("pull-requests", "Post it from your own workflow")
PLAN_STEP, APPLY_STEP = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
CONNECTION = {"bootstrapServers": ["127.0.0.1:1"]}
MANIFESTS = f"{cluster('prod-eu', connection=CONNECTION)}---\n{PLAIN_QUOTAS}"


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with github_server() as server:
        yield server


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas/all.yaml").write_text(MANIFESTS, encoding="utf-8")
    (tmp_path / "now.json").write_text(snapshot({}), encoding="utf-8")
    event = {"pull_request": {"number": NUMBER, "head": {"sha": HEAD}}}
    (tmp_path / "event.json").write_text(json.dumps(event), encoding="utf-8")
    return tmp_path


def step(script: str, folder: Path, url: str) -> Done:
    """One step, by the shell that GitHub runs it with."""
    extra = {
        "GITHUB_API_URL": url,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_TOKEN": TOKEN,
    }
    return run_script(script, cwd=folder, shell=("bash", "-e"), env=extra)


def comment(github: GitHubServer) -> str:
    (only,) = github.comments.values()
    return by_github(str(only["body"])).text()


def test_the_steps_post_the_plan_and_then_how_apply_ended(folder, github):
    # No cluster here: the plan is made of a snapshot, and apply reaches nobody.
    planned = step(PLAN_STEP.replace("plan quotas", "plan quotas --current now.json"), folder, github.url)
    after_plan = comment(github)
    applied = step(APPLY_STEP, folder, github.url)

    assert (planned.code, applied.code) == (0, 1), planned.err + applied.err
    assert "Kafka quotas for prod-eu: not checked" in after_plan
    assert "payments-api" in after_plan
    assert "Kafka quotas for prod-eu: apply failed" in comment(github)
    assert "no Kafka broker can be reached" in comment(github)
    assert "payments-api" in comment(github)


def test_findings_are_posted_and_fail_the_step(folder, github):
    (folder / "quotas/all.yaml").write_text(MANIFESTS.replace("20MiB", "20XiB"), encoding="utf-8")

    assert step(PLAN_STEP, folder, github.url).code == 1
    assert "unknown-unit" in comment(github)
    assert "these manifests cannot be planned" in comment(github)
    assert "Kafka quotas for prod-eu: blocked" in comment(github)
