"""A plan as text and as JSON: readable, escaped, equal to its schema."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    GuardResult,
    GuardStatus,
    KeyChange,
    Plan,
    Reason,
    Summary,
)
from reconciler.model.state import ObservedFrom
from reconciler.render.apply_text import apply_report_lines
from reconciler.render.html_page import view_html
from reconciler.render.markdown import view_markdown
from reconciler.render.plan_text import plan_view
from reconciler.render.terminal import plain
from tests.builders import pair, plan, span, user
from tests.support.markdown_views import by_github, seen


def change(
    entity: Entity,
    before: float | None,
    after: float | None,
    key: str = "producer_byte_rate",
    action: Action = Action.UPDATE,
    note: str | None = None,
) -> Change:
    reason = (
        Reason.NOT_IN_CURRENT if before is None else Reason.VALUE_DIFFERS if after is not None else Reason.ENTITY_NOT_IN_MANIFEST
    )
    source = span(8, "teams/payments.yaml", 7) if after is not None else None
    return Change(
        entity=entity,
        action=action,
        keys=(KeyChange(key=key, before=before, after=after, reason=reason, source=source),),
        note=note,
    )


def full_plan() -> Plan:
    guard = GuardResult(
        id="default-entity",
        status=GuardStatus.NEEDS_ACCEPTANCE,
        measured="1 entity",
        limit="0 entities",
        set_in="built in",
        message="it changes user=<default>; accept with --accept default-entity",
    )
    finding = Finding(
        id="user-prefix",
        severity=Severity.WARNING,
        message="looks like a principal",
        span=span(3),
        related=(Related(span=span(4), message="also here"),),
        entity=user("User:a"),
        key="producer_byte_rate",
    )
    return plan(
        change(user("payments-api"), 10 * 1024**2, 20 * 1024**2, note="peak of the\nsettlement run"),
        change(user(), None, 12.5, key="request_percentage", action=Action.CREATE),
        change(pair("<default>", "a b"), 1500, None, action=Action.DELETE),
        summary=Summary(create=1, update=1, delete=1, unchanged=412, unmanaged=3),
        guards=(guard,),
        notes=("a note",),
        findings=(finding,),
    )


def test_the_text_shows_values_both_ways_with_factor_and_source() -> None:
    text = plain(plan_view(full_plan()).lines)
    assert text == (
        "Plan for cluster prod (c1, Kafka 4.3), read from its brokers at 2026-01-02 12:00:00 UTC\n"
        "\n"
        "Legend: + create, ~ update, - delete, x0.5: the new value is half of the old one\n"
        "\n"
        "teams/payments.yaml\n"
        "  + user=<default>\n"
        "      request_percentage  not set -> 12.5 %                   new  line 8\n"
        "  ~ user=payments-api\n"
        "      producer_byte_rate  10 MiB/s -> 20 MiB/s                x2   line 8\n"
        "      note: peak of the\\u000asettlement run\n"
        "\n"
        "No manifest declares these\n"
        '  - user="<default>" client-id="a b"\n'
        "      producer_byte_rate  1.465 KiB/s (1,500 B/s) -> not set\n"
        "\n"
        "Guard default-entity needs acceptance: it changes user=<default>; accept with --accept default-entity\n"
        "\n"
        "Note: a note\n"
        "1 to create, 1 to update, 1 to delete. 412 unchanged, 3 unmanaged.\n"
        f"Digest sha256:{'0' * 64}\n"
    )


@pytest.mark.bulk
def test_a_plan_of_many_changes_is_counted_by_file() -> None:
    changes = [change(user(f"team-{n:05}"), 1000.0 * (n + 2), 1000.0) for n in range(20_000)]
    text = plain(plan_view(plan(*changes, summary=Summary(update=20_000)), most_changes=200).lines)
    assert text.count("\n") < 30
    assert "20,000 changes in 1 file\n" in text
    assert "  teams/payments.yaml       0  20,000       0\n" in text
    assert "user=team-" not in text
    assert "kafka-quotas plan shows every change." in text
    assert text.endswith(f"Digest {plan().digest}\n")


def report(result: ApplyResult, *statuses: ChangeStatus, **fields: object) -> ApplyReport:
    outcomes = tuple(
        ChangeOutcome(change=change(user(f"u{n}"), 1, 2), status=s, error_code=42, error="bad \x1b words")
        for n, s in enumerate(statuses)
    )
    base = full_plan()
    return ApplyReport(cluster=base.cluster, digest=base.digest, result=result, outcomes=outcomes, **fields)  # type: ignore[arg-type]  # a test names fields as it likes


def test_a_partial_report_names_what_failed_and_counts_the_rest() -> None:
    text = plain(apply_report_lines(report(ApplyResult.PARTIAL, *ChangeStatus, message="stopped")))
    assert text == (
        "  failed: user=u1: bad \\u001b words (error 42)\n"
        "  unknown: user=u2: bad \\u001b words (error 42)\n"
        "Not complete: 1 applied, 1 failed, 1 unknown, 1 not attempted.\n"
        "Stopped.\n"
    )


def test_an_apply_report_ends_with_the_time_and_the_brokers() -> None:
    done = report(ApplyResult.DONE, ChangeStatus.APPLIED, verified=True, seconds=8.04, brokers=3)
    assert plain(apply_report_lines(done)) == "Applied 1 change in 8 s, verified on 3 brokers.\n"
    in_zookeeper = replace(done, origin=ObservedFrom.ZOOKEEPER, brokers=None, seconds=0.001)
    assert plain(apply_report_lines(in_zookeeper)) == "Applied 1 change in 0.1 s, verified in ZooKeeper.\n"


def test_an_apply_report_ends_with_the_command_that_undoes_it() -> None:
    done = report(ApplyResult.DONE, ChangeStatus.APPLIED, seconds=8.04, brokers=3)
    text = plain(apply_report_lines(done, undo=("my run.json", "quotas", "--cluster", "prod\x1b[2J")))
    assert text.splitlines()[-1] == "To undo it: kafka-quotas revert 'my run.json' quotas --cluster 'prod\\u001b[2J'"


def test_a_page_lists_the_worst_change_of_all_files_first_and_a_terminal_that_of_each_file() -> None:
    moves = {"raised": (1.0, 2.0), "first": (None, 1.0), "cut": (8.0, 4.0), "deep-cut": (8.0, 1.0), "gone": (1.0, None)}
    changes = tuple(change(user(name), before, after) for name, (before, after) in moves.items())
    view = plan_view(replace(full_plan(), changes=changes))
    order = [f"user={name}" for name in ("gone", "deep-cut", "cut", "first", "raised")]
    assert [
        row[0] for row in seen(view_html(view).removeprefix("<!DOCTYPE html>\n")).rows if row[:1] and row[0] in order
    ] == order
    assert [row[0] for row in by_github(view_markdown(view)).rows if row[:1] and row[0] in order] == order
    assert [word for word in plain(view.lines).split() if word in order] == [*order[1:], order[0]]
