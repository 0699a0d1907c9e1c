"""A forge's server, the environment of its jobs, and plans that raise one limit of each user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.plan import Action, Change, KeyChange, Plan, Reason
from tests.builders import plan, user
from tests.support import gitlab_server as gitlab
from tests.support.command import Done, invoke
from tests.support.comments import plan_body
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, TOKEN, GitHubServer, github_server


def raised(name: str) -> Change:
    """The producer limit of a user goes from 1 B/s to 2 B/s."""
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    return Change(entity=user(name), action=Action.UPDATE, keys=(key,))


def planned(*names: str) -> Plan:
    return plan(*map(raised, names))


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with github_server() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a plan of one change, and the event of the pull request."""
    event = {"pull_request": {"number": NUMBER, "head": {"sha": HEAD}}}
    (tmp_path / "event.json").write_text(json.dumps(event), encoding="utf-8")
    (tmp_path / "plan.json").write_text(plan_body(planned("alice")), encoding="utf-8")
    return tmp_path


def github_job(url: str, folder: Path) -> dict[str, str]:
    """The environment of a step of a workflow."""
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": url,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "31",
        "GITHUB_SERVER_URL": "https://github.example.org",
        "GITHUB_TOKEN": TOKEN,
    }


def gitlab_job(url: str) -> dict[str, str]:
    """The environment of a job of a merge request."""
    place = f"https://gitlab.example.org/{gitlab.PROJECT}"
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": url,
        "CI_PROJECT_ID": gitlab.PROJECT_ID,
        "CI_PROJECT_PATH": gitlab.PROJECT,
        "CI_PROJECT_URL": place,
        "CI_JOB_URL": f"{place}/-/jobs/31",
        "CI_COMMIT_SHA": HEAD,
        "CI_MERGE_REQUEST_IID": str(NUMBER),
        "GITLAB_TOKEN": gitlab.TOKEN,
    }


def comment(folder: Path, github: GitHubServer, *arguments: str) -> Done:
    done = invoke("comment", *arguments, cwd=folder, env=github_job(github.url, folder))
    assert TOKEN not in done.out + done.err
    return done
