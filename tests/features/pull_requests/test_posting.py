"""One comment per cluster on both forges, whatever users, strangers and other runs do to it meanwhile."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ForgeError, UsageError
from reconciler.features.pull_requests.forge import Job
from reconciler.features.pull_requests.github import GitHub, job_of_event
from reconciler.features.pull_requests.gitlab import GitLab
from reconciler.features.pull_requests.plan_comment import body_content
from reconciler.features.pull_requests.posting import CommentOutcome, CommentRequest, CommentResult, post_comment
from reconciler.features.pull_requests.sticky_comment import CommentState, CommentStatus, read_marker, render_sticky_comment
from tests.builders import plan
from tests.fakes import FakeClock
from tests.features.pull_requests.conftest import raised
from tests.support import github_server as github
from tests.support import gitlab_server as gitlab
from tests.support.comments import findings_body, plan_body
from tests.support.github_server import HEAD, NUMBER, Fault, ForgeServer, Request

MERGED = "d4" * 20
OTHER = "b2" * 20
PLANNED = CommentState.PLANNED


def body(name: str = "alice", cluster: str = "prod") -> str:
    return plan_body(plan(raised(name), cluster=plan().cluster.named(cluster)))


def posted(name: str) -> str:
    """A comment that another run has posted."""
    return render_sticky_comment(body_content(body(name), name="x", cluster=None), CommentStatus(state=PLANNED))


@dataclass
class Post:
    """Posts to one forge's server, as a job of it does."""

    server: ForgeServer
    forge: type[GitHub | GitLab]
    environment: dict[str, str]

    def __call__(
        self, text: str | None = None, state: CommentState = PLANNED, *, cluster: str | None = "prod", **more: Any
    ) -> CommentOutcome:
        environment = {**self.environment, **more.pop("environment", {})}
        content = None if text is None else body_content(text, name="plan.json", cluster=cluster)
        job = self.forge.job(environment)
        job = dataclasses.replace(job, request=more.pop("pull_request", NUMBER))
        status = CommentStatus(state=state, commit=more.pop("commit", job.commit), link=job.link)
        wanted = CommentRequest(content=content, status=status, cluster=cluster)
        with closing(self.forge.connect(environment, clock=FakeClock(), patience=120.0)) as connected:
            return post_comment(connected, job, wanted, **more)

    @property
    def only(self) -> str:
        (comment,) = self.server.comments.values()
        return str(comment["body"])


@contextmanager
def posts_to(forge: type[GitHub | GitLab]) -> Iterator[Post]:
    if forge is GitHub:
        with github.github_server() as hub:
            given = {"GITHUB_API_URL": hub.url, "GITHUB_REPOSITORY": github.REPOSITORY, "GITHUB_TOKEN": github.TOKEN}
            yield Post(hub, forge, given)
    else:
        with gitlab.gitlab_server() as lab:
            given = {"CI_API_V4_URL": lab.url, "CI_PROJECT_ID": gitlab.PROJECT_ID, "GITLAB_TOKEN": gitlab.TOKEN}
            yield Post(lab, forge, given)


@pytest.fixture(params=[GitHub, GitLab])
def post(request: pytest.FixtureRequest) -> Iterator[Post]:
    with posts_to(request.param) as made:
        yield made


@pytest.fixture
def on_github() -> Iterator[Post]:
    with posts_to(GitHub) as made:
        yield made


def state_of(text: str) -> CommentState | None:
    marker = read_marker(text)
    assert marker is not None
    return marker.state


def test_one_comment_goes_through_all_states(post: Post):
    post.server.add("a discussion", login="someone")
    post.server.add("changed the description", login="someone", **({"system": True} if post.forge is GitLab else {}))
    first = post(body())
    states = (CommentState.APPLYING, CommentState.FAILED, CommentState.APPLYING, CommentState.APPLIED)
    again = post(body())
    assert (again.result, post.server.seen("PATCH", "PUT")) == (CommentResult.UNCHANGED, [])
    others = [post(None, state) for state in states]

    assert first.result is CommentResult.CREATED
    assert str(first.url).endswith(f"{first.id}")
    assert {one.result for one in others} == {CommentResult.UPDATED}
    assert {one.id for one in others} == {first.id}
    assert len(post.server.comments) == 3
    assert state_of(post.server.body(first.id)) is CommentState.APPLIED
    assert "`alice`" in post.server.body(first.id), "the plan is kept"
    assert len({post(body(cluster=cluster), cluster=cluster).id for cluster in ("prod", "Prod", "test")}) == 3


