"""The page of a backtest: quota groups counted once, plots with axes, and bounds for hostile and large input."""

from __future__ import annotations

import dataclasses
import re

import pytest

from reconciler.model import DeclaredQuotas, RateSeries, Verdict
from reconciler.model.entity import Entity
from reconciler.model.finding import Span
from reconciler.model.plan import ManifestCommit
from reconciler.render.backtest_card import anchor
from reconciler.render.backtest_text import backtest_view
from reconciler.render.html_page import view_html
from tests.support.backtest_reports import START, full, member, rates, report_of, verdict
from tests.support.markdown_views import Seen, seen

MIB = 1024.0 * 1024


def page(text: str) -> Seen:
    assert text.startswith("<!DOCTYPE html>\n")
    return seen(text.removeprefix("<!DOCTYPE html>\n"))


def tiles(text: str) -> dict[str, int]:
    """The numbers at the top, by their words."""
    (listed,) = re.findall(r'<ul class="tiles">(.*?)</ul>', text, re.DOTALL)
    return {re.sub("<.*?>", "", words): int(number) for number, words in re.findall(r"<strong>(\d+)</strong> (.*?)</li>", listed)}


def test_a_group_on_three_brokers_is_one_tile_one_row_and_one_card_with_three_rows() -> None:
    rows = [
        verdict(user=user, broker=broker, verdict=found, changed=changed, rates=rates())
        for user, found, changed in (("a", Verdict.THROTTLED, True), ("b", Verdict.CLEAR, True), ("c", Verdict.POSSIBLE, False))
        for broker in (1, 2, 3)
    ]
    text = view_html(backtest_view(report_of(*rows), page=True))
    assert tiles(text) == {
        "throttled": 1,
        "possible": 0,
        "inconclusive": 0,
        "clear": 1,
        "not checked": 0,
        "over a limit that stays": 1,
    }
    assert text.count("<figure") == text.count('<details class="card"') == 3
    headings = [words for element, words in page(text).texts if element == "h2"]
    assert headings[:2] == ["Changed by this proposal (2)", "Over a limit that stays (1)"]
    figure = text[text.index("<figure") : text.index("</figure>")]
    assert [figure.count(f'class="rate b{number}"') for number in (1, 2, 3, 4)] == [2, 2, 2, 0], "a line and a name each"
    card = text[text.index('<details class="card"') :]
    table = seen(card[card.index("<table") : card.index("</table>") + len("</table>")])
    assert [row[0] for row in table.rows] == ["Broker", "broker 1", "broker 2", "broker 3"]


def test_every_link_of_the_page_leads_to_something() -> None:
    text = view_html(backtest_view(full(), page=True))
    found = page(text)
    ids = [value for _, key, value in found.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, key, value in found.attributes if key == "href" and value} <= set(ids)
    assert {anchor(one) for one in full().verdicts[:4]} <= set(ids)


def test_the_answer_is_the_heading_and_what_was_not_checked_stands_before_the_rest() -> None:
    found = page(view_html(backtest_view(full(), page=True)))
    assert [words for element, words in found.texts if element == "h1"] == [
        "The proposed quotas would have throttled 1 of 4 quota groups whose limit changes."
    ]
    headings = [words for element, words in found.texts if element == "h2"]
    assert headings == ["Changed by this proposal (4)", "Evidence", "Findings (1)", "More"]
    folds = [words for element, words in found.texts if element == "summary"]
    assert {"Notes (1)", "Assumed (1)"} <= set(folds)


def test_the_card_names_owner_place_and_commit() -> None:
    alice = Entity.of({"user": "alice"})
    report = dataclasses.replace(
        report_of(verdict()),
        commit=ManifestCommit(commit="0123456789abcdef", dirty=True),
        declared=DeclaredQuotas(
            sources={(alice, "producer_byte_rate"): Span(file="teams/a.yaml", line=7, column=3)}, owner_of={alice: "team-a"}
        ),
    )
    text = page(view_html(backtest_view(report, page=True))).text()
    assert "owner team-a" in text
    assert "teams/a.yaml:7" in text
    assert "Commit 0123456789ab with changes that are not committed" in text


def figure_of(text: str) -> str:
    return text[text.index("<figure") : text.index("</figure>")]


