"""``comment`` as a workflow or a job runs it, with a server like GitHub's or GitLab's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.documents import APPLY_REPORT
from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    KeyChange,
    Reason,
)
from tests.builders import plan, user
from tests.features.pull_requests.conftest import comment, gitlab_job
from tests.support import gitlab_server as gitlab
from tests.support.command import invoke
from tests.support.comments import plan_body
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, TOKEN, Fault
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github

APPLIED = ChangeStatus.APPLIED


def report(folder: Path, *statuses: ChangeStatus, result: ApplyResult = ApplyResult.DONE, **fields: Any) -> str:
    keys = (KeyChange(key="producer_byte_rate", before=1024.0, after=2048.0, reason=Reason.VALUE_DIFFERS),)
    changes = [Change(entity=user(f"u{number}"), action=Action.UPDATE, keys=keys) for number in range(len(statuses))]
    outcomes = tuple(ChangeOutcome(change=change, status=each) for change, each in zip(changes, statuses, strict=True))
    made = ApplyReport(cluster=ClusterIdentity(name="prod"), result=result, outcomes=outcomes, verified=True, **fields)
    (folder / "report.json").write_text(APPLY_REPORT.text(made))
    return "report.json"


def test_from_the_plan_to_the_end_of_apply(folder, github):
    first = comment(folder, github, "plan.json")
    applying = comment(folder, github, "--state", "applying", "--cluster", "prod")
    document = report(folder, APPLIED, seconds=8.2, brokers=3)
    applied = comment(folder, github, "--report", document, "--cluster", "prod")

    assert (first.code, applying.code, applied.code) == (0, 0, 0)
    ((number, text),) = [(number, one["body"]) for number, one in github.comments.items()]
    assert applied.out == (
        f"The comment on pull request {NUMBER} of {REPOSITORY} is updated. Its state is applied: "
        f"https://github.example.org/{REPOSITORY}/pull/{NUMBER}#issuecomment-{number}\n"
    )
    assert "### ✅ Kafka quotas for `prod`: applied" in text
    assert "Applied: 1 entity written in 8 s, verified on 3 brokers. To undo it" in by_github(text).text()
    assert f"[Workflow run](https://github.example.org/{REPOSITORY}/actions/runs/31) · commit `{HEAD[:7]}`" in text
    assert "`alice`" in text


def test_on_gitlab_a_dry_run_prints_the_note_that_is_posted(folder):
    with gitlab.gitlab_server() as server:
        variables = gitlab_job(server.url)
        token = variables.pop("GITLAB_TOKEN")
        dry = invoke("comment", "plan.json", "--dry-run", cwd=folder, env=variables)
        assert (dry.code, dry.err, server.requests) == (0, "", [])
        first = invoke("comment", "plan.json", cwd=folder, env={**variables, "GITLAB_TOKEN": token})
        ((number, note),) = server.comments.items()

    assert dry.out == note["body"]
    assert first.out == (
        f"The comment on merge request {NUMBER} of {gitlab.PROJECT} is created. Its state is planned: "
        f"https://gitlab.example.org/{gitlab.PROJECT}/-/merge_requests/{NUMBER}#note_{number}\n"
        "The status of the commit is neutral.\n"
    )


def test_a_dry_run_needs_no_token_and_no_repository(folder):
    assert "`alice`" in invoke("comment", "plan.json", "--dry-run", cwd=folder).out
    applied = invoke("comment", "--state", "applied", "--cluster", "prod", "--dry-run", cwd=folder)
    assert "The plan of a comment that is posted already is kept, and is not shown here." in applied.err


COMMANDS = ("/close", "/merge", "/assign @all", "~label", "!17", "$3", "%milestone", "&4", "#5", "[vulnerability:7]", "^alert#2")
"""Names that GitLab's own Markdown would take for references, and lines that would be quick actions."""


@pytest.mark.parametrize("key", ["producer_byte_rate", "/close"])
@pytest.mark.parametrize("removed", [False, True])
def test_names_are_no_references_and_no_line_is_a_quick_action(folder, key, removed):
    change = KeyChange(key=key, before=1.0, after=None if removed else 2.0, reason=Reason.VALUE_DIFFERS)
    names = (*COMMANDS, "$` ", *(name for name in HOSTILE if name and name != "\ud800"))
    changes = [Change(entity=user(name), action=Action.UPDATE, keys=(change,)) for name in names]
    (folder / "plan.json").write_text(plan_body(plan(*changes)), "utf-8")

    text = invoke("comment", "plan.json", "--dry-run", cwd=folder, env={"GITLAB_CI": "true"}).out

    outside = by_github(text).outside("code", "pre")
    for reference in ("@", "~label", "!17", "$", "%milestone", "&4", "#5", "[vulnerability", "^alert"):
        assert reference not in outside
    assert not re.search(r"^\s*/\w", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("statuses", "fields", "words"),
    [
        (
            (),
            {"result": "refused", "failure_reason": "guard", "message": "guard @team"},
            "nothing was written; guard: guard @team",
        ),
        ((), {"result": "failed", "failure_reason": "unreachable"}, "nothing was written; unreachable"),
        ((APPLIED, APPLIED, ChangeStatus.FAILED), {"result": "partial"}, "not complete: 2 entities written, 1 entity failed"),
        ((), {"result": "partial"}, "not complete"),
    ],
)
def test_a_run_that_failed_says_how(folder, github, statuses, fields, words):
    result = ApplyResult(fields["result"])
    done = comment(folder, github, "plan.json", "--report", report(folder, *statuses, **{**fields, "result": result}))

    ((text),) = [one["body"] for one in github.comments.values()]
    assert done.code == 0
    assert words in by_github(text).text()
    assert "kafka-quotas plan shows what is left to do" in by_github(text).text()
    assert "@" not in by_github(text).outside("code")


def test_an_api_that_fails_is_exit_code_1_or_only_a_warning(folder, github):
    github.faults += [Fault(status=429, headers={"retry-after": "3000"})] * 2
    failed = comment(folder, github, "plan.json")
    warned = comment(folder, github, "plan.json", "--warn-only")

    assert (failed.code, warned.code) == (1, 0)
    assert f"GitHub's API at {github.url}: the rate limit is reached. Only 120 s of waiting are left" in failed.err
    assert warned.err.startswith("kafka-quotas: warning: no comment was posted: cannot read pull request 7")
    assert warned.out == ""


def test_the_token_is_in_no_output_whatever_goes_wrong(folder, github):
    github.faults.append(Fault(status=400, body=json.dumps({"message": TOKEN}).encode()))

    done = comment(folder, github, "plan.json", "-vv")

    assert done.code == 1
    assert "Traceback" in done.err, "and the token is not in it, as the function that ran this looked"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--state", "planned"),
        ("--state", "merged", "plan.json"),
        ("--state", "applied", "--report", "r.json"),
        ("plan.json", "--commit", "main"),
        ("plan.json", "--pull-request", "0"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(folder, github, arguments):
    assert comment(folder, github, *arguments).code == 64
    assert github.requests == []
