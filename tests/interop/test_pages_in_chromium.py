"""Every page in a real Chromium: on a phone, in the dark, with names chosen to break it, and with nothing loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.features.insight.report_page import report_html
from reconciler.render.backtest_text import backtest_view
from reconciler.render.html_page import view_html
from reconciler.render.plan_text import plan_view
from tests.interop.test_backtest_page_in_chromium import report
from tests.support import report_world
from tests.support.axe import axe_script, violations
from tests.support.backtest_reports import full
from tests.support.chromium import Chromium, complaints
from tests.unit.render.test_page import PLAN

pytestmark = pytest.mark.interop

ASKED = "#who?cluster=prod-eu&state=live&user=payments-api&client=settlement"
"""A question to a report; other pages ignore it."""
WIDTHS = (320, 360, 704, 720, 800, 1024, 1150, 1210, 1280, 1920)
HIDDEN = """[...document.querySelectorAll('p, li, td, dd, dt, h1, h2, h3, summary')]
  .filter((one) => one.getClientRects().length && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.textContent.slice(0, 60))"""
PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: report_html(report_world.company()),
    "report of hostile names": lambda: report_html(report_world.hostile()),
    "backtest": lambda: view_html(backtest_view(full(), page=True)),
    "backtest of hostile names": lambda: view_html(backtest_view(report(), page=True)),
    "plan": lambda: view_html(plan_view(PLAN)),
}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGES[request.param](), encoding="utf-8")
    return path


def test_nothing_is_loaded_and_the_browser_has_no_complaint(browser: Chromium, page: Path) -> None:
    browser.look(width=1280)
    browser.open(page, ASKED)
    asked_for = [said["request"]["url"] for name, said in browser.said if name == "Network.requestWillBeSent"]
    assert [one.partition("#")[0] for one in asked_for] == [page.as_uri()]
    assert complaints(browser) == []


def test_nothing_is_wider_than_the_window(browser: Chromium, page: Path) -> None:
    for width in WIDTHS:
        browser.look(width=width)
        browser.open(page, ASKED)
        assert browser.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [width, width]
        assert browser.evaluate(HIDDEN) == []


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_script(tmp_path_factory.mktemp("axe"))


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (420, False)])
def test_no_rule_of_axe_is_broken(browser: Chromium, page: Path, axe: str, width: int, *, dark: bool) -> None:
    browser.look(width=width, dark=dark)
    browser.open(page, ASKED)
    assert violations(browser, axe) == []