def test_a_plot_lifts_its_line_where_nothing_was_recorded() -> None:
    whole = rates(20)
    gap = dataclasses.replace(whole, recorded=tuple(not 5 <= n < 15 for n in range(20)))
    drawn = figure_of(view_html(backtest_view(report_of(verdict(rates=gap)), page=True)))
    (path,) = re.findall(r'class="rate b1" d="([^"]*)"', drawn)
    assert path.count("M") == 2
    assert '<rect class="gap" x="250" y="0" width="500"' in drawn
    assert "50 % of the time not recorded" in drawn
    without = figure_of(view_html(backtest_view(report_of(verdict(rates=whole)), page=True)))
    (path,) = re.findall(r'class="rate b1" d="([^"]*)"', without)
    assert path.count("M") == 1
    assert path.count("L") == 19
    assert "not recorded" not in without


def test_a_broker_keeps_its_colour_on_each_card() -> None:
    rows = [
        verdict(user=user, broker=broker, verdict=Verdict.THROTTLED, rates=rates(), seconds_over=over)
        for user, broker, over in (("a", 7, 1), ("a", 9, 5), ("b", 9, 1))
    ]
    report = report_of(*rows)
    (one,) = report.provenance.coverage
    coverage = tuple(dataclasses.replace(one, broker=broker) for broker in (7, 9))
    report = dataclasses.replace(report, provenance=dataclasses.replace(report.provenance, coverage=coverage))
    first, second = re.findall(r"<figure.*?</figure>", view_html(backtest_view(report, page=True)), re.DOTALL)
    assert re.findall(r'class="rate (b\d)" d="[^"]*"/></svg> broker (\d)', first) == [("b1", "7"), ("b2", "9")]
    assert re.findall(r'class="rate (b\d)"', second) == ["b2"]


def test_a_plot_has_a_unit_moments_and_a_label_for_each_limit() -> None:
    one = verdict(
        verdict=Verdict.THROTTLED,
        limits_before=(8 * MIB,),
        limit_after=2 * MIB,
        safe=5.25 * MIB,
        rates=dataclasses.replace(rates(), rate=(4 * MIB,) * 240),
    )
    figure = figure_of(view_html(backtest_view(report_of(one), page=True)))
    labels = re.findall(r"<text[^>]*>(.*?)</text>", figure)
    assert labels[0] == "MiB/s"
    assert {"now 8 MiB/s", "safe 5.25 MiB/s", "proposed 2 MiB/s", "20 Nov 08:00", "16:00"} <= set(labels)
    assert [figure.count(f'class="line {style}"') for style in ("now", "proposed", "safe")] == [1, 1, 1]
    assert "Limits: now 8 MiB/s, proposed 2 MiB/s, safe 5.25 MiB/s." in figure


def test_a_limit_far_above_the_traffic_is_named_and_does_not_flatten_the_drawing() -> None:
    figure = figure_of(view_html(backtest_view(report_of(verdict(limit_after=1024 * MIB, rates=rates())), page=True)))
    assert "\N{UPWARDS ARROW} proposed 1 GiB/s" in figure
    assert 'class="line proposed"' not in figure


def test_one_second_of_history_and_no_history_are_drawn() -> None:
    second = RateSeries(
        start=START, step_s=1, rate=(5.0,), upper=(5.0,), over=(0,), possible=(0,), over_before=None, recorded=(True,)
    )
    text = view_html(backtest_view(report_of(verdict(rates=second, safe=None, recommended=None)), page=True))
    assert re.findall(r'class="rate b1" d="([^"]*)"', text)[0].startswith("M0 ")
    nothing = view_html(backtest_view(report_of(), page=True))
    assert "No limit of a recorded client changes." in page(nothing).text()
    assert "<figure" not in nothing


@pytest.mark.bulk
def test_a_page_of_2500_groups_has_a_bound() -> None:
    many = [verdict(user=f"user-{n:05}", verdict=Verdict.THROTTLED, rates=rates()) for n in range(2500)]
    text = view_html(backtest_view(report_of(*many), page=True))
    assert text.count('<details class="card"') == 40
    assert "500 more quota groups are in the JSON report." in text
    assert len(text) < 4_000_000


def test_a_name_of_20000_letters_takes_a_paragraph_and_not_a_page() -> None:
    long = "x" * 20_000
    text = view_html(backtest_view(report_of(verdict(user=long, members=(member(long),), rates=rates())), page=True))
    assert len(re.findall("x+", text)) > 1
    assert max(map(len, re.findall("x+", text))) <= 300
    assert "letters)" in page(text).text()
