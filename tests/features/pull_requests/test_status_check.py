"""The status of a cluster on a commit: never one that lets a merge pass which ``apply`` would refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.documents import BACKTEST
from reconciler.features.pull_requests.comment_verdict import Conclusion
from reconciler.features.pull_requests.plan_comment import plan_comment
from reconciler.model import BacktestReport, Verdict
from reconciler.model.finding import Finding, Severity
from reconciler.model.plan import GuardResult, GuardStatus, KeptEntity, Plan
from tests.builders import plan, user
from tests.features.pull_requests.conftest import comment, gitlab_job, raised
from tests.features.pull_requests.test_comment_with_backtest import HIT, RULE
from tests.support import gitlab_server as gitlab
from tests.support.backtest_reports import report_of, verdict
from tests.support.command import invoke
from tests.support.comments import plan_body
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, Fault, GitHubServer, pull_request

GUARD = GuardResult(
    id="large-reduction",
    status=GuardStatus.NEEDS_ACCEPTANCE,
    measured="1",
    limit="0",
    set_in="built in",
    message="It trips.",
    advice="To accept, pass --accept large-reduction.",
)
ERROR = Finding(id="bad", severity=Severity.ERROR, message="wrong")
NAME = "kafka-quotas/prod"


def changed(*guards: GuardResult, **more: Any) -> Plan:
    return plan(raised("alice"), guards=guards, **more)


CLEAR = report_of(verdict(), cluster="prod")


@pytest.mark.parametrize(
    ("found", "report", "wanted"),
    [
        (changed(findings=(ERROR,)), CLEAR, Conclusion.FAILURE),
        (changed(), report_of(HIT, rules=(RULE,), cluster="prod"), Conclusion.FAILURE),
        (changed(GUARD), CLEAR, Conclusion.ACTION_REQUIRED),
        (changed(GUARD), None, Conclusion.ACTION_REQUIRED),
        (changed(), None, Conclusion.NEUTRAL),
        (changed(), report_of(HIT, cluster="prod"), Conclusion.NEUTRAL),
        (changed(), report_of(verdict(verdict=Verdict.INCONCLUSIVE), cluster="prod"), Conclusion.NEUTRAL),
        (plan(kept=(KeptEntity(entity=user("bob"), quotas={"request_percentage": 5.0}, since="main:a.yaml:3:5"),)), None,
         Conclusion.NEUTRAL),
        (changed(), CLEAR, Conclusion.SUCCESS),
        (changed(replace(GUARD, status=GuardStatus.ACCEPTED, advice=None)), CLEAR, Conclusion.SUCCESS),
        (plan(), None, Conclusion.SUCCESS),
    ],
)  # fmt: skip
def test_what_apply_would_refuse_never_passes(found: Plan, report: BacktestReport | None, wanted: Conclusion) -> None:
    check = plan_comment(found, report=report).check
    assert check is not None
    assert check.conclusion is wanted
    assert check.passes <= found.applyable


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "plan.json").write_text(plan_body(changed(GUARD)))
    (folder / "backtest.json").write_text(BACKTEST.text(CLEAR))
    return folder


def test_the_planned_commit_is_red_and_green_once_the_guard_is_gone(folder: Path, github: GitHubServer) -> None:
    done = comment(folder, github, "plan.json")
    assert done.out.splitlines()[1] == "The status of the commit is action_required."
    (run,) = github.checks
    assert (run["name"], run["head_sha"], run["status"], run["conclusion"]) == (NAME, HEAD, "completed", "action_required")
    assert run["details_url"] == f"https://github.example.org/{REPOSITORY}/pull/{NUMBER}#issuecomment-1001"
    assert run["output"]["title"] == "Needs acceptance"
    assert "**1 guard needs acceptance**: `large-reduction`." in run["output"]["summary"]
    (folder / "plan.json").write_text(plan_body(changed()))
    comment(folder, github, "plan.json", "--backtest", "backtest.json")
    assert github.status(NAME) == "success", "a rerun of the same commit has the last word"


def test_a_commit_without_a_plan_fails_and_one_that_changes_nothing_passes_without_a_comment(
    folder: Path, github: GitHubServer
) -> None:
    assert comment(folder, github, "--state", "plan-failed", "--cluster", "prod", "--if-there").code == 0
    assert github.status(NAME) == "failure"
    assert comment(folder, github, "--state", "not-changed", "--cluster", "prod").code == 0
    assert github.status(NAME) == "success"
    assert github.comments == {}


def test_the_status_is_that_of_the_commit_which_was_planned(folder: Path, github: GitHubServer) -> None:
    github.pulls = [pull_request(NUMBER, "c3" * 20)]
    comment(folder, github, "plan.json")
    assert github.status(NAME) == "action_required"
    assert github.status(NAME, "c3" * 20) is None, "a push while the job ran has its own job"
    comment(folder, github, "--state", "applied", "--cluster", "prod")
    assert len(github.checks) == 1, "after the merge the status stays"


def test_a_pull_request_from_a_fork_gets_no_status(folder: Path, github: GitHubServer) -> None:
    github.pulls = [pull_request(NUMBER, HEAD, label="stranger:change")]
    done = comment(folder, github, "plan.json")
    assert ("is created" in done.out, "status" in done.out) == (True, False)
    assert github.checks == []


def test_a_token_that_may_not_write_checks_is_a_warning_that_names_the_permission(folder: Path, github: GitHubServer) -> None:
    github.checking = False
    done = comment(folder, github, "plan.json")
    assert done.code == 0
    assert "warning: No status was set: cannot set the status kafka-quotas/prod of commit" in done.err
    assert "checks: write" in done.err
    assert "GitHub asks for the permission checks=write" in done.err
    assert len(github.comments) == 1


@pytest.mark.parametrize("status", [403, 500])
def test_a_comment_that_cannot_be_posted_leaves_no_old_status(folder: Path, github: GitHubServer, status: int) -> None:
    github.faults = [Fault(status=status, method="POST")] * (4 if status == 500 else 1)
    done = comment(folder, github, "plan.json", "--warn-only")
    assert (done.code, github.comments) == (0, {})
    assert "no comment was posted" in done.err
    assert github.status(NAME) == "action_required"


def test_on_gitlab_a_guard_fails_the_external_job_and_a_neutral_result_passes(folder: Path) -> None:
    with gitlab.gitlab_server() as server:
        variables = {**gitlab_job(server.url), "CI_PIPELINE_ID": "77"}
        assert invoke("comment", "plan.json", cwd=folder, env=variables).code == 0
        sent = server.statuses[HEAD, NAME]
        assert (sent["state"], sent["description"], sent["pipeline_id"]) == ("failed", "Needs acceptance", "77")
        (folder / "plan.json").write_text(plan_body(changed()))
        assert invoke("comment", "plan.json", cwd=folder, env=variables).code == 0
        assert server.status(NAME) == "success"
        server.checking = False
        weak = invoke("comment", "plan.json", cwd=folder, env=variables)
        assert weak.code == 0
        assert "for statuses Developer" in weak.err
