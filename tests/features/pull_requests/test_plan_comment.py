"""A plan as one comment: what a reviewer reads first, what is folded, and what is never cut, whatever a client is called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from reconciler.features.pull_requests.comment_verdict import CommentVerdict
from reconciler.features.pull_requests.plan_comment import BUDGET
from reconciler.features.pull_requests.sticky_comment import Marker, marker_line, read_marker
from reconciler.model.effect import Effect, KnownClient, Limit, PlanEffects
from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Severity
from reconciler.model.plan import Action, Change, GuardResult, GuardStatus, KeyChange, ManifestCommit, Plan, Reason, Summary
from reconciler.render.markdown import RepositoryLinks
from tests.builders import pair, plan, span, user
from tests.support.backtest_reports import report_of, verdict
from tests.support.comments import findings_markdown, plan_markdown
from tests.support.hostile_names import NAMES, name_shown
from tests.support.markdown_views import Seen, by_github, by_markdown_it
from tests.support.random_plans import PLANS, all_hostile, everything_called


def key(before: float | None, after: float | None, name: str = "producer_byte_rate") -> KeyChange:
    reason = Reason.ENTITY_NOT_IN_MANIFEST if after is None else Reason.VALUE_DIFFERS
    source = None if after is None else span(8, "teams/payments.yaml", 7)
    return KeyChange(key=name, before=before, after=after, reason=reason, source=source)


def change(entity: Entity, before: float | None, after: float | None, note: str | None = None) -> Change:
    action = Action.CREATE if before is None else Action.DELETE if after is None else Action.UPDATE
    return Change(entity=entity, action=action, keys=(key(before, after),), note=note)


def guard(status: GuardStatus, message: str = "it changes user=<default>", guard_id: str = "default-entity") -> GuardResult:
    return GuardResult(
        id=guard_id, status=status, measured="1 entity", limit="0 entities", set_in="c.yaml:4:3", message=message,
        entities=(user(),) if status is GuardStatus.NEEDS_ACCEPTANCE else (),
    )  # fmt: skip


FIRST = "\N{HEAVY PLUS SIGN}"


def sign(words: str, mark: str) -> str:
    return f'<span role="img" aria-label="{words}">{mark}</span>'


def rows(markdown: str) -> list[list[str]]:
    return by_github(markdown).rows[1:]


def test_the_whole_comment_of_a_small_plan() -> None:
    one = plan(
        change(user("payments-api"), 10 * 1024**2, 5 * 1024**2, note="smaller brokers"),
        change(user(), None, 1024.0),
        change(pair("<default>", "a|b"), 1500.0, None),
        summary=Summary(create=1, update=1, delete=1, unchanged=412, unmanaged=3),
        guards=(guard(GuardStatus.NEEDS_ACCEPTANCE), guard(GuardStatus.ACCEPTED, "fine", "prune"), guard(GuardStatus.PASSED)),
        findings=(Finding(id="user-prefix", severity=Severity.WARNING, message="looks like a principal", span=span(3)),),
        notes=("the acceptance of guard prune did not trip",),
        source=ManifestCommit(commit="1a2b3c4", dirty=True),
    )
    markdown = plan_markdown(one)
    lines = markdown.splitlines()
    marker = '"verdict": "needs acceptance"'
    assert (marker in lines[0], lines[1]) == (True, "### ⚠️ Kafka quotas for `prod`: needs acceptance")
    assert lines[3:5] == [
        "> [!WARNING]",
        (
            "> **Nothing was checked against traffic**: set `spec.traffic` in the Cluster manifest. "
            "**1 guard needs acceptance**: `default-entity`."
        ),
    ]
    assert lines[6:13] == [
        "|  | Quota | Limit per broker |",
        "| --- | --- | --- |",
        f'| {sign("removed", "✖")} | `"<default>"` / `"a\\|b"` producer | 1.465\xa0KiB/s (1,500\xa0B/s)\xa0→ *removed* |',
        f"| {sign('tightened', '🔻')} | `payments-api` producer | 10\xa0→ **5\xa0MiB/s** |",
        f"| {sign('first limit', FIRST)} | `user=<default>` producer | none\xa0→ **1\xa0KiB/s** |",
        "",
        "To pass: change the values or merge an exception.",
    ]
    for line in (
        "- **`default-entity`** needs acceptance (`kafka-quotas explain default-entity`): it changes `user=<default>`.",
        "- **`prune`** accepted (`kafka-quotas explain prune`): fine.",
        "    match: {user: {default: true}, strict: true}",
        "- **warning** `user-prefix` `quotas.yaml:3`: looks like a principal",
        "- the acceptance of guard prune did not trip",
        "- `user=payments-api`: smaller brokers",
        "- Cluster prod (`c1`, Kafka 4.3), read from its brokers at 2026-01-02 12:00:00 UTC.",
        "- Commit `1a2b3c4` with changes that are not committed",
    ):
        assert line in lines
    assert "Commit" not in plan_markdown(replace(one, source=ManifestCommit()))


def alert(one: Plan) -> str:
    """The sentences of the alert."""
    (line,) = [row for row in plan_markdown(one).splitlines() if row.startswith("> ") and not row.startswith("> [!")]
    return line.removeprefix("> ")


def test_the_alert_names_what_is_wrong_before_what_is_not_checked() -> None:
    error = Finding(id="x", severity=Severity.ERROR, message="wrong")
    unchecked = "**Nothing was checked against traffic**: set `spec.traffic` in the Cluster manifest."
    assert alert(plan(change(user("a"), 1.0, 2.0))) == unchecked
    assert alert(plan()) == "No changes: the cluster has every declared value."
    both = plan(change(user("a"), 1.0, 2.0), findings=(error,), guards=(guard(GuardStatus.NEEDS_ACCEPTANCE),))
    assert alert(both) == (
        f"**1 finding is an error**, so this plan cannot be applied. {unchecked} **1 guard needs acceptance**: `default-entity`."
    )


def test_manifests_guards_and_reports_are_linked_where_their_addresses_are_known() -> None:
    links = RepositoryLinks(
        files="https://git.example.org/o/r/blob/abc",
        report="https://git.example.org/o/r/artifacts/1",
        docs="https://docs.example.org/guards.html#{id}",
    )
    one = plan(
        change(user("a|b"), 1.0, 2.0),
        guards=(guard(GuardStatus.NEEDS_ACCEPTANCE),),
        findings=(Finding(id="x", severity=Severity.INFO, message="m", span=span(2, "a b/ü(1).yaml")),),
    )
    text = plan_markdown(one, report=report_of(verdict(user="a|b", entity=user("a|b"))), links=links)
    targets = [value for element, key, value in by_github(text).attributes if (element, key) == ("a", "href")]
    assert targets == [
        "https://git.example.org/o/r/artifacts/1",
        "https://git.example.org/o/r/blob/abc/teams/payments.yaml#L8",
        "https://docs.example.org/guards.html#default-entity",
        "https://git.example.org/o/r/blob/abc/c.yaml#L4",
        "https://git.example.org/o/r/blob/abc/a%20b/%C3%BC%281%29.yaml#L2",
    ]
    outside = plan(
        change(user("a"), 1, 2), findings=(Finding(id="x", severity=Severity.INFO, message="m", span=span(2, "/etc/x")),)
    )
    evil = RepositoryLinks(files="javascript:alert(1)//", report="https://e.org/a)b", docs="ftp://x/{id}")
    for addresses in (evil, RepositoryLinks()):
        page = by_github(plan_markdown(outside, report=report_of(verdict()), links=addresses))
        assert "a" not in page.elements


@pytest.mark.parametrize(("count", "folds"), [(12, False), (13, True)])
def test_more_than_twelve_rows_are_folded(count: int, folds: bool) -> None:
    markdown = plan_markdown(plan(*(change(user(f"u{n}"), 1, 2) for n in range(count))))
    assert sum(row[1] != "Quota" for row in rows(markdown)) == count
    assert ("1 more change: 1 not checked" in markdown) is folds


def test_where_not_all_rows_have_room_removals_come_first_and_the_rest_is_counted() -> None:
    gone = tuple(change(user(f"app-{n}"), 1000.0 + n, None) for n in range(40))
    others = tuple(change(user(f"other-{n}"), 1.0, 2.0) for n in range(4960))
    markdown = plan_markdown(plan(*others, *gone, guards=(guard(GuardStatus.NEEDS_ACCEPTANCE),)))
    assert 50_000 < len(markdown.encode()) <= BUDGET
    shown = [row for row in rows(markdown) if row[1] != "Quota"]
    assert [row[2].partition("→ ")[2] for row in shown[:41]] == ["removed"] * 40 + ["2\xa0B/s"]
    assert f"{5000 - len(shown):,} of 5,000 changed limits.** `kafka-quotas plan` prints the whole plan" in markdown
    assert "`default-entity`" in markdown
    every = plan_markdown(plan(*(change(user(f"app-{n}"), 1000.0 + n, None) for n in range(5000))))
    missing = 5000 - sum(row[1] != "Quota" for row in rows(every))
    assert f"{missing:,} of 5,000 changed limits, with {missing:,} removals.**" in every


def test_names_as_long_as_kafka_takes_them_leave_room_for_every_guard() -> None:
    name = "😀`|" * 8000
    guards = tuple(guard(GuardStatus.NEEDS_ACCEPTANCE, f"it changes {user(name)}, {user(name)}", f"guard-{n}") for n in range(10))
    one = plan(*(change(user(name + str(n)), 1.0, None) for n in range(50)), guards=guards)
    markdown = plan_markdown(one)
    assert len(markdown.encode()) <= BUDGET
    page = by_github(markdown)
    for n in range(10):
        assert f"guard-{n} needs acceptance" in page.text()
    assert page.text().count("characters)") >= 50


def effects(count: int, name: str = "app") -> PlanEffects:
    limit = Limit(value=1024.0, entity=user("a"), level=3)
    moves = (
        Effect(client=KnownClient(user=f"{name}{n}", client_id=""), key="producer_byte_rate", before=None, after=limit)
        for n in range(count)
    )
    return PlanEffects(effects=tuple(moves))


def test_effects_are_folded_below_the_changes_and_cut_by_whole_lines() -> None:
    page = by_github(plan_markdown(plan(change(user("a"), 1, 2), effects=effects(2, "`|<b>@x"))))
    assert "Effects: 1 changed entity, 2 affected clients" in page.text()
    row = ['user="`|<b>@x1" client-id=(none)', "producer_byte_rate", "unlimited -> 1 KiB/s from user=a, level 3", "first limit"]
    assert row in page.rows
    assert "b" not in page.elements
    many = plan_markdown(plan(change(user("a"), 1, 2), effects=effects(3000)))
    assert len(many.encode()) <= BUDGET
    shown = many.count("unlimited ->")
    assert 50 < shown < 3000
    assert f"{3000 - shown:,} other rows" in many


def test_a_removed_key_of_a_kept_entity_is_a_removal_too() -> None:
    both = Change(entity=user("a"), action=Action.UPDATE, keys=(key(1, None, "consumer_byte_rate"), key(1, 2)))
    assert [row[1:] for row in rows(plan_markdown(plan(both)))] == [
        ["a consumer", "1\xa0B/s\xa0→ removed"],
        ["a producer", "1\xa0→ 2\xa0B/s"],
    ]


@pytest.mark.bulk
def test_thousands_of_findings_are_counted_and_the_worst_are_shown() -> None:
    many = tuple(Finding(id="info", severity=Severity.INFO, message="nothing") for _ in range(5_000))
    worst = Finding(id="bad", severity=Severity.ERROR, message="the worst", span=span(9))
    markdown = plan_markdown(plan(change(user("a"), 1, 2), findings=(*many, worst)))
    assert len(markdown.encode()) <= BUDGET
    assert markdown.index("`bad` `quotas.yaml:9`: the worst") < markdown.index("`info`")
    assert "of 5,001 findings" in markdown
    assert rows(markdown)[0][1] == "a producer"
    alone = findings_markdown((*many, worst))
    assert len(alone.encode()) <= BUDGET
    assert "Findings: 1 error, 5000 info" in alone
    assert read_marker(alone) == Marker(cluster=None, verdict=CommentVerdict.BLOCKED)


@pytest.mark.parametrize(
    "comment",
    [
        "hello",
        "<!-- kafka-quotas -->",
        "<!-- kafka-quotas {} -->",
        "<!-- kafka-quotas [1] -->",
        marker_line(Marker(cluster="c")).replace('"c"', "5"),
        f"x {marker_line(Marker(cluster='c'))}",
        f"\n{marker_line(Marker(cluster='c'))}",
    ],
)
def test_what_is_no_marker_of_ours_is_none(comment: str) -> None:
    assert read_marker(comment) is None


def test_a_marker_survives_the_line_ends_that_a_form_makes_of_it() -> None:
    markdown = plan_markdown(plan()).replace("\n", "\r\n")
    assert read_marker(markdown) == Marker(cluster="prod", digest=plan().digest, verdict=CommentVerdict.NO_CHANGE)


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
