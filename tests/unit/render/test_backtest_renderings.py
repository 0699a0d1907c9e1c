"""A backtest as text, JSON, Markdown and a page: one report, the same facts, and no name that means anything to a format."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from hypothesis import given, settings

from reconciler.cli.commands.backtest import result_of_backtest
from reconciler.cli.results import pieces
from reconciler.documents import BACKTEST
from reconciler.model import BacktestReport, Verdict
from reconciler.model.backtest import NotJudged, UnjudgedChange
from reconciler.model.entity import DEFAULT, Entity
from reconciler.render.backtest_text import backtest_view
from reconciler.render.html_page import view_html
from reconciler.render.markdown import view_markdown
from reconciler.render.terminal import plain
from reconciler.traffic.judging.verdicts import worst_first
from tests.support.backtest_reports import full, report_of, verdict
from tests.support.hostile_names import HOSTILE, NAMES
from tests.support.markdown_views import Seen, by_github, by_markdown_it, seen

ALICE, ANYONE = Entity.of({"user": "alice"}), Entity.of({"user": DEFAULT})


def written(form: str, report: BacktestReport) -> str:
    return "".join(pieces(result_of_backtest(report), form))


def page(text: str) -> Seen:
    assert text.startswith("<!DOCTYPE html>\n")
    return seen(text.removeprefix("<!DOCTYPE html>\n"))


def with_unjudged(report: BacktestReport, *names: str) -> BacktestReport:
    changes = (
        UnjudgedChange(
            entity=Entity.of({"user": name}), key="producer_byte_rate", before=None, after=1048576.0, reason=NotJudged.NO_CLIENT
        )
        for name in names
    )
    return dataclasses.replace(report, unjudged=tuple(changes))


JUDGED = report_of(verdict())
PARTLY = with_unjudged(JUDGED, "quiet")
UNJUDGED = with_unjudged(report_of(), "quiet", "silent")
HEADLINES = [
    (report_of(), "No limit of a recorded client changes."),
    (
        report_of(verdict(verdict=Verdict.POSSIBLE)),
        "The proposed quotas might have throttled 1 of 1 quota group whose limit changes.",
    ),
    (
        report_of(verdict(verdict=Verdict.INCONCLUSIVE), verdict(user="b")),
        "The history does not show enough to clear 1 of 2 quota groups whose limit changes.",
    ),
    (JUDGED, "The proposed quotas would have throttled no recorded request. 1 quota group gets another limit."),
    (
        PARTLY,
        (
            "The proposed quotas would have throttled no recorded request. 1 quota group gets another limit. "
            "Not checked: 1 changed quota (no recorded traffic)."
        ),
    ),
    (UNJUDGED, "Not checked: 2 changed quotas (no recorded traffic)."),
]


@pytest.mark.parametrize(("report", "words"), HEADLINES)
def test_every_output_says_the_same_of_a_judged_a_partly_judged_and_an_unjudged_change(
    report: BacktestReport, words: str
) -> None:
    again = BACKTEST.read(BACKTEST.text(report), name="b.json")
    comment = view_markdown(backtest_view(again))
    assert plain(backtest_view(report).lines).splitlines()[0] == f"Backtest: {words}"
    assert words in page(view_html(backtest_view(report, page=True))).text()
    assert words in by_github(view_markdown(backtest_view(report))).text()
    assert words in by_github(comment).text()
    assert words in by_github(written("markdown", report)).text()
    assert words in written("text", report)
    assert json.loads(written("json", report))["summary"]["headline"] == words
    assert json.loads(written("sarif", report))["runs"][0]["results"][0]["message"]["text"] == words
    assert f"title=backtest-answer::{words}" in written("github", report)


def test_unjudged_changes_are_listed_with_their_values_and_the_reason() -> None:
    words = "user=quiet: producer_byte_rate not set -> 1 MiB/s: no recorded client uses this quota"
    row = next(row for row in plain(backtest_view(PARTLY).lines).splitlines() if "user=quiet" in row)
    assert " ".join(row.split()) == f"not checked {words.replace('1 MiB/s:', '1 MiB/s')}"
    rows = page(view_html(backtest_view(PARTLY, page=True))).rows
    cells = [
        "user=quiet: producer_byte_rate",
        "not checked",
        "not set \N{RIGHTWARDS ARROW} 1 MiB/s",
        "no recorded client uses this quota",
    ]
    assert cells in rows
    assert cells in by_github(view_markdown(backtest_view(PARTLY))).rows
    assert BACKTEST.write(PARTLY)["unjudged"] == [
        {
            "entity": {"user": "quiet"},
            "key": "producer_byte_rate",
            "limit_before": None,
            "limit_after": 1048576,
            "reason": "no-recorded-client",
        }
    ]


def test_groups_on_several_brokers_are_counted_once_in_every_count() -> None:
    rows = [
        dataclasses.replace(verdict(user=user, verdict=found, changed=changed), broker=broker)
        for broker in (1, 2, 3)
        for user, found, changed in (
            ("a", Verdict.THROTTLED if broker == 2 else Verdict.CLEAR, True),
            ("b", Verdict.THROTTLED, False),
            ("c", Verdict.CLEAR, False),
            ("d", Verdict.CLEAR, True),
        )
    ]
    report = report_of(*sorted(rows, key=worst_first))
    words = (
        "The proposed quotas would have throttled 1 of 2 quota groups whose limit changes. "
        "1 quota group is over a limit that stays."
    )
    text = plain(backtest_view(report).lines)
    assert text.splitlines()[0] == f"Backtest: {words}"
    assert "The change does not touch 1 more quota group." in text
    summary = BACKTEST.write(report)["summary"]
    assert summary == {
        "headline": words, "buckets": 4, "rows": 12,
        "changed": {"buckets": 2, "throttled": 1, "possible": 0, "clear": 1, "inconclusive": 0},
        "unchanged": {"buckets": 2, "throttled": 1, "possible": 0, "clear": 1, "inconclusive": 0},
        "unjudged": 0, "quotas": None, "refused": False,
    }  # fmt: skip


PLAIN_TEXT = view_markdown(backtest_view(full("n", "c")))


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES)
def test_no_name_means_anything_to_markdown(name: str, client: str) -> None:
    text = view_markdown(backtest_view(full(name, client)))
    for parser in (by_github, by_markdown_it):
        found, wanted = parser(text), parser(PLAIN_TEXT)
        assert not found.comments
        assert [len(row) for row in found.rows] == [len(row) for row in wanted.rows]
        assert not {"a", "img", "script", "em", "del", "h1", "input"} & set(found.elements)
        assert "@" not in found.outside("code")


_NAMED = [name for name in HOSTILE if name]


@pytest.mark.parametrize("name", _NAMED, ids=range(len(_NAMED)))
def test_no_name_means_anything_to_a_browser(name: str) -> None:
    text = view_html(backtest_view(full(name, name), page=True))
    # A name with a hyphen has elements that keep its pieces whole.
    found, wanted = (
        page(re.sub('<span class="w">(.*?)</span>(?:<wbr>)?', r"\1", one))
        for one in (text, view_html(backtest_view(full("n", "c"), page=True)))
    )
    assert sorted(found.elements) == sorted(wanted.elements)
    assert [key for _, key, _ in found.attributes] == [key for _, key, _ in wanted.attributes]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x09\x0b-\x1f\ud800-\udfff]", text)


@pytest.mark.bulk
def test_markdown_of_many_quota_groups_drops_whole_rows_and_counts_them() -> None:
    many = [verdict(user=f"user-{n:05}", verdict=Verdict.THROTTLED, seconds_over=5) for n in range(1000)]
    report = dataclasses.replace(full(), verdicts=(full().verdicts[0], *many))
    text = view_markdown(backtest_view(report, details=True), budget=50_000)
    assert len(text.encode()) <= 50_000
    assert re.search(r"\*\*[\d,]+ rows have no room here\.\*\* `kafka-quotas backtest` prints all of them\.", text)
    assert "fails** " in text
