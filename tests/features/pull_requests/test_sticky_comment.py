"""A posted comment: its state above the plan, found again, and told from one that somebody edited."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from reconciler.features.pull_requests.plan_comment import BUDGET, LIMIT, plan_comment
from reconciler.features.pull_requests.sticky_comment import (
    CommentState,
    CommentStatus,
    Content,
    Marker,
    read_content,
    render_sticky_comment,
)
from reconciler.render import size
from tests.builders import plan
from tests.features.pull_requests.conftest import raised
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github, by_markdown_it

COMMIT = "a1" * 20


def posted(content: Content, **status: Any) -> str:
    return render_sticky_comment(content, CommentStatus(**{"state": CommentState.PLANNED, **status}))


BODY = plan_comment(plan(raised("alice")))


def test_a_planned_comment_is_the_body_between_its_heading_and_its_foot() -> None:
    text = posted(BODY, commit=COMMIT, link="https://example.org/a/runs/1")
    lines = text.splitlines()
    assert lines[1] == "### ⚪ Kafka quotas for `prod`: not checked"
    assert lines[-1] == "[Workflow run](https://example.org/a/runs/1) · commit `a1a1a1a` · digest `00000000`"
    assert set(BODY.lines) <= set(lines)
    assert text.count("\n> [!") == 1


@pytest.mark.parametrize("state", [state for state in CommentState if state is not CommentState.PLANNED])
def test_in_every_other_state_the_plan_is_folded_and_another_command_comes_next(state: CommentState) -> None:
    text = posted(BODY, state=state)
    above, _, below = text.partition("<details>")
    assert above.count("\n> [!") == 1
    assert below.count("\n> [!") == 1
    assert "not checked" not in above.splitlines()[1]
    assert by_github(text).elements.count("table") == by_markdown_it(text).elements.count("table") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [("alice", "mallory"), ("\n", "\none more line\n"), ("not checked", "ready"), ('"checksum": "', '"checksum": "0')],
)
def test_the_content_of_a_comment_that_a_user_changed_is_not_kept(old: str, new: str) -> None:
    text = posted(BODY)
    kept, lost = read_content(text), read_content(text.replace(old, new, 3))
    assert kept is not None
    assert lost is not None
    assert (kept.lines, len(lost.lines)) == (BODY.lines, 1)
    assert read_content(text.partition("\n")[2]) is None


def test_the_largest_content_leaves_room_for_the_longest_state() -> None:
    most = plan_comment(plan(*(raised(f"{n:05d}-{'x' * 100}") for n in range(5_000))))
    assert size(most.lines) <= BUDGET
    most = dataclasses.replace(most, lines=(*most.lines, "y" * (BUDGET - size(most.lines) - 1)))
    text = posted(
        most, state=CommentState.FAILED, commit="f" * 64, detail="\U0001f600" * 9_000, link=f"https://h/{'r' * 200}", suggested=10
    )
    assert len(text.encode()) <= LIMIT
    assert "`kafka-quotas plan` prints the whole plan" in text
    assert by_github(text).rows


ELEMENTS = frozenset(
    ("h3", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "a", "blockquote", "br",
     "span", "ul", "li")
)  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_strangers_wrote_stays_text_in_every_part(hostile: str) -> None:
    body = plan_comment(plan(raised(hostile), cluster=plan().cluster.named(hostile or "x")))
    text = posted(body, state=CommentState.FAILED, detail=f"refused: {hostile}", link=f"https://example.org/{hostile}")
    again = read_content(text)
    assert again is not None
    assert again.lines == body.lines
    for seen in (by_github(text), by_markdown_it(text)):
        assert set(seen.elements) <= ELEMENTS
        assert seen.elements.count("a") <= 1
        assert "@" not in seen.outside("code")
        assert not any(mark in seen.text() for mark in "\u202e\u200b\x1b")


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://e.org/a)b", "https://e.org/>x", "https://e.org/a b", "https://@e/x", ""]
)
def test_a_link_that_is_no_plain_address_is_left_out(link: str) -> None:
    assert "Workflow run" not in posted(BODY, link=link)


def test_a_status_alone_has_a_heading_and_the_way_back() -> None:
    text = posted(Content(marker=Marker(cluster="p|@team")), state=CommentState.APPLIED, detail="wrote 2 entities")
    assert text.splitlines()[1:5] == [
        '### ✅ Kafka quotas for `"p|@team"`: applied',
        "",
        "> [!TIP]",
        "> Applied: wrote 2 entities. To undo it, run `kafka-quotas revert REPORT` with the report of this run.",
    ]