def test_a_marker_pasted_by_another_author_is_never_taken(post: Post):
    forged = post.server.body(post(body()).id)
    post.server.comments.clear()
    strange = {post.server.add(forged, login=login) for login in ("mallory", None)}

    outcome = post(body("bob"))

    assert outcome.result is CommentResult.CREATED
    assert {post.server.body(each) for each in strange} == {forged}
    assert post.server.seen("PATCH", "PUT", "DELETE") == []


def test_the_author_is_whose_the_token_is(on_github: Post):
    hub = on_github.server
    assert isinstance(hub, github.GitHubServer)
    hub.add(posted("bob"))
    assert on_github(body(), author="GitHub-Actions[bot]").result is CommentResult.UPDATED, "logins have no case"
    hub.comments.clear()
    hub.logins[github.TOKEN] = "our-app[bot]"
    first = on_github(body())
    assert on_github(body("bob")).id == first.id, "an app is known by what it posts"


@pytest.mark.parametrize("text", [body("bob"), None])
def test_the_plan_of_an_edited_comment_is_not_kept(post: Post, text: str | None):
    first = int(post(body()).id or 0)
    post.server.edit(first, post.server.body(first))
    post(None, CommentState.APPLYING)
    assert "`alice`" in post.only, "line ends of a form are no edit"
    post.server.edit(first, post.server.body(first).replace("alice", "mallory") + "\n\nLGTM @team")

    outcome = post(text, CommentState.APPLIED if text is None else PLANNED)

    assert outcome.id == first
    assert "mallory" not in post.only
    assert "LGTM" not in post.only
    assert ("A user had edited this comment" in post.only) is (text is None)
    assert state_of(post.only) is outcome.state


def test_comments_that_are_there_twice_are_folded_into_the_oldest(post: Post):
    ids = [post.server.add(posted(name)) for name in ("a", "b", "c")]
    stranger = post.server.add(posted("d"), login="someone")

    outcome = post(body("new"))

    assert outcome.id == ids[0]
    assert set(post.server.comments) == {ids[0], stranger}


def test_two_runs_at_once_leave_one_comment(post: Post):
    together = threading.Barrier(2, timeout=300)

    def meet(request: Request) -> None:
        if request.method == "POST":
            together.wait()

    post.server.before = meet
    runs = [threading.Thread(target=post, args=(body(name),)) for name in ("a", "b")]
    for one in runs:
        one.start()
    for one in runs:
        one.join(timeout=300)

    assert len(post.server.seen("POST")) == 2
    assert state_of(post.only) is PLANNED


def test_a_comment_that_is_removed_meanwhile_is_posted_anew(post: Post):
    first = int(post(body()).id or 0)

    def remove(request: Request) -> None:
        if request.method in ("PATCH", "PUT"):
            post.server.comments.pop(first, None)

    post.server.before = remove

    assert post(body("bob")).result is CommentResult.CREATED
    assert "`bob`" in post.only


def test_an_empty_plan_is_no_reason_for_a_new_comment_but_updates_one(post: Post):
    left = post(plan_body(plan()))
    post(body())
    updated = post(plan_body(plan()))

    assert (left.result, left.id) == (CommentResult.LEFT, None)
    assert "nothing would change" in left.reason
    assert updated.result is CommentResult.UPDATED
    assert "No changes" in post.only


def test_the_plan_of_an_older_commit_never_replaces_that_of_the_newest(post: Post):
    post(body("new"), commit=HEAD[:7])
    late = post(body("old"), commit=OTHER)

    assert (late.result, late.state) == (CommentResult.LEFT, CommentState.OUTDATED)
    assert "newer commit" in late.reason
    assert "`new`" in post.only


