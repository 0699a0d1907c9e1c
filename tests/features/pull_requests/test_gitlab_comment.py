"""One note per cluster and label on a merge request, whatever GitLab answers and whatever other users write."""

from __future__ import annotations

import datetime
import ssl
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.errors import FileAccessError, ForgeError, UsageError
from reconciler.features.pull_requests.comment import CommentOutcome, CommentResult, body_content, read_body
from reconciler.features.pull_requests.forges import CommentTarget, Forge, PullRequestOutcome, comment_links, post_comment
from reconciler.features.pull_requests.sticky_comment import (
    CommentState,
    CommentStatus,
    is_edited,
    read_marker,
    render_sticky_comment,
)
from reconciler.model.plan import Action, Change, KeyChange, Reason
from tests.builders import NOON, plan, user
from tests.fakes import FakeClock
from tests.support.certificates import Authority
from tests.support.comments import plan_body
from tests.support.github_server import Fault
from tests.support.gitlab_server import (
    BOT,
    HEAD,
    NUMBER,
    PROJECT,
    PROJECT_ID,
    TOKEN,
    GitLabServer,
    gitlab_server,
    merge_request,
)

JOB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_ID": PROJECT_ID,
    "CI_PROJECT_PATH": PROJECT,
    "CI_PROJECT_URL": f"https://gitlab.example.org/{PROJECT}",
    "CI_SERVER_URL": "https://gitlab.example.org",
    "CI_COMMIT_SHA": HEAD,
    "CI_JOB_URL": f"https://gitlab.example.org/{PROJECT}/-/jobs/31",
    "GITLAB_TOKEN": TOKEN,
}
ON_REQUEST = {"CI_MERGE_REQUEST_IID": str(NUMBER)}
ON_BRANCH = {"CI_COMMIT_BRANCH": "main"}


@pytest.fixture
def gitlab() -> Iterator[GitLabServer]:
    with gitlab_server() as server:
        yield server


def posted(name: str) -> str:
    """A comment that another run has posted."""
    content = body_content(read_body(body(name), name="plan.json"), cluster=None, label="")
    return render_sticky_comment(content, CommentStatus(state=CommentState.PLANNED))


def body(name: str = "alice", cluster: str = "prod") -> str:
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    change = Change(entity=user(name), action=Action.UPDATE, keys=(key,))
    return plan_body(plan(change, cluster=plan().cluster.named(cluster)))


def target(gitlab: GitLabServer, **variables: str) -> CommentTarget:
    return CommentTarget(forge=Forge.GITLAB, environment={**JOB, **ON_REQUEST, "CI_API_V4_URL": gitlab.url, **variables})


def whole(
    where: CommentTarget,
    text: str | None = None,
    state: CommentState = CommentState.PLANNED,
    *,
    commit: str | None = None,
    clock: FakeClock | None = None,
) -> PullRequestOutcome:
    content = None if text is None else body_content(read_body(text, name="plan.json"), cluster=None, label="")
    return post_comment(
        where,
        content,
        CommentStatus(state=state, commit=commit),
        cluster="prod",
        label="",
        clock=clock or FakeClock(),
        patience=100.0,
    )


def post(
    gitlab: GitLabServer, text: str | None = None, state: CommentState = CommentState.PLANNED, **variables: str
) -> CommentOutcome:
    outcome = whole(target(gitlab, **variables), text, state).comment
    assert outcome is not None
    return outcome


def only(gitlab: GitLabServer) -> str:
    (written,) = gitlab.notes.values()
    return str(written["body"])


def words(error: pytest.ExceptionInfo[Exception]) -> str:
    """The error's words; neither they nor the traceback have the token."""
    assert TOKEN not in "".join(traceback.format_exception(error.value))
    return str(error.value)


