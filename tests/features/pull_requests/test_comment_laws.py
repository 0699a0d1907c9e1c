"""Whatever a stranger calls a client: a comment stays whole, shows the name, and reads nothing into it."""

from __future__ import annotations

from hypothesis import given

from reconciler.features.pull_requests.comment_verdict import CommentVerdict
from reconciler.features.pull_requests.plan_comment import BUDGET
from reconciler.features.pull_requests.sticky_comment import Marker, marker_line, read_marker
from reconciler.model import GuardStatus, Plan
from tests.builders import user
from tests.support.comments import plan_markdown
from tests.support.hostile_names import NAMES, name_shown
from tests.support.markdown_views import Seen, by_github, by_markdown_it
from tests.support.random_plans import PLANS, all_hostile, everything_called

OURS = {"h3", "p", "strong", "code", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}
OURS |= {"blockquote", "br", "em", "span"}


def nothing_but_ours(page: Seen) -> None:
    assert set(page.elements) <= OURS
    assert {name for _, name, _ in page.attributes} <= {"align", "style", "class", "role", "aria-label", "open"}, page.attributes
    assert len(page.comments) == 1
    loose = page.outside("code").replace("[!", "")
    for sign in ("@", "#", "://", "www.", "`", "$", "|", "[", "<"):
        assert sign not in loose, loose


@all_hostile
@given(NAMES)
def test_in_markdown_a_name_is_the_text_of_one_cell_and_nothing_else(name: str) -> None:
    markdown = plan_markdown(everything_called(name))
    for page in (by_github(markdown), by_markdown_it(markdown)):
        nothing_but_ours(page)
        head, gone, changed = page.rows
        assert len(head) == len(gone) == len(changed) == 3
        assert gone[1] == changed[1]
        shown = changed[1].removesuffix(" producer").removeprefix("user=")
        assert shown == str(user(name)).removeprefix("user=")
        assert name_shown(f"user={shown}") == name
        assert gone[2:] == ["1\xa0B/s\xa0→ removed"]


@all_hostile
@given(NAMES)
def test_the_marker_reads_back_whatever_the_cluster_is_called(name: str) -> None:
    markdown = plan_markdown(everything_called(name))
    assert read_marker(markdown) == Marker(cluster=name, digest="sha256:" + "0" * 64, verdict=CommentVerdict.NEEDS_ACCEPTANCE)
    line = marker_line(Marker(cluster=name))
    assert line.count("-->") == 1
    assert "\n" not in line


@given(PLANS)
def test_a_comment_keeps_to_its_budget_and_names_every_guard_and_removal(one: Plan) -> None:
    markdown = plan_markdown(one)
    assert len(markdown.encode()) <= BUDGET
    page = by_github(markdown)
    removed = sum(key.after is None for change in one.changes for key in change.keys)
    assert sum(row[2].endswith("→ removed") for row in page.rows) == removed
    blocked = [guard for guard in one.guards if guard.status is GuardStatus.NEEDS_ACCEPTANCE]
    assert page.text().count(" needs acceptance (") >= len(blocked)
    for guard in blocked:
        assert f"{guard.id} needs acceptance (kafka-quotas explain {guard.id})" in page.text()
