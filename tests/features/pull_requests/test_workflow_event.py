"""What a workflow run says of its pull request, and what a token and a repository look like."""

from __future__ import annotations

import json
import traceback

import pytest

from reconciler.errors import FileAccessError, UsageError
from reconciler.features.pull_requests.github.api import github_token
from reconciler.features.pull_requests.github.pull_requests import (
    WorkflowEvent,
    event_from_json,
    read_event,
    repository_name,
    run_link,
)
from reconciler.integrations.transport import Token

COMMIT = "a1" * 20
RUN = {"head_sha": COMMIT, "head_branch": "change", "event": "pull_request", "head_repository": {"owner": {"login": "stranger"}}}


@pytest.mark.parametrize(
    ("document", "event"),
    [
        ({"pull_request": {"number": 7, "head": {"sha": COMMIT}}}, WorkflowEvent(pull_request=7, commit=COMMIT)),
        ({"issue": {"number": 7, "pull_request": {"url": "x"}}}, WorkflowEvent(pull_request=7)),
        ({"issue": {"number": 7}}, WorkflowEvent()),
        ({"workflow_run": {**RUN, "pull_requests": [{"number": 7}]}}, WorkflowEvent(pull_request=7, commit=COMMIT)),
        ({"workflow_run": {**RUN, "pull_requests": []}}, WorkflowEvent(commit=COMMIT, head="stranger:change")),
        ({"workflow_run": {**RUN, "event": "push"}}, WorkflowEvent(commit=COMMIT, head="stranger:change", pushed=True)),
        ({"workflow_run": {}}, WorkflowEvent()),
        ({"workflow_run": None}, WorkflowEvent()),
        ({"ref": "refs/heads/main", "after": COMMIT}, WorkflowEvent(commit=COMMIT, pushed=True)),
        ({"ref": "refs/heads/main", "after": "--x"}, WorkflowEvent(pushed=True)),
        ({"pull_request": {"number": "7"}}, WorkflowEvent()),
        ({"pull_request": {"number": 7, "head": "x"}}, WorkflowEvent(pull_request=7)),
        ({}, WorkflowEvent()),
        ([], WorkflowEvent()),
        (None, WorkflowEvent()),
    ],
)
def test_the_event_names_pull_request_and_commit(document, event):
    assert event_from_json(document) == event


def test_outside_a_workflow_nothing_is_known():
    assert read_event({}) == WorkflowEvent()
    assert run_link({}) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_event_is_an_error(tmp_path, content):
    (tmp_path / "event.json").write_bytes(content)
    with pytest.raises(FileAccessError, match="is not the event"):
        read_event({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")})


def test_an_event_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileAccessError, match="cannot read"):
        read_event({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")})


def test_the_event_of_the_environment_is_read(tmp_path):
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")
    assert read_event({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}).pull_request == 7


@pytest.mark.parametrize(("run", "link"), [("12", "https://github.com/a/b/actions/runs/12"), ("12) [x](y", None), ("", None)])
def test_the_log_of_a_run_has_a_link(run, link):
    environment = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": run}
    assert run_link(environment) == link


@pytest.mark.parametrize(
    "name", ["", "a", "a/", "/b", "a/b/c", "a/..", "a/.", "a b/c", "a/b?x", "../x", "a/b\n", "ä/b", "a%2Fb/c"]
)
def test_a_repository_that_is_none_is_refused(name):
    with pytest.raises(UsageError, match="OWNER/NAME"):
        repository_name(name)


@pytest.mark.parametrize("name", ["acme/quotas", "a-b_c/.github", "A/b.c"])
def test_a_repository_is_an_owner_and_a_name(name):
    assert repository_name(name) == name


def test_a_token_shows_itself_to_nobody():
    token = Token("SECRET")
    assert "SECRET" not in f"{token} {token!r} {[token]}"
    assert token.reveal() == "SECRET"


def test_a_token_file_wins_over_the_environment_and_may_end_with_a_line_break(tmp_path):
    (tmp_path / "token").write_text("SECRET\n", encoding="utf-8")
    assert github_token({"GITHUB_TOKEN": "other"}, tmp_path / "token").reveal() == "SECRET"
    assert github_token({"GITHUB_TOKEN": " other\n"}, None).reveal() == "other"


@pytest.mark.parametrize(
    "content", [b"SECRET\r\nX-Header: 1", b"SECRET one", b"SECR\xc3\x89T", b"SECRET\x00", b"SECRET\xff", b"", b"\n"]
)
def test_what_is_no_token_is_refused_without_being_shown(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    with pytest.raises((UsageError, FileAccessError)) as error:
        github_token({}, tmp_path / "token")
    assert "SECR" not in "".join(traceback.format_exception(error.value))


def test_without_a_token_the_message_says_where_one_goes(tmp_path):
    with pytest.raises(UsageError, match=r"GITHUB_TOKEN.*--token-file"):
        github_token({}, None)
    with pytest.raises(FileAccessError, match="cannot read the file of --token-file: No such"):
        github_token({}, tmp_path / "none")
