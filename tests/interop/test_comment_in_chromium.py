"""The comment as GitHub shows it, in a real browser: its height, that nothing is cut off, and what a screen reader is given."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from reconciler.features.pull_requests.plan_comment import plan_comment
from reconciler.features.pull_requests.sticky_comment import CommentState, CommentStatus, render_sticky_comment
from reconciler.model import BacktestReport, Coverage, Observed, ObservedFrom, Verdict
from reconciler.model.backtest import NotJudged, UnjudgedChange
from reconciler.model.plan import Action, Change, GuardResult, GuardStatus, KeyChange, Plan, Reason, Summary
from reconciler.render.markdown import RepositoryLinks
from tests.builders import plan, span, user
from tests.support.backtest_reports import START, provenance, report_of, verdict
from tests.support.chromium import Chromium
from tests.support.forge_page import comment_page

pytestmark = pytest.mark.interop

MIB = 1024.0**2
TALLEST, TALLEST_ON_A_PHONE = 900, 1100
"""Pixels of a comment about twelve changes whose details are folded."""
NAMES = (
    "orders-service", "payments-api", "analytics-clickstream", "legacy-billing", "analytics-batch", "settlement",
    "search-indexer", "web-frontend", "inventory", "fraud-detection", "audit-log", "mobile-gateway",
)  # fmt: skip
VERDICTS = (Verdict.THROTTLED, Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR, Verdict.CLEAR)


def twelve_changes() -> Plan:
    changes = []
    for line, name in enumerate(NAMES, start=4):
        before, after = (None, 4 * MIB) if line % 3 else (8 * MIB, 2 * MIB)
        key = KeyChange(
            key="producer_byte_rate", before=before, after=after, reason=Reason.VALUE_DIFFERS, source=span(line, "teams/a.yaml")
        )
        changes.append(Change(entity=user(name), action=Action.UPDATE, keys=(key,)))
    guards = tuple(
        GuardResult(id=name, status=GuardStatus.NEEDS_ACCEPTANCE, measured="2", limit="0", set_in="built in", message="It trips.")
        for name in ("default-entity", "large-reduction", "prune", "too-many-removals")
    )
    observed = Observed(at=START + datetime.timedelta(hours=25), origin=ObservedFrom.BROKER)
    return plan(*changes, guards=guards, summary=Summary(create=8, update=4, unchanged=41), observed=observed)


def backtest() -> BacktestReport:
    end = START + datetime.timedelta(hours=24)
    groups = [
        verdict(user=name, entity=user(name), verdict=found, seconds_over=900, seconds_possible=950, safe=5.25 * MIB)
        for name, found in zip(NAMES, VERDICTS, strict=False)
    ]
    unjudged = tuple(
        UnjudgedChange(
            entity=user(name),
            key="producer_byte_rate",
            before=None,
            after=4 * MIB,
            reason=NotJudged.NO_TRAFFIC if number < 2 else NotJudged.NO_CLIENT,
        )
        for number, name in enumerate(NAMES[len(VERDICTS) :])
    )
    coverage = tuple(Coverage(broker=n, requests=9, start=START, end=end, minutes=1440) for n in (1, 2, 3))
    return report_of(*groups, unjudged=unjudged, cluster="prod", provenance=provenance(coverage=coverage))


def posted(report: BacktestReport | None) -> str:
    at = "https://git.example.org/o/r"
    links = RepositoryLinks(files=f"{at}/blob/abc", report=f"{at}/artifacts/1", docs=f"{at}/blob/abc/docs/guards.md")
    content = plan_comment(twelve_changes(), report=report, links=links)
    status = CommentStatus(state=CommentState.PLANNED, commit="a1" * 20, link="https://git.example.org/o/r/actions/runs/1")
    return render_sticky_comment(content, status)


def opened(browser: Chromium, folder: Path, markdown: str, *, width: int, dark: bool = False) -> None:
    path = folder / "comment.html"
    path.write_text(comment_page(markdown), encoding="utf-8")
    browser.look(width=width, dark=dark)
    browser.open(path, ready="true")


@pytest.mark.parametrize("report", [backtest(), None], ids=["with a backtest", "without"])
def test_a_comment_about_twelve_changes_is_short_and_nothing_of_it_is_cut_off(
    browser: Chromium, tmp_path: Path, report: BacktestReport | None
) -> None:
    opened(browser, tmp_path, posted(report), width=800)
    height = browser.evaluate("document.querySelector('article').getBoundingClientRect().height")
    assert 400 < height <= TALLEST
    assert browser.evaluate("document.documentElement.scrollWidth") == 800
    tables = browser.evaluate("[...document.querySelectorAll('article > table')].map((t) => [t.scrollWidth, t.clientWidth])")
    assert len(tables) == 1, "one table is open"
    assert all(needed <= there for needed, there in tables)
    amounts = "[...document.querySelectorAll('article > table td:nth-child(3) strong')]"
    heights = browser.evaluate(f"{amounts}.map((one) => one.getClientRects().length)")
    assert heights
    assert set(heights) == {1}, "no amount breaks"


@pytest.mark.parametrize("report", [backtest(), None], ids=["with a backtest", "without"])
def test_on_a_phone_the_comment_has_every_column_and_a_height_of_two_screens(
    browser: Chromium, tmp_path: Path, report: BacktestReport | None
) -> None:
    opened(browser, tmp_path, posted(report), width=390)
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    assert browser.evaluate("document.querySelector('.markdown-alert').getBoundingClientRect().bottom") < 700
    assert browser.evaluate("document.querySelector('article').getBoundingClientRect().height") <= TALLEST_ON_A_PHONE
    box = "document.querySelector('article > table')"
    assert browser.evaluate(f"{box}.scrollWidth <= {box}.clientWidth"), "no column is hidden"


def test_a_screen_reader_is_given_the_state_of_each_row_in_words(browser: Chromium, tmp_path: Path) -> None:
    opened(browser, tmp_path, posted(backtest()), width=800, dark=True)
    tree = browser.accessible()
    marks = [one["name"] for one in tree if one["role"] in ("image", "img")]
    assert marks[:2] == ["throttled", "throttled"]
    assert {"possible", "inconclusive", "clear"} <= set(marks)
    order = [one["name"] for one in tree if one["role"] in ("heading", "table", "DisclosureTriangle")]
    assert "needs acceptance" in order[0]
