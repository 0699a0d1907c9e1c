"""The page of a backtest in a real Chromium: on a telephone, in the dark, on paper, with names that were chosen to break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.backtest import BacktestReport, Verdict
from reconciler.render.backtest_page import backtest_html
from tests.support.backtest_reports import member, rates, report_of, verdict
from tests.support.chromium import Chromium, chromium, complaints
from tests.support.hostile_names import HOSTILE

pytestmark = pytest.mark.interop

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HIDDEN = """[...document.querySelectorAll('p, li, td, dd, dt, h1, h2, h3, figcaption, .ends')]
  .filter((one) => one.getClientRects().length && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.textContent.slice(0, 60))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as started:
        yield started


def report() -> BacktestReport:
    hit = verdict(
        user="payments-api",
        verdict=Verdict.THROTTLED,
        seconds_over=2160,
        seconds_possible=3600,
        peak=250_000.0,
        safe=256_000.0,
        margin=0.5,
        members=tuple(member(f"user-{n}", "client-" * n) for n in range(1, 12)),
        rates=rates(),
    )
    strangers = (
        verdict(user=name, client_id=name, verdict=Verdict.POSSIBLE, seconds_possible=9, rates=rates(7)) for name in HOSTILE
    )
    return report_of(hit, *strangers)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "backtest.html"
    path.write_text(backtest_html(report()), encoding="utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_nothing_is_wider_than_the_window(browser: Chromium, page: Path, width: int, *, dark: bool) -> None:
    browser.look(width=width, dark=dark)
    browser.open(page, ready="true")
    assert browser.evaluate(OVERFLOW) == 0
    assert browser.evaluate(HIDDEN) == []


def test_nothing_is_loaded_and_the_browser_has_no_complaint(browser: Chromium, page: Path) -> None:
    browser.look(width=1280)
    browser.open(page, ready="true")
    asked_for = [said["request"]["url"] for name, said in browser.said if name == "Network.requestWillBeSent"]
    assert asked_for == [page.as_uri()]
    assert complaints(browser) == []


def test_a_plot_is_drawn_as_wide_as_the_window_and_its_words_stay_readable(browser: Chromium, page: Path) -> None:
    for width in (360, 1280):
        browser.look(width=width)
        browser.open(page, ready="true")
        drawn = browser.evaluate("document.querySelector('figure svg').getBoundingClientRect().width")
        assert drawn > 0.85 * width
        smallest = browser.evaluate(
            "Math.min(...[...document.querySelectorAll('figure *')].filter((one) => one.textContent.trim())"
            ".filter((one) => !one.closest('svg')).map((one) => parseFloat(getComputedStyle(one).fontSize)))"
        )
        assert smallest >= 12


def test_what_is_possible_is_hatched_not_only_coloured(browser: Chromium, page: Path) -> None:
    browser.look(width=1280)
    browser.open(page, ready="true")
    assert browser.evaluate("getComputedStyle(document.querySelector('.strip .possible')).fill").startswith("url(")
    assert browser.evaluate("getComputedStyle(document.querySelector('.strip .over')).fill").startswith("rgb(")


def test_a_screen_reader_is_told_what_a_plot_shows(browser: Chromium, page: Path) -> None:
    browser.look(width=1280)
    browser.open(page, ready="true")
    plots = [one["name"] for one in browser.accessible() if one["role"] == "image"]
    assert plots[0] == (
        "Rate over time of user payments-api: producer_byte_rate on broker 1: about 2160 seconds are over the proposed limit"
    )
    assert len(plots) == 40, "as many as buckets that are told at length"


def test_it_prints_without_losing_a_bucket(browser: Chromium, page: Path) -> None:
    browser.look(width=1280, media="print")
    browser.open(page, ready="true")
    assert browser.evaluate("[...document.querySelectorAll('article')].filter((one) => !one.getClientRects().length).length") == 0
    assert browser.evaluate("getComputedStyle(document.querySelector('figure.plot')).breakInside") == "avoid"
    browser.look(width=1280)
    assert browser.pdf().startswith(b"%PDF")