def test_the_comment_of_the_older_commit_becomes_outdated(post: Post):
    assert post(None, CommentState.OUTDATED).result is CommentResult.LEFT, "nothing is posted only to be outdated"
    post(body("old"), commit=HEAD)
    newer = github.pull_request if isinstance(post.server, github.GitHubServer) else gitlab.merge_request
    post.server.pulls[0] = newer(NUMBER, OTHER)

    outcome = post(body("old"), commit=HEAD)

    assert outcome.state is state_of(post.only) is CommentState.OUTDATED
    assert "`old`" in post.only


def test_a_comment_needs_no_plan_and_no_cluster(post: Post):
    post(body())
    assert post(findings_body([])).result is CommentResult.UPDATED, "findings take the comment of the cluster that is given"
    first = post(findings_body([]), cluster=None)
    assert post(None, CommentState.FAILED, cluster=None).id == first.id
    post.server.comments.clear()
    post(None, CommentState.APPLIED)
    assert "Kafka quotas for `prod`: " in post.only


def event(folder: Path, document: object) -> dict[str, str]:
    (folder / "event.json").write_text(json.dumps(document), encoding="utf-8")
    return {"GITHUB_EVENT_PATH": str(folder / "event.json")}


def pushed(post: Post, folder: Path) -> dict[str, str]:
    """The environment of a job after a push of the commit ``MERGED``."""
    if post.forge is GitHub:
        return event(folder, {"ref": "refs/heads/main", "after": MERGED})
    return {"CI_COMMIT_SHA": MERGED, "CI_COMMIT_BRANCH": "main"}


def merged(post: Post, number: int) -> dict[str, Any]:
    """A pull request that a commit ``MERGED`` is of."""
    made = github.pull_request if post.forge is GitHub else gitlab.merge_request
    return made(number, HEAD, merged_as=MERGED)


def test_after_a_merge_the_pull_request_is_found_by_the_commit(post: Post, tmp_path: Path):
    post.server.pulls = [merged(post, NUMBER)]
    job = pushed(post, tmp_path)

    outcome = post(None, CommentState.APPLIED, pull_request=None, environment=job)

    assert f" {NUMBER} of " in outcome.place
    assert f"commit `{MERGED[:7]}`" in post.only
    assert post(body(), environment=job).state is PLANNED, "that commit is not one of the pull request"
    post.server.pulls.append(merged(post, 8))
    with pytest.raises(UsageError, match=r"\(7, 8\)\. Give its number with --(pull|merge)-request"):
        post(body(), pull_request=None, environment=job)
    post.server.pulls.clear()
    nothing = post(body(), pull_request=None, environment=job)
    assert nothing.place == ""
    assert f"commit {MERGED} belongs to no " in nothing.reason


def test_the_pull_request_of_a_fork_is_found_by_its_branch_and_commit(on_github: Post, tmp_path: Path):
    label = "stranger:a b&c"
    on_github.server.pulls = [github.pull_request(NUMBER, HEAD, label=label), github.pull_request(8, "9" * 40, label=label)]
    run: dict[str, object] = {"head_sha": HEAD, "head_branch": "a b&c", "event": "pull_request", "pull_requests": []}
    run |= {"head_repository": {"owner": {"login": "stranger"}}}

    found = on_github(body(), pull_request=None, environment=event(tmp_path, {"workflow_run": run}))
    assert found.place == f"pull request {NUMBER} of {github.REPOSITORY}"


