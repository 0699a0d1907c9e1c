"""``comment --backtest``: what a backtest found stands below the plan, in the one comment that a reviewer reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.documents.backtest import backtest_to_json
from reconciler.errors import FileAccessError
from reconciler.formats.canonical import document_text
from reconciler.model.backtest import BacktestReport, FailedBucket, NotJudged, RuleOutcome, UnjudgedChange, Verdict
from reconciler.model.change import Action, Change, KeyChange, Reason
from reconciler.model.plan import Plan
from reconciler.render.backtest_markdown import render_backtest_markdown
from reconciler.render.markdown import BUDGET, plan_markdown
from reconciler.render.markdown_text import size
from reconciler.render.sticky_comment import LIMIT, CommentState, CommentStatus, read_content, read_marker, render_sticky_comment
from reconciler.workflows.comment import body_content, with_backtest
from tests.builders import plan, user
from tests.support.backtest_reports import report_of, verdict
from tests.support.command import Done, invoke
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, TOKEN, GitHubServer, github_server
from tests.support.markdown_views import by_github

HIT = verdict(user="alice", verdict=Verdict.THROTTLED, seconds_over=42, seconds_possible=44)
RULE = RuleOutcome(
    words="no bucket that changes may be throttled",
    reason="gold is never throttled",
    span=None,
    failed=(FailedBucket(bucket=HIT.name, key=HIT.key, broker=1, verdict=Verdict.THROTTLED, seconds=42, owners=("team-a",)),),
)


def planned(*names: str) -> Plan:
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS)
    return plan(*(Change(entity=user(name), action=Action.UPDATE, keys=(key,)) for name in names))


def report(cluster: str | None = "prod") -> BacktestReport:
    return report_of(HIT, cluster=cluster, rules=(RULE,))


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with github_server() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    event = {"pull_request": {"number": NUMBER, "head": {"sha": HEAD}}}
    (tmp_path / "event.json").write_text(json.dumps(event), encoding="utf-8")
    (tmp_path / "body.md").write_text(plan_markdown(planned("alice")), encoding="utf-8")
    (tmp_path / "backtest.json").write_text(document_text(backtest_to_json(report())), encoding="utf-8")
    return tmp_path


def comment(folder: Path, github: GitHubServer, *arguments: str) -> Done:
    environment = {
        "GITHUB_API_URL": github.url,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_TOKEN": TOKEN,
    }
    return invoke("comment", *arguments, cwd=folder, env=environment)


def bodies(github: GitHubServer) -> list[str]:
    return [one["body"] for one in github.comments.values()]


def test_one_comment_tells_the_plan_and_the_backtest_and_keeps_both(folder: Path, github: GitHubServer) -> None:
    assert comment(folder, github, "body.md", "--backtest", "backtest.json").code == 0
    (posted,) = bodies(github)
    seen = by_github(posted)
    assert "The proposed quotas would have throttled 1 of 1 quota group whose limit changes" in seen.text()
    assert "Rule 1 fails (gold is never throttled)" in seen.text()
    assert posted.index("Digest") < posted.index("Backtest:")
    assert comment(folder, github, "--state", "applying", "--cluster", "prod").code == 0
    (posted,) = bodies(github)
    assert "Being applied" in posted
    assert "Backtest:" in posted
    assert comment(folder, github, "body.md").code == 0
    (posted,) = bodies(github)
    assert "Backtest:" not in posted, "a new plan has nothing of the old backtest"


def test_what_cannot_be_meant_is_refused_and_nothing_is_posted(folder: Path, github: GitHubServer) -> None:
    (folder / "other.json").write_text(json.dumps({"format_version": "2.0"}), encoding="utf-8")
    for arguments, code, said in (
        (("--state", "applied", "--backtest", "backtest.json"), 64, "--backtest adds to a plan"),
        (("body.md", "--backtest", "missing.json"), 1, "cannot read missing.json"),
        (("body.md", "--backtest", "other.json"), 1, "other.json is not a backtest report written by 'backtest --format json'"),
    ):
        done = comment(folder, github, *arguments)
        assert (done.code, done.out) == (code, "")
        assert said in done.err
    assert bodies(github) == []


def content_of(text: str, cluster: str | None = None):
    return body_content(text, name="body.md", cluster=cluster, label="")


def test_a_report_about_another_cluster_is_refused() -> None:
    content = content_of(plan_markdown(planned("alice")))
    with pytest.raises(FileAccessError, match=r"b\.json is about cluster 'prod-eu', not 'prod'"):
        with_backtest(content, report("prod-eu"), name="b.json")


@pytest.mark.parametrize("entities", [1, 5000])
def test_however_long_the_plan_the_verdict_has_room_and_the_whole_stays_within_its_size(entities: int) -> None:
    body = plan_markdown(planned(*(f"user-{n:05}" for n in range(entities))))
    many = report_of(HIT, *(verdict(user=f"u{n}", verdict=Verdict.THROTTLED) for n in range(3000)), rules=(RULE,), cluster="prod")
    content = with_backtest(content_of(body), many, name="b.json")
    status = CommentStatus(
        state=CommentState.FAILED, commit=HEAD, detail="x " * 900, link="https://github.example.org/o/r/runs/1"
    )
    text = render_sticky_comment(content, status)
    assert size((text,)) <= LIMIT
    assert "Backtest:" in text
    assert ("Rule 1 fails" in text) or ("1 of 1 rules of the policy fail" in text)


def test_a_full_body_leaves_the_backtest_one_line() -> None:
    body = plan_markdown(planned(*(f"user-{n:05}" for n in range(5000))))
    assert len(body.encode()) > BUDGET - 1000
    lines = with_backtest(content_of(body), report(), name="b.json").lines
    (line,) = (line for line in lines if "Backtest:" in line)
    assert line.startswith("**Backtest:** **The proposed quotas would have throttled 1 of 1 quota group whose limit changes.**")
    assert "**1 of 1 rules of the policy fail.**" in line
    assert size(lines[lines.index(line) :]) < 500


def test_a_backtest_alone_is_a_comment_too() -> None:
    text = render_backtest_markdown(report("prod-eu"))
    content = content_of(text, cluster="prod-eu")
    assert read_content(text) is not None
    assert "**Backtested**" in render_sticky_comment(content, CommentStatus(state=CommentState.PLANNED))


def test_a_plan_without_changes_stays_silent_unless_the_backtest_found_a_change() -> None:
    content = content_of(plan_markdown(planned()))
    assert content.marker.empty
    assert with_backtest(content, report_of(verdict(changed=False), cluster=None), name="b.json").marker.empty
    assert not with_backtest(content, report(), name="b.json").marker.empty


def test_the_section_is_part_of_what_is_guarded_against_edits() -> None:
    content = with_backtest(content_of(plan_markdown(planned("alice"))), report(), name="b.json")
    text = render_sticky_comment(content, CommentStatus(state=CommentState.PLANNED))
    marker = read_marker(text)
    assert marker is not None
    assert marker.checksum is not None
    kept = read_content(text)
    assert kept is not None
    assert kept.lines == tuple(content.lines[:-1])


REFUSED = "Next: do not merge. The backtest refuses this change; change the quotas, or merge another rule first."
MERGE = "Next: merge, and `kafka-quotas apply` writes exactly this, or refuses when the cluster has changed since."


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        (report(), REFUSED),
        (
            report_of(HIT, cluster="prod"),
            "Next: decide whether these clients may be throttled. Raise the limits to the recommended values, or merge.",
        ),
        (
            report_of(
                cluster="prod",
                unjudged=(
                    UnjudgedChange(
                        entity=user("quiet"), key="producer_byte_rate", before=1.0, after=2.0, reason=NotJudged.NO_CLIENT
                    ),
                ),
            ),
            "Next: decide about the changes that the backtest does not clear, then merge.",
        ),
        (report_of(verdict(), cluster="prod"), MERGE),
    ],
    ids=["refused", "throttled", "unjudged", "clear"],
)
def test_the_next_step_knows_the_plan_and_the_backtest(found: BacktestReport, advice: str) -> None:
    lines = with_backtest(content_of(plan_markdown(planned("alice"))), found, name="b.json").lines
    assert [one for one in lines if one.startswith("Next: ")] == [advice]


def test_a_comment_of_an_unjudged_change_alone_is_posted() -> None:
    change = UnjudgedChange(entity=user("quiet"), key="producer_byte_rate", before=None, after=2.0, reason=NotJudged.NO_CLIENT)
    content = content_of(plan_markdown(planned()))
    assert not with_backtest(content, report_of(unjudged=(change,), cluster=None), name="b.json").marker.empty
