"""Pages of a backtest and a plan in a real Chromium: on a phone, in the dark, on paper, with names chosen to break them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model import BacktestReport, Verdict
from reconciler.render.backtest_card import anchor
from reconciler.render.backtest_text import backtest_view
from reconciler.render.html_page import view_html
from tests.support.backtest_reports import member, rates, report_of, verdict
from tests.support.chromium import Chromium
from tests.support.hostile_names import HOSTILE

pytestmark = pytest.mark.interop


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
    path.write_text(view_html(backtest_view(report(), page=True)), encoding="utf-8")
    return path


def test_a_screen_reader_gets_the_answer_first_and_plots_in_words(browser: Chromium, page: Path) -> None:
    browser.look(width=1280)
    browser.open(page)
    tree = browser.accessible()
    headings = [node["name"] for node in tree if node["role"] == "heading"]
    assert headings[0].startswith("The proposed quotas would have throttled 1 of ")
    plots = [node["name"] for node in tree if node["role"] == "image"]
    assert plots[0] == (
        "Rate over time: broker 1 up to 195.3 KiB/s. Limits: now 293 KiB/s, proposed 97.66 KiB/s, safe 250 KiB/s."
    )
    assert len(plots) == 40, "as many as quota groups with a card"


def test_rows_and_cards_are_filtered_and_rows_sorted(browser: Chromium, page: Path) -> None:
    browser.look(width=1280)
    browser.open(page)
    shown = "(selector) => [...document.querySelectorAll(selector)].filter((one) => !one.hidden).length"
    rows, cards = browser.run(shown, "tr[data-find]"), browser.run(shown, "details.card")
    browser.evaluate("document.querySelector('form.filter input').focus()")
    browser.type("payments-api")
    assert (browser.run(shown, "tr[data-find]"), browser.run(shown, "details.card")) == (1, 1)
    assert browser.evaluate("document.querySelector('[role=status]').textContent") == f"1 of {rows} rows"
    browser.evaluate("document.querySelector('form.filter input').value = ''")
    browser.evaluate(
        "{ const one = document.querySelector('form.filter select'); one.value = 'possible'; "
        "one.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    assert (browser.run(shown, "tr[data-find]"), browser.run(shown, "details.card")) == (rows - 1, cards - 1)
    browser.evaluate("[...document.querySelectorAll('th button')].find((one) => one.textContent === 'Peak').click()")
    assert browser.evaluate("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "descending"
    peaks = browser.evaluate("[...document.querySelectorAll('tr[data-find]')].map((row) => Number(row.cells[3].dataset.sort))")
    assert peaks == sorted(peaks, reverse=True)


def test_a_link_unfolds_the_card_that_it_leads_to(browser: Chromium, tmp_path: Path) -> None:
    one = verdict(user="calm", rates=rates())
    path = tmp_path / "clear.html"
    path.write_text(view_html(backtest_view(report_of(one, verdict(user="other")), page=True)), encoding="utf-8")
    browser.look(width=1280)
    browser.open(path)
    assert browser.evaluate("document.querySelector('details.card').open") is False
    browser.evaluate("document.querySelector('td a, th a').click()")
    browser.evaluate("new Promise((done) => setTimeout(done, 0))")
    browser.open(path, f"#{anchor(one)}")
    assert browser.evaluate("document.querySelector('details.card').open") is True


def test_without_script_all_rows_and_cards_are_there(browser: Chromium, page: Path) -> None:
    browser.look(width=1280, script=False)
    browser.open(page, ready="document.documentElement.dataset.ready === undefined")
    assert browser.evaluate("document.querySelectorAll('form.filter:not([hidden]), th button').length") == 0
    shown = "(selector) => [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length).length"
    assert browser.run(shown, "details.card") == 40
    assert browser.run(shown, "tr[data-find]") == len(HOSTILE) + 1
    browser.look(width=1280)


def test_it_prints_without_losing_a_card(browser: Chromium, page: Path) -> None:
    browser.look(width=1280, media="print")
    browser.open(page)
    assert (
        browser.evaluate("[...document.querySelectorAll('.card-body')].filter((one) => !one.getClientRects().length).length") == 0
    )
    assert browser.evaluate("getComputedStyle(document.querySelector('figure.plot')).breakInside") == "avoid"
    browser.look(width=1280)
    assert browser.pdf().startswith(b"%PDF")
