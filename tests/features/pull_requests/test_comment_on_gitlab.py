"""``comment`` in a job of GitLab, and the comment that a dry run prints for both forges."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reconciler.documents import PLAN, plan_digest
from reconciler.model.plan import Action, Change, KeyChange, Reason
from tests.builders import plan, user
from tests.support.command import Done, invoke
from tests.support.gitlab_server import BOT, HEAD, NUMBER, PROJECT, PROJECT_ID, TOKEN, gitlab_server
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github

SCHEMA = Draft202012Validator(json.loads((Path(__file__).parents[3] / "schemas/comment.v1.schema.json").read_text("utf-8")))
COMMANDS = ("/close", "/merge", "/assign @all", "~label", "!17", "$3", "%milestone", "&4", "#5", "[vulnerability:7]", "^alert#2")
"""Names that GitLab's own Markdown would take for references, and lines that would be quick actions."""
BETWEEN_DOLLARS = "$` "


def save_plan(folder: Path, *names: str, key: str = "producer_byte_rate", removed: bool = False) -> None:
    change = KeyChange(key=key, before=1.0, after=None if removed else 2.0, reason=Reason.VALUE_DIFFERS)
    changes = [Change(entity=user(name), action=Action.UPDATE, keys=(change,)) for name in names]
    made = plan(*changes)

    made = dataclasses.replace(made, digest=plan_digest(made.cluster.id, changes))
    (folder / "plan.json").write_text(PLAN.text(made), encoding="utf-8")


def job(url: str, **more: str) -> dict[str, str]:
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": url,
        "CI_PROJECT_ID": PROJECT_ID,
        "CI_PROJECT_PATH": PROJECT,
        "CI_PROJECT_URL": f"https://gitlab.example.org/{PROJECT}",
        "CI_JOB_URL": f"https://gitlab.example.org/{PROJECT}/-/jobs/31",
        "CI_COMMIT_SHA": HEAD,
        "CI_MERGE_REQUEST_IID": str(NUMBER),
        **more,
    }


def comment(folder: Path, *arguments: str, **variables: str) -> Done:
    done = invoke("comment", *arguments, cwd=folder, env=variables)
    assert TOKEN not in done.out + done.err
    return done


def test_a_plan_becomes_a_note_and_the_command_names_it(tmp_path):
    save_plan(tmp_path, "alice")
    with gitlab_server() as gitlab:
        first = comment(tmp_path, "plan.json", "--format", "json", **job(gitlab.url, GITLAB_TOKEN=TOKEN))
        again = comment(tmp_path, "--state", "applying", "--cluster", "prod", **job(gitlab.url, GITLAB_TOKEN=TOKEN))
        ((number, note),) = gitlab.notes.items()

    SCHEMA.validate(first.json())
    document = first.json()
    assert [document[key] for key in ("forge", "repository", "pull_request", "result", "author")] == [
        "gitlab",
        PROJECT,
        NUMBER,
        "created",
        BOT,
    ]
    assert again.out == (
        f"The comment on merge request {NUMBER} of {PROJECT} is updated. Its state is applying: "
        f"https://gitlab.example.org/{PROJECT}/-/merge_requests/{NUMBER}#note_{number}\n"
    )
    assert "`alice`" in note["body"]


def test_a_dry_run_prints_what_would_be_posted_and_asks_nothing(tmp_path):
    save_plan(tmp_path, "alice")
    with gitlab_server() as gitlab:
        variables = job(gitlab.url)
        dry = comment(tmp_path, "plan.json", "--dry-run", **variables)
        assert (dry.code, dry.err, gitlab.requests) == (0, "", [])
        document = comment(tmp_path, "plan.json", "--dry-run", "--format", "json", **variables).json()
        comment(tmp_path, "plan.json", **variables, GITLAB_TOKEN=TOKEN)
        ((note),) = gitlab.notes.values()

    SCHEMA.validate(document)
    assert dry.out == document["body"] == note["body"]
    assert (document["result"], document["forge"]) == ("dry_run", "gitlab")


def test_a_dry_run_for_github_needs_no_token_and_no_repository(tmp_path):
    save_plan(tmp_path, "alice")

    done = comment(tmp_path, "plan.json", "--dry-run")
    document = comment(tmp_path, "plan.json", "--dry-run", "--format", "json").json()
    applied = comment(tmp_path, "--state", "applied", "--cluster", "prod", "--dry-run")

    assert (done.code, done.out.startswith("<!-- kafka-quotas:plan")) == (0, True)
    SCHEMA.validate(document)
    assert (document["forge"], document["repository"]) == ("github", None)
    assert "The plan of a comment that is posted already is kept, and is not shown here." in applied.err


@pytest.mark.parametrize("removed", [False, True])
def test_names_are_no_references_and_no_line_is_a_quick_action(tmp_path, removed):
    save_plan(tmp_path, *COMMANDS, BETWEEN_DOLLARS, *(name for name in HOSTILE if name and name != "\ud800"), removed=removed)

    text = comment(tmp_path, "plan.json", "--dry-run", "--forge", "gitlab").out

    outside = by_github(text).outside("code", "pre")
    for reference in ("@all", "~label", "!17", "$3", "%milestone", "&4", "#5", "[vulnerability", "^alert"):
        assert reference not in outside
    assert "$" not in outside, "a code span between dollar signs would be a formula"
    assert not re.search(r"^\s*/\w", text, re.MULTILINE)


def test_a_key_of_the_cluster_is_no_quick_action_either(tmp_path):
    save_plan(tmp_path, "alice", "bob", key="/close", removed=True)

    text = comment(tmp_path, "plan.json", "--dry-run", "--forge", "gitlab").out

    assert "/close" in text
    assert not re.search(r"^\s*/\w", text, re.MULTILINE)


def test_the_forge_of_the_job_is_taken_unless_another_is_given(tmp_path):
    save_plan(tmp_path, "alice")
    with gitlab_server() as gitlab:
        other = comment(tmp_path, "plan.json", "--forge", "github", **job(gitlab.url, GITLAB_TOKEN=TOKEN))
        assert (other.code, gitlab.requests) == (64, [])
    assert "the repository is not known. Set GITHUB_REPOSITORY to OWNER/NAME" in other.err


def test_a_token_on_the_command_line_is_refused_for_gitlab_too(tmp_path):
    save_plan(tmp_path, "alice")
    done = comment(tmp_path, "plan.json", "--token", TOKEN, **job("http://127.0.0.1:9/api/v4"))
    assert done.code == 64
    assert "GITLAB_TOKEN" in done.err