def test_one_note_goes_through_all_states(gitlab):
    gitlab.add("changed the description", name="someone", system=True)
    first = post(gitlab, body())
    states = (CommentState.APPLYING, CommentState.FAILED, CommentState.APPLYING, CommentState.APPLIED)
    others = [post(gitlab, None, state) for state in states]

    assert (first.result, first.author) == (CommentResult.CREATED, BOT)
    assert first.url == f"https://gitlab.example.org/{PROJECT}/-/merge_requests/{NUMBER}#note_{first.id}"
    assert {outcome.result for outcome in others} == {CommentResult.UPDATED}
    assert {outcome.id for outcome in others} == {first.id}
    text = gitlab.body(int(first.id or 0))
    marker = read_marker(text)
    assert marker is not None
    assert (marker.state, is_edited(text)) == (CommentState.APPLIED, False)
    assert "`alice`" in text, "the plan is kept"
    assert f"[Pipeline job]({JOB['CI_JOB_URL']}) · commit `{HEAD[:7]}`" in text


def test_the_same_again_is_not_written_again(gitlab):
    post(gitlab, body())

    assert post(gitlab, body()).result is CommentResult.UNCHANGED
    assert gitlab.seen("PUT") == []


def test_requests_go_to_the_project_of_the_merge_request_with_the_token_in_its_header(gitlab):
    # A pipeline of a fork's merge request runs in the fork.
    post(gitlab, body(), CI_PROJECT_ID="99", CI_PROJECT_PATH="fork/quotas", CI_MERGE_REQUEST_PROJECT_ID=PROJECT_ID)

    assert {request.headers["private-token"] for request in gitlab.requests} == {TOKEN}
    (created,) = gitlab.seen("POST")
    assert created.path == f"/api/v4/projects/{PROJECT_ID}/merge_requests/{NUMBER}/notes"
    assert created.headers["content-type"] == "application/json; charset=utf-8"


def test_a_path_of_a_project_is_one_part_of_the_address(gitlab):
    where = CommentTarget(
        forge=Forge.GITLAB,
        environment={"GITLAB_TOKEN": TOKEN, "CI_API_V4_URL": gitlab.url, "CI_PROJECT_ID": PROJECT},
        pull_request=NUMBER,
    )
    assert whole(where, body()).repository == PROJECT
    assert "projects/acme%2Fplatform%2Fquotas/merge_requests" in gitlab.seen("POST")[0].path


def test_the_note_is_found_on_the_last_page(gitlab):
    gitlab.per_page = 2
    for number in range(7):
        gitlab.add(f"talk {number}", name="someone")
    post(gitlab, body())

    assert post(gitlab, body("bob")).result is CommentResult.UPDATED
    assert len(gitlab.notes) == 8


def test_a_marker_pasted_by_another_author_is_never_taken(gitlab):
    own = post(gitlab, body())
    forged = gitlab.body(int(own.id or 0))
    gitlab.notes.clear()
    strange = gitlab.add(forged, name="mallory")

    outcome = post(gitlab, body("bob"))

    assert outcome.result is CommentResult.CREATED
    assert gitlab.body(strange) == forged
    assert [stranger.id for stranger in outcome.strangers] == [strange]
    assert gitlab.seen("PUT") + gitlab.seen("DELETE") == []


def test_notes_that_are_there_twice_are_folded_into_the_oldest(gitlab):
    ids = [gitlab.add(posted(name)) for name in ("a", "b", "c")]

    outcome = post(gitlab, body("new"))

    assert (outcome.id, outcome.folded) == (ids[0], tuple(ids[1:]))
    assert set(gitlab.notes) == {ids[0]}


def test_a_note_that_is_removed_meanwhile_is_posted_anew(gitlab):
    first = int(post(gitlab, body()).id or 0)

    def remove(request) -> None:
        if request.method == "PUT":
            gitlab.notes.pop(first, None)

    gitlab.before = remove

    assert post(gitlab, body("bob")).result is CommentResult.CREATED
    assert "`bob`" in only(gitlab)


def test_the_plan_of_an_older_commit_never_replaces_that_of_the_newest(gitlab):
    post(gitlab, body("new"))
    late = post(gitlab, body("old"), CI_COMMIT_SHA="b2" * 20)

    assert (late.result, late.state) == (CommentResult.LEFT, CommentState.OUTDATED)
    assert "`new`" in only(gitlab)


