"""This repository's own GitHub workflows hold no more rights than they need and run only code pinned by commit."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
USES = re.compile(r"^\s*(?:- )?uses:\s*(?P<what>.*)$", re.MULTILINE)
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_there_is_a_workflow():
    assert [path.name for path in WORKFLOWS] == ["ci.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_commit_with_its_version_beside_it(path):
    used = [match["what"] for match in USES.finditer(path.read_text(encoding="utf-8")) if not match["what"].startswith("./")]

    assert used
    assert [what for what in used if not PINNED.fullmatch(what)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_starts_without_permissions_and_each_job_may_only_read(path):
    workflow = read(path)

    assert workflow["permissions"] == {}
    assert {
        name: job["permissions"] for name, job in workflow["jobs"].items() if job["permissions"] != {"contents": "read"}
    } == {}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_ends_by_itself_and_no_checkout_keeps_its_token(path):
    jobs = read(path)["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    checkouts = [step.get("with", {}) for step in steps if step.get("uses", "").startswith("actions/checkout@")]

    assert [name for name, job in jobs.items() if "timeout-minutes" not in job] == []
    assert checkouts
    assert all(options.get("persist-credentials") is False for options in checkouts)
