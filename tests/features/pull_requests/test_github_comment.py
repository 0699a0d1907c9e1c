"""One comment per cluster and label, whatever people, strangers and other runs do to it meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from reconciler.errors import FileAccessError, ForgeError, UsageError
from reconciler.features.pull_requests.comment import (
    CommentOutcome,
    CommentResult,
    body_content,
    read_body,
)
from reconciler.features.pull_requests.forges import CommentTarget, PullRequestOutcome, post_comment
from reconciler.features.pull_requests.sticky_comment import (
    CommentState,
    CommentStatus,
    is_edited,
    read_marker,
    render_sticky_comment,
)
from reconciler.model.plan import Action, Change, KeyChange, Reason
from tests.builders import plan, user
from tests.fakes import FakeClock
from tests.support.comments import findings_body, plan_body
from tests.support.github_server import BOT, HEAD, NUMBER, REPOSITORY, TOKEN, Fault, GitHubServer, github_server, pull_request

STATES = tuple(CommentState)


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with github_server() as server:
        yield server


def posted(name: str) -> str:
    """A comment that another run has posted."""
    content = body_content(read_body(body(name), name="plan.json"), cluster=None, label="")
    return render_sticky_comment(content, CommentStatus(state=CommentState.PLANNED))


def body(name: str = "alice", cluster: str = "prod") -> str:
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    change = Change(entity=user(name), action=Action.UPDATE, keys=(key,))
    return plan_body(plan(change, cluster=plan().cluster.named(cluster)))


def whole(
    github: GitHubServer,
    text: str | None = None,
    state: CommentState = CommentState.PLANNED,
    *,
    label: str = "",
    cluster: str | None = None,
    commit: str | None = None,
    **target: object,
) -> PullRequestOutcome:
    content = None if text is None else body_content(read_body(text, name="plan.json"), cluster=cluster, label=label)
    defaults: dict[str, object] = {"pull_request": NUMBER}
    given = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": github.url}
    environment = {**given, **target.pop("environment", {})}  # type: ignore[dict-item]  # a test names fields as it likes
    return post_comment(
        CommentTarget(environment=environment, **{**defaults, **target}),  # type: ignore[arg-type]  # the same
        content,
        CommentStatus(state=state, commit=commit),
        cluster=cluster,
        label=label,
        clock=FakeClock(),
        patience=60.0,
    )


def post(
    github: GitHubServer, text: str | None = None, state: CommentState = CommentState.PLANNED, **more: object
) -> CommentOutcome:
    outcome = whole(github, text, state, **more).comment  # type: ignore[arg-type]  # the same
    assert outcome is not None
    return outcome


def only(github: GitHubServer) -> str:
    (comment,) = github.comments.values()
    return str(comment["body"])


def state_of(text: str) -> CommentState | None:
    marker = read_marker(text)
    assert marker is not None
    assert not is_edited(text)
    return marker.state


def test_one_comment_goes_through_all_states(github):
    github.add("a discussion", login="someone")
    first = post(github, body())
    others = [
        post(github, None, state, cluster="prod")
        for state in (CommentState.APPLYING, CommentState.FAILED, CommentState.APPLYING, CommentState.APPLIED)
    ]

    assert first.result is CommentResult.CREATED
    assert {one.result for one in others} == {CommentResult.UPDATED}
    assert {one.id for one in others} == {first.id}
    assert len(github.comments) == 2
    assert state_of(github.body(int(first.id or 0))) is CommentState.APPLIED
    assert "`alice`" in github.body(int(first.id or 0)), "the plan is kept"


def test_the_same_again_is_not_written_again(github):
    post(github, body())
    again = post(github, body())

    assert again.result is CommentResult.UNCHANGED
    assert github.seen("PATCH") == []


def test_clusters_and_labels_have_comments_of_their_own(github):
    ids = {
        post(github, body(cluster=cluster), label=label).id for cluster in ("prod", "Prod", "test") for label in ("", "a", "b")
    }

    assert len(ids) == len(github.comments) == 9


def test_it_is_found_on_the_last_page(github):
    github.per_page = 2
    post(github, body())
    for _ in range(7):
        github.add("talk", login="someone")
    github.comments = dict(sorted(github.comments.items(), reverse=True))

    assert post(github, body("bob")).result is CommentResult.UPDATED


def test_a_marker_pasted_by_a_stranger_is_never_taken(github):
    mine = post(github, body())
    forged = github.body(int(mine.id or 0))
    github.comments.clear()
    strange = github.add(forged, login="mallory")
    deleted = github.add(forged, login=None)

    outcome = post(github, body("bob"))

    assert outcome.result is CommentResult.CREATED
    assert github.body(strange) == github.body(deleted) == forged
    assert {one.id for one in outcome.strangers} == {strange, deleted}
    assert {one.path for one in github.seen("PATCH") + github.seen("DELETE")} == set()


def test_a_name_in_another_case_is_the_same_account(github):
    github.add(posted("bob"), login=BOT)

    assert post(github, body(), author="GitHub-Actions[bot]").result is CommentResult.UPDATED


def test_a_token_of_a_person_is_asked_whose_it_is(github):
    github.identity = True
    github.logins[TOKEN] = "robot"
    strange = github.add(posted("bob"), login=BOT)

    outcome = post(github, body())

    assert outcome.author == "robot"
    assert [one.id for one in outcome.strangers] == [strange]
    assert post(github, body("bob")).result is CommentResult.UPDATED


def test_an_app_that_was_not_named_is_known_by_what_it_posts(github):
    github.logins[TOKEN] = "our-app[bot]"
    first = post(github, body())
    again = post(github, body("bob"))

    assert first.author == again.author == "our-app[bot]"
    assert again.id == first.id
    assert "`bob`" in only(github)


@pytest.mark.parametrize("text", [body(), body("bob"), None])
def test_an_edited_comment_is_rewritten_and_says_so(github, text):
    first = int(post(github, body()).id or 0)
    github.edit(first, github.body(first).replace("alice", "mallory") + "\n\nLGTM @team")

    outcome = post(github, text, CommentState.APPLIED if text is None else CommentState.PLANNED, cluster="prod")

    assert outcome.edited
    assert outcome.id == first
    assert "mallory" not in only(github)
    assert "LGTM" not in only(github)
    assert "A user had edited this comment" in only(github)
    assert state_of(only(github)) is outcome.state


def test_line_ends_of_a_form_are_no_edit(github):
    first = int(post(github, body()).id or 0)
    github.edit(first, github.body(first))

    assert not post(github, None, CommentState.APPLYING, cluster="prod").edited


def test_a_comment_whose_marker_was_removed_is_somebody_s_text_now(github):
    first = int(post(github, body()).id or 0)
    github.edit(first, "mine")

    assert post(github, body()).result is CommentResult.CREATED
    assert github.body(first) == "mine"


def test_comments_that_are_there_twice_are_folded_into_the_oldest(github):
    ids = [github.add(posted(name)) for name in ("a", "b", "c")]
    stranger = github.add(posted("d"), login="someone")

    outcome = post(github, body("new"))

    assert outcome.id == ids[0]
    assert outcome.folded == tuple(ids[1:])
    assert set(github.comments) == {ids[0], stranger}


def test_two_runs_at_once_leave_one_comment(github):
    together = threading.Barrier(2, timeout=20)

    def meet(request) -> None:
        if request.method == "POST":
            together.wait()

    github.before = meet
    outcomes: list[CommentOutcome] = []
    runs = [threading.Thread(target=lambda name=name: outcomes.append(post(github, body(name)))) for name in ("a", "b")]
    for one in runs:
        one.start()
    for one in runs:
        one.join(timeout=30)

    assert len(outcomes) == 2
    assert len(github.seen("POST")) == 2
    assert state_of(only(github)) is CommentState.PLANNED


def test_a_comment_posted_twice_since_an_answer_was_lost_is_one(github):
    github.faults.append(Fault(method="POST", done=True))

    post(github, body())

    assert len(github.seen("POST")) == 2
    assert len(github.comments) == 1


def test_a_comment_that_somebody_removes_meanwhile_is_posted_anew(github):
    first = int(post(github, body()).id or 0)

    def remove(request) -> None:
        if request.method == "PATCH":
            github.comments.pop(first, None)

    github.before = remove

    assert post(github, body("bob")).result is CommentResult.CREATED
    assert "`bob`" in only(github)


def test_a_comment_that_is_always_removed_is_given_up_on(github):
    def add_again(request) -> None:
        github.comments.clear()
        if request.method == "GET":
            github.add(posted("other"))

    github.before = add_again

    with pytest.raises(ForgeError, match="as often as it is written"):
        post(github, body())


def test_an_empty_plan_is_no_reason_for_a_new_comment_but_updates_one(github):
    empty = plan_body(plan())

    left = post(github, empty)
    post(github, body())
    updated = post(github, empty)

    assert (left.result, left.id) == (CommentResult.LEFT, None)
    assert "nothing would change" in left.reason
    assert updated.result is CommentResult.UPDATED
    assert "No changes" in only(github)


def test_the_plan_of_an_older_commit_never_replaces_that_of_the_newest(github):
    post(github, body("new"), commit=HEAD)
    late = post(github, body("old"), commit="b2" * 20)

    assert (late.result, late.state) == (CommentResult.LEFT, CommentState.OUTDATED)
    assert "newer commit" in late.reason
    assert "`new`" in only(github)


def test_the_comment_of_the_older_commit_becomes_outdated(github):
    post(github, body("old"), commit=HEAD)
    github.pulls[0] = pull_request(NUMBER, "c3" * 20)

    outcome = post(github, body("old"), commit=HEAD)

    assert outcome.state is CommentState.OUTDATED
    assert state_of(only(github)) is CommentState.OUTDATED
    assert "`old`" in only(github)


def test_the_first_digits_of_a_commit_are_enough(github):
    assert post(github, body(), commit=HEAD[:7]).state is CommentState.PLANNED


def test_nothing_is_posted_only_to_be_outdated(github):
    assert post(github, None, CommentState.OUTDATED, cluster="prod").result is CommentResult.LEFT
    assert github.comments == {}


def test_a_state_without_a_plan_is_posted_too(github):
    post(github, None, CommentState.APPLIED, cluster="prod")

    assert "Kafka quotas for `prod`: " in only(github)
    assert state_of(only(github)) is CommentState.APPLIED


def test_findings_of_no_cluster_take_the_comment_of_the_cluster_that_is_given(github):
    post(github, body())
    outcome = post(github, findings_body([]), cluster="prod")

    assert outcome.result is CommentResult.UPDATED
    assert "Kafka quotas for `prod`: " in only(github)


def test_findings_may_be_about_the_whole_repository(github):
    first = post(github, findings_body([]))
    again = post(github, None, CommentState.FAILED)

    assert first.cluster is None
    assert again.id == first.id


@pytest.mark.parametrize("text", ["hello", "x" * 70_000, "<!-- kafka-quotas:plan -->"])
def test_any_other_text_is_not_posted(text):
    with pytest.raises(FileAccessError, match=r"plan\.json"):
        body_content(read_body(text, name="plan.json"), cluster=None, label="")


def test_a_body_about_another_cluster_is_not_posted():
    with pytest.raises(FileAccessError, match="about cluster 'prod', not 'test'"):
        body_content(read_body(body(), name="plan.json"), cluster="test", label="")


def test_what_was_posted_is_no_body(github):
    post(github, body())

    with pytest.raises(FileAccessError):
        body_content(read_body(only(github), name="plan.json"), cluster=None, label="")


def event(tmp_path, document: str) -> dict[str, str]:
    (tmp_path / "event.json").write_text(document, encoding="utf-8")
    return {"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}


def test_after_a_merge_the_pull_request_is_found_by_the_commit(github, tmp_path):
    merged = "d4" * 20
    github.pulls = [pull_request(NUMBER, HEAD, merged_as=merged), pull_request(8, merged, merged_as="e" * 40)]
    pushed = event(tmp_path, f'{{"ref": "refs/heads/main", "after": "{merged}"}}')

    outcome = whole(github, None, CommentState.APPLIED, cluster="prod", pull_request=None, environment=pushed)

    assert outcome.pull_request == NUMBER
    assert f"commit `{merged[:7]}`" in only(github)


def test_a_plan_of_a_pushed_commit_is_not_outdated_on_the_pull_request_that_is_given(github, tmp_path):
    pushed = event(tmp_path, f'{{"ref": "refs/heads/main", "after": "{"d4" * 20}"}}')

    assert post(github, body(), environment=pushed).state is CommentState.PLANNED


def test_a_commit_that_belongs_to_no_pull_request_is_no_failure(github, tmp_path):
    pushed = event(tmp_path, f'{{"ref": "refs/heads/main", "after": "{"d4" * 20}"}}')

    outcome = whole(github, body(), pull_request=None, environment=pushed)

    assert outcome.comment is None
    assert "belongs to no pull request" in outcome.reason


def test_the_pull_request_of_a_fork_is_found_by_its_branch_and_commit(github, tmp_path):
    github.pulls = [pull_request(NUMBER, HEAD, label="stranger:a b&c"), pull_request(8, "9" * 40, label="stranger:a b&c")]
    run = f'{{"workflow_run": {{"head_sha": "{HEAD}", "head_branch": "a b&c", "event": "pull_request", "pull_requests": [], '
    run += '"head_repository": {"owner": {"login": "stranger"}}}}'

    assert whole(github, body(), pull_request=None, environment=event(tmp_path, run)).pull_request == NUMBER


def test_more_than_one_pull_request_is_for_the_user_to_tell(github, tmp_path):
    github.pulls = [pull_request(number, HEAD, merged_as="d4" * 20) for number in (NUMBER, 8)]
    pushed = event(tmp_path, f'{{"ref": "refs/heads/main", "after": "{"d4" * 20}"}}')

    with pytest.raises(UsageError, match=r"\(7, 8\)\. Give its number with --pull-request"):
        whole(github, body(), pull_request=None, environment=pushed)


def test_without_a_word_about_the_pull_request_the_user_is_asked(github):
    with pytest.raises(UsageError, match="which pull request"):
        whole(github, body(), pull_request=None)
    with pytest.raises(UsageError, match="the repository is not known"):
        whole(github, body(), environment={"GITHUB_REPOSITORY": ""})
