"""A figure of a quota group is the largest of any of its brokers, and every output prints the same one."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import BacktestReport, BucketVerdict, GroupRows, Verdict, group_verdicts
from reconciler.render.backtest_text import backtest_view
from reconciler.render.html_page import view_html
from reconciler.render.markdown import view_markdown
from reconciler.render.metric_sentences import over_text
from reconciler.render.terminal import plain
from reconciler.text import percent_text
from tests.builders import NOON
from tests.support.backtest_reports import START, altered, report_of, verdict

MIB = 1024.0**2
LATER = START + datetime.timedelta(hours=2)


def outputs(report: BacktestReport) -> dict[str, str]:
    """Every output for people, without what only keeps words on one line."""
    texts = {
        "terminal": plain(backtest_view(report).lines),
        "details": plain(backtest_view(report, details=True).lines),
        "markdown": view_markdown(backtest_view(report)),
        "page": view_html(backtest_view(report, page=True)),
    }
    return {name: text.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ") for name, text in texts.items()}


def brokers(kind: Verdict, **second: object) -> BacktestReport:
    """Two brokers with the same verdict: the report has the first one first, and the second has the larger figures."""
    first = verdict(
        verdict=kind, broker=1, active_seconds=33_000, seconds_possible=11, peak=7.676 * MIB, longest_s=4, longest_from=START
    )
    other = verdict(verdict=kind, broker=2, active_seconds=33_000, peak=7.702 * MIB, longest_s=9, longest_from=LATER)
    return report_of(first, altered(other, **second))


def test_the_time_that_is_possible_at_most_is_that_of_the_worst_broker_everywhere() -> None:
    report = brokers(Verdict.POSSIBLE, seconds_possible=35)
    for name, text in outputs(report).items():
        assert "at most 35 s (0.1 %)" in text.replace("\N{LESS-THAN OR EQUAL TO}", "at most"), name
        if name in ("terminal", "markdown"):
            assert "11 s" not in text, name
        assert "< 1 %" not in text, name
        assert "&lt; 1 %" not in text, name


def test_the_time_over_and_the_peak_are_those_of_the_worst_broker_everywhere() -> None:
    report = brokers(Verdict.THROTTLED, seconds_over=2400, seconds_certain=2400, seconds_possible=2400, first=LATER)
    for name, text in outputs(report).items():
        assert "40 min (7.3 %)" in text, name
        if name != "markdown":
            assert "7.7 MiB/s" in text, name


def test_never_is_said_of_no_group_that_may_be_over() -> None:
    assert over_text(GroupRows.of_row(verdict(verdict=Verdict.INCONCLUSIVE))) == "not known"
    assert over_text(GroupRows.of_row(verdict(verdict=Verdict.CLEAR))) == "never"
    one_second = verdict(verdict=Verdict.POSSIBLE, active_seconds=2_592_000, seconds_possible=1)
    assert over_text(GroupRows.of_row(one_second)) == "at most 1 s (< 0.01 %)"


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0 %"),
        (0.00004, "< 0.01 %"),
        (0.0001, "0.01 %"),
        (0.0011, "0.1 %"),
        (0.049, "4.9 %"),
        (0.57, "57 %"),
        (0.9996, "> 99 %"),
        (1.0, "100 %"),
    ],
)
def test_a_share_is_never_rounded_to_nothing_or_to_all(share: float, words: str) -> None:
    assert percent_text(share) == words


COUNTS = st.integers(0, 5000)


@st.composite
def rows(draw: st.DrawFn) -> BucketVerdict:
    certain, more, most = sorted(draw(st.tuples(COUNTS, COUNTS, COUNTS)))
    return verdict(
        user=draw(st.sampled_from("ab")),
        broker=draw(st.integers(1, 4)),
        active_seconds=most + draw(COUNTS) + 1,
        seconds_certain=certain,
        seconds_over=more,
        seconds_possible=most,
        peak=draw(st.floats(1, 1e9)),
        first=draw(st.none() | st.just(NOON) | st.just(START)),
    )


@given(st.lists(rows(), min_size=1, max_size=8))
def test_each_figure_is_the_largest_of_any_broker_in_whatever_order(some: list[BucketVerdict]) -> None:
    groups = group_verdicts(some)
    assert sum(len(group.rows) for group in groups) == len(some)
    for group in groups:
        time, mine = group.time_over, [row for row in some if row.name.user == group.worst.name.user]
        assert group.worst is mine[0]
        assert time.seconds == max(row.over.seconds for row in mine)
        assert time.share == max(row.over.share for row in mine)
        assert time.possible == max(row.over.possible for row in mine)
        assert group.highest.peak.rate == max(row.peak.rate for row in mine)
        assert group.first == min((row.over.first for row in mine if row.over.first is not None), default=None)
        backwards = {one.worst.name.user: one for one in group_verdicts(some[::-1])}[group.worst.name.user]
        assert (backwards.time_over, backwards.highest.peak, backwards.first) == (time, group.highest.peak, group.first)
