"""A posted comment: its state above the plan, found again, and told from one that somebody edited."""

from __future__ import annotations

import dataclasses

import pytest

from reconciler.features.pull_requests.plan_comment import BUDGET, plan_comment
from reconciler.features.pull_requests.sticky_comment import (
    LIMIT,
    CommentState,
    CommentStatus,
    Content,
    content_for,
    is_edited,
    read_content,
    render_sticky_comment,
)
from reconciler.model.plan import Action, Change, KeyChange, Reason
from reconciler.render import size
from tests.builders import plan, user
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github, by_markdown_it

COMMIT = "a1" * 20


def change(name: str) -> Change:
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    return Change(entity=user(name), action=Action.UPDATE, keys=(key,))


def content(body: str | Content, label: str = "") -> Content:
    found = read_content(body) if isinstance(body, str) else body
    assert found is not None
    return dataclasses.replace(found, marker=dataclasses.replace(found.marker, label=label))


BODY = plan_comment(plan(change("alice")))


def test_a_planned_comment_is_the_body_between_its_heading_and_its_foot() -> None:
    text = render_sticky_comment(
        content(BODY), CommentStatus(state=CommentState.PLANNED, commit=COMMIT, link="https://example.org/a/runs/1")
    )
    lines = text.splitlines()
    assert lines[1] == "### ⚪ Kafka quotas for `prod`: not checked"
    assert lines[-1] == "[Workflow run](https://example.org/a/runs/1) · commit `a1a1a1a` · digest `00000000`"
    assert set(BODY.lines) <= set(lines)
    assert text.count("\n> [!") == 1


@pytest.mark.parametrize("state", [state for state in CommentState if state is not CommentState.PLANNED])
def test_in_every_other_state_the_plan_is_folded_and_another_command_comes_next(state: CommentState) -> None:
    text = render_sticky_comment(content(BODY), CommentStatus(state=state))
    above, _, below = text.partition("<details>")
    assert above.count("\n> [!") == 1
    assert below.count("\n> [!") == 1
    assert "not checked" not in above.splitlines()[1]
    assert by_github(text).elements.count("table") == by_markdown_it(text).elements.count("table") == 1


@pytest.mark.parametrize(
    "change_it",
    [
        lambda text: text.replace("alice", "mallory"),
        lambda text: text + "and one more line\n",
        lambda text: text.replace("not checked", "ready"),
        lambda text: text.replace('"sum"', '"gone"'),
        lambda text: text.partition("\n")[2],
    ],
)
def test_a_comment_that_somebody_changed_is_told(change_it) -> None:
    assert is_edited(change_it(render_sticky_comment(content(BODY), CommentStatus(state=CommentState.PLANNED))))


def test_the_largest_content_leaves_room_for_the_longest_state() -> None:
    most = content(plan_comment(plan(*(change(f"{n:05d}-{'x' * 100}") for n in range(5_000)))), "-" * 60)
    assert size(most.lines) <= BUDGET
    most = dataclasses.replace(most, lines=(*most.lines, "y" * (BUDGET - size(most.lines) - 1)))
    status = CommentStatus(state=CommentState.FAILED, commit="f" * 64, detail="\U0001f600" * 9_000, link=f"https://h/{'r' * 200}")
    text = render_sticky_comment(most, status, edited=True)
    assert len(text.encode()) <= LIMIT
    assert "`kafka-quotas plan` prints the whole plan" in text
    assert by_github(text).rows


def test_a_content_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="60000 is the most"):
        render_sticky_comment(
            Content(marker=content(BODY).marker, lines=("x" * LIMIT,)),
            CommentStatus(state=CommentState.PLANNED),
        )


ELEMENTS = frozenset(
    ("h3", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "a", "blockquote", "br",
     "span", "ul", "li")
)  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_strangers_wrote_stays_text_in_every_part(hostile: str) -> None:
    body = plan_comment(plan(change(hostile), cluster=plan().cluster.named(hostile or "x")))
    status = CommentStatus(state=CommentState.FAILED, detail=f"refused: {hostile}", link=f"https://example.org/{hostile}")
    text = render_sticky_comment(content(body, "a b"), status)
    again = content(text)
    assert again.lines == content(body).lines
    for seen in (by_github(text), by_markdown_it(text)):
        assert set(seen.elements) <= ELEMENTS
        assert seen.elements.count("a") <= 1
        assert "@" not in seen.outside("code")
        assert not any(mark in seen.text() for mark in "\u202e\u200b\x1b")
    assert not is_edited(text)


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://e.org/a)b", "https://e.org/>x", "https://e.org/a b", "https://@e/x", ""]
)
def test_a_link_that_is_no_plain_address_is_left_out(link: str) -> None:
    assert "Workflow run" not in render_sticky_comment(content(BODY), CommentStatus(state=CommentState.PLANNED, link=link))


def test_a_status_alone_has_a_heading_and_the_way_back() -> None:
    text = render_sticky_comment(content_for("p|@team", ""), CommentStatus(state=CommentState.APPLIED, detail="wrote 2 entities"))
    assert text.splitlines()[1:5] == [
        '### ✅ Kafka quotas for `"p|@team"`: applied',
        "",
        "> [!TIP]",
        "> Applied: wrote 2 entities. To undo it, run `kafka-quotas revert REPORT` with the report of this run.",
    ]
    assert content(text).lines == ()