def test_a_pipeline_for_merged_results_is_about_the_commit_of_the_branch(gitlab):
    outcome = post(gitlab, body(), CI_COMMIT_SHA="b2" * 20, CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=HEAD)

    assert outcome.state is CommentState.PLANNED
    assert f"commit `{HEAD[:7]}`" in only(gitlab)


@pytest.mark.parametrize("field", ["merged_as", "squashed_as"])
def test_after_a_merge_the_merge_request_is_found_by_the_commit(gitlab, field):
    merged = "d4" * 20
    gitlab.merge_requests = [merge_request(NUMBER, HEAD, **{field: merged}), merge_request(8, merged)]
    where = target(gitlab, CI_COMMIT_SHA=merged, CI_MERGE_REQUEST_IID="", **ON_BRANCH)

    outcome = whole(where, None, CommentState.APPLIED)

    assert outcome.pull_request == NUMBER
    assert f"commit `{merged[:7]}`" in only(gitlab)


def test_a_commit_that_belongs_to_no_merge_request_is_not_a_failure(gitlab):
    outcome = whole(target(gitlab, CI_COMMIT_SHA="d4" * 20, CI_MERGE_REQUEST_IID="", **ON_BRANCH), body())

    assert outcome.comment is None
    assert outcome.reason == f"commit {'d4' * 20} belongs to no merge request"


def test_two_merged_requests_of_one_commit_are_for_the_user_to_choose(gitlab):
    merged = "d4" * 20
    gitlab.merge_requests = [merge_request(number, HEAD, merged_as=merged) for number in (NUMBER, 8)]

    with pytest.raises(UsageError, match=r"\(7, 8\)\. Give its number with --merge-request"):
        whole(target(gitlab, CI_COMMIT_SHA=merged, CI_MERGE_REQUEST_IID="", **ON_BRANCH), body())


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ({"CI_PROJECT_ID": ""}, "the project is not known"),
        ({"CI_MERGE_REQUEST_IID": ""}, "which merge request"),
        ({"GITLAB_TOKEN": ""}, "GITLAB_TOKEN has no token"),
        ({"CI_PROJECT_ID": "a b"}, "GROUP/NAME or its number"),
        ({"CI_API_V4_URL": "http://gitlab.example.org/api/v4"}, "must begin with https://"),
    ],
)
def test_a_job_without_what_is_needed_is_a_usage_error(gitlab, missing, expected):
    with pytest.raises(UsageError, match=expected):
        whole(target(gitlab, **missing), body())


@pytest.mark.parametrize(
    ("change", "status", "expected"),
    [
        ({"GITLAB_TOKEN": "glpat-of-another"}, 401, "the server refuses the token"),
        ({"CI_PROJECT_ID": "404"}, 404, "404 Project Not Found"),
        ({"CI_MERGE_REQUEST_IID": "8"}, 404, "the project, merge request or note does not exist"),
    ],
)
def test_a_refusal_ends_in_one_sentence_with_gitlab_s_reason(gitlab, change, status, expected):
    with pytest.raises(ForgeError) as error:
        whole(target(gitlab, **change), body())

    assert error.value.status == status
    assert expected in words(error)
    assert "\n" not in words(error)


def test_a_token_that_may_only_read_is_an_error_with_the_needed_scope(gitlab):
    gitlab.writes = False

    with pytest.raises(ForgeError) as error:
        post(gitlab, body())

    assert "the token needs the scope api" in words(error)
    assert "insufficient_scope; The request requires higher privileges" in words(error)
    assert gitlab.notes == {}


