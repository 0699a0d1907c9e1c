"""The page of a report in a real Chromium: what is seen, by whom, and what the browser lets it do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import report_world
from tests.support.chromium import Chromium
from tests.support.report_world import write_page as write

pytestmark = pytest.mark.interop

ASKED = "#who?cluster=prod-eu&state=live&user=payments-api&client=settlement"


@pytest.fixture
def company(tmp_path: Path) -> Path:
    return write(tmp_path, report_world.company())


def test_everything_can_be_done_without_a_mouse(browser: Chromium, company: Path) -> None:
    browser.look(width=1280)
    browser.open(company)
    browser.press("Tab", code=9)
    browser.press("Enter", code=13, text="\r")
    assert browser.evaluate("location.hash") == "#main"
    browser.evaluate("document.getElementById('who-user').focus()")
    browser.type("payments-api")
    assert "20 MiB/s" in browser.evaluate("document.getElementById('who-answer').textContent")
    browser.evaluate("document.getElementById('who-ip').focus()")
    browser.type("10.0.0.7")
    assert "50 connections/s" in browser.evaluate("document.getElementById('who-answer').textContent")
    reached = set()
    for _ in range(80):
        browser.press("Tab", code=9)
        reached.add(browser.evaluate("document.activeElement.id"))
        assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none" or "" in reached
    assert {"entities-search", "entities-cluster", "entities-state", "who-user", "who-none"} <= reached


def test_on_paper_there_is_what_was_read_and_nothing_to_click(browser: Chromium, company: Path) -> None:
    browser.look(width=1100, media="print")
    browser.open(company)
    shown_ = "(selector) => [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length).length"
    for selector in ("nav", "form", "#who-gets-what"):
        assert browser.run(shown_, selector) == 0, selector
    browser.open(company, ASKED)
    assert browser.run(shown_, "#who-gets-what table") == 2
    browser.look(width=1280, dark=True)
    browser.open(company)
    pages = re.findall(rb"/Type\s*/Page\b", browser.pdf())
    assert 2 <= len(pages) <= 8
    assert browser.evaluate("[...document.querySelectorAll('details')].every((one) => one.open)"), "notes are unfolded for paper"


def test_without_script_the_plain_parts_are_there(browser: Chromium, company: Path) -> None:
    browser.look(width=1280, script=False)
    browser.open(company, ready="document.documentElement.dataset.ready === undefined")
    text = browser.evaluate("document.body.innerText")
    for words in ("This needs the script of the page.", "could not be read", "differs"):
        assert words in text
    assert "Type a user" not in text
    browser.look(width=1280)
