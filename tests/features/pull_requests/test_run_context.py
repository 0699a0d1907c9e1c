"""Who merged and approved what a job applies: as its variables and its forge state it, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

import pytest

from reconciler.cli.run_context import ContextLookup
from reconciler.features.pull_requests.posting import run_context
from reconciler.model import JobFacts, RunContext
from tests.support import gitlab_server as gitlab
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, TOKEN, Fault, GitHubServer, github_server, pull_request, review

MERGE = "c3" * 20


def job(server: GitHubServer, **more: str) -> dict[str, str]:
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTOR": "carol",
        "GITHUB_API_URL": server.url,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "17",
        "GITHUB_SERVER_URL": "https://github.example.org",
        "GITHUB_SHA": MERGE,
        "GITHUB_TOKEN": TOKEN,
        **more,
    }


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with github_server() as server:
        server.pulls = [pull_request(NUMBER, HEAD, merged_as=MERGE)]
        yield server


def test_the_last_decision_of_each_reviewer_counts_and_a_comment_is_none(github: GitHubServer) -> None:
    github.reviews = [
        review("bob", "APPROVED"),
        review("alice", "CHANGES_REQUESTED"),
        review("bob", "CHANGES_REQUESTED"),
        review("alice", "APPROVED"),
        review("dora", "APPROVED"),
        review("dora", "COMMENTED"),
        review("eve", "DISMISSED"),
    ]
    first, whole = run_context(job(github))
    assert first == RunContext(job=whole.job)
    assert whole.job.run == f"https://github.example.org/{REPOSITORY}/actions/runs/17"
    assert (whole.job.commit, whole.job.started_by) == (MERGE, "carol")
    request = whole.pull_request
    assert request is not None
    assert (request.number, request.author, request.merged_by, request.merge_commit) == (NUMBER, "author", "merger", MERGE)
    assert request.approvers == ("alice", "dora")
    assert request.source == f"GitHub's REST API, /repos/{REPOSITORY}/pulls/{NUMBER} and its reviews"


def test_a_commit_that_no_merge_made_has_no_pull_request(github: GitHubServer) -> None:
    (facts,) = run_context(job(github, GITHUB_SHA=HEAD))
    assert facts.pull_request is None


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}])
def test_outside_of_a_job_there_is_nothing(variables: Mapping[str, str]) -> None:
    assert list(run_context(variables)) == []


def test_a_forge_that_refuses_costs_a_warning_and_what_the_variables_state_stays(
    github: GitHubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    github.faults = [Fault(status=403, body=b'{"message": "Resource not accessible\\u001b"}')]
    found = ContextLookup(job(github)).result()
    assert found is not None
    assert (found.job.commit, found.pull_request) == (MERGE, None)
    told = capsys.readouterr().err
    assert "warning: the record of this run lacks who approved it: cannot look for the pull request" in told
    assert "\x1b" not in told
    assert TOKEN not in told


def test_a_forge_that_never_answers_does_not_hold_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    answered = threading.Event()

    def slow(_: Mapping[str, str]) -> Iterator[RunContext]:
        yield RunContext(job=JobFacts(source="the test"))
        answered.wait()

    found = ContextLookup({}, sources=(slow,)).result(0.05)
    answered.set()
    assert found is None or found.pull_request is None
    assert "did not answer within 0.05 s" in capsys.readouterr().err


def test_a_source_that_breaks_breaks_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_: Mapping[str, str]) -> Iterator[RunContext]:
        yield RunContext(job=JobFacts(source="the test"))
        raise KeyError("sha")

    assert ContextLookup({}, sources=(broken,)).result() == RunContext(job=JobFacts(source="the test"))
    assert "KeyError: 'sha'" in capsys.readouterr().err


def test_gitlab_names_its_approvers() -> None:
    with gitlab.gitlab_server() as server:
        server.pulls = [gitlab.merge_request(gitlab.NUMBER, HEAD, merged_as=MERGE)]
        server.approvers = ["dora", "alice"]
        variables = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": server.url,
            "CI_COMMIT_BRANCH": "main",
            "CI_COMMIT_SHA": MERGE,
            "CI_JOB_URL": "https://gitlab.example.org/jobs/3",
            "CI_PROJECT_ID": gitlab.PROJECT_ID,
            "GITLAB_TOKEN": gitlab.TOKEN,
            "GITLAB_USER_LOGIN": "carol",
        }
        *_, whole = run_context(variables)
    assert whole.pull_request is not None
    assert (whole.pull_request.approvers, whole.pull_request.merged_by) == (("alice", "dora"), "merger")
    assert (whole.job.run, whole.job.started_by) == ("https://gitlab.example.org/jobs/3", "carol")