def test_reasons_by_field_are_named(gitlab):
    gitlab.faults.append(Fault(method="POST", status=400, body=b'{"message": {"note": ["is too long", "@all \\u202e"]}}'))

    with pytest.raises(ForgeError) as error:
        post(gitlab, body())

    assert "GitLab does not take this (HTTP status 400: note is too long; note @all \\u202e)" in words(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"ratelimit-reset": str(int((NOON + datetime.timedelta(seconds=30)).timestamp()))}, 31),
        ({}, 60),
    ],
)
def test_a_rate_limit_is_waited_for_as_long_as_the_server_asks(gitlab, headers, seconds):
    gitlab.faults.append(Fault(status=429, headers=headers, body=b"Retry later\n"))
    clock = FakeClock()

    assert whole(target(gitlab), body(), clock=clock).comment is not None
    assert clock.seconds == seconds


def test_a_limit_beyond_the_wait_is_an_error_with_its_end(gitlab):
    gitlab.faults.append(Fault(status=429, headers={"retry-after": "3000"}))

    with pytest.raises(ForgeError, match=r"the rate limit of GitLab's API at .*in 3000 s, and only 100 s of waiting are left"):
        post(gitlab, body())


@pytest.mark.parametrize("fault", [Fault(status=502, body=b"<html>"), Fault(status=0), Fault(cut=5)])
def test_a_fault_that_passes_is_waited_for(gitlab, fault):
    gitlab.add("hello", name="someone")
    gitlab.faults += [fault] * 2

    assert post(gitlab, body()).result is CommentResult.CREATED


def test_a_note_posted_twice_since_an_answer_was_lost_is_one(gitlab):
    gitlab.faults.append(Fault(method="POST", done=True))

    post(gitlab, body())

    assert len(gitlab.seen("POST")) == 2
    assert len(gitlab.notes) == 1


def test_another_server_is_never_sent_the_token(gitlab):
    with gitlab_server() as other:
        gitlab.faults.append(Fault(status=307, headers={"location": f"{other.url}/user"}))
        with pytest.raises(ForgeError, match="sends us on to another server"):
            post(gitlab, body())
        assert other.requests == []


@pytest.mark.parametrize("answer", [b"<html>Sign in</html>", b"[]", b'{"iid": "seven"}', b""])
def test_a_page_that_is_not_gitlab_s_api_is_an_error(gitlab, answer):
    gitlab.faults += [Fault(status=200, body=answer)] * 4

    with pytest.raises(ForgeError, match="cannot read merge request 7"):
        post(gitlab, body())


def _tls(authority: Authority, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certified = authority.sign("gitlab")
    (folder / "server.pem").write_text(certified.pem(), encoding="utf-8")
    context.load_cert_chain(folder / "server.pem")
    return context


def test_a_server_of_your_own_is_trusted_by_its_certificates(tmp_path):
    authority = Authority()
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text(authority.pem, encoding="utf-8")
    with gitlab_server(_tls(authority, tmp_path)) as gitlab:
        assert post(gitlab, body(), CI_SERVER_TLS_CA_FILE=str(ca_file)).result is CommentResult.CREATED
        with pytest.raises(ForgeError, match="no trusted TLS connection"):
            post(gitlab, body())
        (tmp_path / "empty.pem").write_text("")
        with pytest.raises(FileAccessError, match="no certificates"):
            post(gitlab, body(), CI_SERVER_TLS_CA_FILE=str(tmp_path / "empty.pem"))
        with pytest.raises(FileAccessError, match="cannot read the certificates"):
            post(gitlab, body(), CI_SERVER_TLS_CA_FILE=str(tmp_path / "absent.pem"))


def test_lines_of_manifests_are_linked_as_gitlab_spells_them(gitlab):
    assert comment_links(target(gitlab)).files == f"https://gitlab.example.org/{PROJECT}/-/blob/{HEAD}"
    of_fork = target(gitlab, CI_MERGE_REQUEST_SOURCE_PROJECT_URL="https://gitlab.example.org/fork/quotas")
    assert comment_links(of_fork).files == f"https://gitlab.example.org/fork/quotas/-/blob/{HEAD}"
    other = comment_links(target(gitlab), commit="b2" * 20).files
    assert other == f"https://gitlab.example.org/{PROJECT}/-/blob/{'b2' * 20}"