@pytest.mark.parametrize(
    ("forge", "change", "words"),
    [
        (GitHub, {}, "which pull request"),
        (GitHub, {"GITHUB_REPOSITORY": ""}, "the repository is not known"),
        *((GitHub, {"GITHUB_REPOSITORY": name}, "OWNER/NAME") for name in ("a", "a/b/c", "a/..", "a/b?x", "a/b\n")),
        (GitLab, {}, "which merge request"),
        (GitLab, {"CI_PROJECT_ID": ""}, "the project is not known"),
        (GitLab, {"CI_PROJECT_ID": "a b"}, "GROUP/NAME or its number"),
        (GitLab, {"GITLAB_TOKEN": ""}, "GITLAB_TOKEN has no token"),
        (GitLab, {"CI_API_V4_URL": "http://gitlab.example.org/api/v4"}, "must begin with https://"),
    ],
)
def test_a_job_without_what_is_needed_is_a_usage_error(forge: type[GitHub | GitLab], change: dict[str, str], words: str):
    whole = {"GITHUB_REPOSITORY": "a/b", "GITHUB_TOKEN": "x", "CI_PROJECT_ID": "1", "GITLAB_TOKEN": "x"}
    environment = {**whole, **change}
    with pytest.raises(UsageError, match=words):
        forge.connect(environment, clock=FakeClock(), patience=0.0).find(forge.job(environment))


COMMIT = "a1" * 20
RUN = {"head_sha": COMMIT, "head_branch": "change", "event": "pull_request", "head_repository": {"owner": {"login": "stranger"}}}


@pytest.mark.parametrize(
    ("document", "job"),
    [
        ({"pull_request": {"number": 7, "head": {"sha": COMMIT}}}, Job(request=7, commit=COMMIT)),
        ({"workflow_run": {**RUN, "pull_requests": [{"number": 7}]}}, Job(request=7, commit=COMMIT)),
        ({"workflow_run": {**RUN, "pull_requests": []}}, Job(commit=COMMIT, head="stranger:change")),
        ({"workflow_run": {**RUN, "event": "push"}}, Job(commit=COMMIT, head="stranger:change", pushed=True)),
        ({"workflow_run": None}, Job()),
        ({"ref": "refs/heads/main", "after": COMMIT}, Job(commit=COMMIT, pushed=True)),
        ({"ref": "refs/heads/main", "after": "--x"}, Job(pushed=True)),
        ({"pull_request": {"number": "7"}}, Job()),
        (None, Job()),
    ],
)
def test_the_event_names_pull_request_and_commit(document: object, job: Job):
    assert job_of_event(document) == job


def test_a_pipeline_of_a_fork_is_about_the_merge_request_of_the_project():
    place = "https://gitlab.example.org"
    environment = {
        "CI_PROJECT_ID": "99", "CI_PROJECT_PATH": "fork/quotas", "CI_MERGE_REQUEST_PROJECT_ID": "31", "CI_COMMIT_SHA": OTHER,
        "CI_MERGE_REQUEST_PROJECT_PATH": "acme/quotas", "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": HEAD, "CI_MERGE_REQUEST_IID": "7",
        "CI_PROJECT_URL": f"{place}/acme/quotas", "CI_MERGE_REQUEST_SOURCE_PROJECT_URL": f"{place}/fork/quotas",
    }  # fmt: skip
    job = GitLab.job(environment)
    assert job == Job(repository="31", path="acme/quotas", request=7, commit=HEAD, files=f"{place}/fork/quotas/-/blob")
    assert job.files_at(HEAD) == f"{place}/fork/quotas/-/blob/{HEAD}"


def test_requests_to_gitlab_have_the_token_in_its_header_and_the_project_in_one_part():
    with gitlab.gitlab_server() as lab:
        path = {"CI_API_V4_URL": lab.url, "CI_PROJECT_ID": gitlab.PROJECT, "GITLAB_TOKEN": gitlab.TOKEN}
        Post(lab, GitLab, path)(body())
        assert {request.headers["private-token"] for request in lab.requests} == {gitlab.TOKEN}
        assert lab.seen("POST")[0].path == f"/api/v4/projects/acme%2Fplatform%2Fquotas/merge_requests/{NUMBER}/notes"
        lab.faults.append(Fault(method="PUT", status=400, body=b'{"message": {"note": ["is too long", "@all \\u202e"]}}'))
        with pytest.raises(ForgeError, match=r"take this \(HTTP status 400: .*is too long.*@all \\u202e"):
            Post(lab, GitLab, path)(body("bob"))
        lab.writes = False
        with pytest.raises(ForgeError, match=r"needs the scope api .*insufficient_scope; The request requires higher"):
            Post(lab, GitLab, path)(body("bob"))
