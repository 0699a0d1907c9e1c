"""The page of a report in a real Chromium: what is seen, by whom, and what the browser lets it do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import report_world
from tests.support.axe import axe_script, violations
from tests.support.chromium import Chromium, chromium, complaints
from tests.support.report_world import write_page as write

pytestmark = pytest.mark.interop

NOTHING = "\N{EN DASH}"
ASKED = "#who?cluster=prod-eu&state=live&user=payments-api&client=settlement"
WIDTHS = (320, 360, 704, 720, 800, 1024, 1150, 1210, 1280, 1920)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as started:
        yield started


@pytest.fixture
def company(tmp_path: Path) -> Path:
    return write(tmp_path, report_world.company())


@pytest.mark.parametrize("overview", ["company", "hostile"])
def test_nothing_is_loaded_and_the_browser_has_no_complaint(browser: Chromium, tmp_path: Path, overview: str) -> None:
    path = write(tmp_path, report_world.company() if overview == "company" else report_world.hostile())
    browser.look(width=1280)
    browser.open(path, ASKED)
    asked_for = [said["request"]["url"] for name, said in browser.said if name == "Network.requestWillBeSent"]
    assert [one.partition("#")[0] for one in asked_for] == [path.as_uri()]
    assert complaints(browser) == []
    assert browser.evaluate("document.querySelectorAll('script').length") == 2


@pytest.mark.parametrize(
    ("attempt", "directive"),
    [
        ("new Image().src = 'http://127.0.0.1:9/x'", "img-src"),
        ("add('script', 'window.evil = 1')", "script-src-elem"),
        ("add('style', 'body {color: red}')", "style-src-elem"),
        ("document.body.setAttribute('onclick', 'window.evil = 1'); document.body.click()", "script-src-attr"),
        ("fetch('http://127.0.0.1:9/x').catch(() => 0)", "connect-src"),
        ("const form = document.forms[0]; form.action = 'http://127.0.0.1:9/x'; form.submit()", "form-action"),
    ],
)
def test_whatever_would_get_in_could_do_nothing(browser: Chromium, company: Path, attempt: str, directive: str) -> None:
    browser.open(company)
    refused = browser.evaluate(
        "new Promise((done) => {"
        "document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));"
        "const add = (tag, text) => document.head.append(Object.assign(document.createElement(tag), {textContent: text}));"
        f"{attempt}; }})"
    )
    assert refused == directive
    assert browser.evaluate("window.evil === undefined")


# Who looks at it: with a telephone, a keyboard, a screen reader, in the dark, on paper.


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_script(tmp_path_factory.mktemp("axe"))


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (420, False)])
def test_no_rule_of_axe_is_broken(browser: Chromium, company: Path, axe: str, width: int, *, dark: bool) -> None:
    browser.look(width=width, dark=dark)
    browser.open(company, ASKED)
    assert violations(browser, axe) == []


@pytest.mark.parametrize("which", ["company", "hostile"])
def test_no_width_scrolls_sideways(browser: Chromium, tmp_path: Path, which: str) -> None:
    path = write(tmp_path, report_world.company() if which == "company" else report_world.hostile())
    for width in WIDTHS:
        browser.look(width=width)
        browser.open(path, ASKED)
        assert browser.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [width, width]


FOCUS = """() => {
  const one = document.activeElement;
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  const what = one === document.body ? "BODY" : one.id || one.textContent.trim();
  return {what, outline: style.outlineStyle, width: parseFloat(style.outlineWidth), seen: box.width > 0 && box.right > 0};
}"""


def test_a_screen_reader_is_given_landmarks_headings_tables_and_labels(browser: Chromium, company: Path) -> None:
    browser.look(width=360)
    browser.open(company, ASKED)
    tree = browser.accessible()
    roles = [node["role"] for node in tree]
    for role, number in {"banner": 1, "main": 1, "contentinfo": 1, "navigation": 1}.items():
        assert roles.count(role) == number, role
    levels = [node["level"] for node in tree if node["role"] == "heading"]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    controls = ("textbox", "searchbox", "combobox", "checkbox", "button", "link", "region", "navigation")
    assert [node for node in tree if node["role"] in controls and not node["name"]] == []
    heads = {node["name"] for node in tree if node["role"] == "columnheader"}
    assert {"Cluster", "Level", "producer_byte_rate", "Declared at"} <= heads


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


CONTRASTS = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const read = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => {
    const [r, g, b] = color.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let place = one; place; place = place.parentElement) {
      const color = read(getComputedStyle(place).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const one of document.querySelectorAll("body *")) {
    const says = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!says || !one.getClientRects().length || one.closest(":disabled, svg")) continue;
    const [a, b] = [light(read(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), one.tagName + "." + one.className + ": " + one.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_all_text_has_the_contrast_that_wcag_asks_for(browser: Chromium, company: Path, width: int, dark: bool) -> None:
    browser.look(width=width, dark=dark)
    browser.open(company, ASKED)
    found = browser.run(CONTRASTS)
    assert len(found) > 150
    assert [one for one in found if one[0] < 4.5] == []


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
    for words in ("This needs the script of the page.", "could not be read", "changed by hand", "guard-refused", "144"):
        assert words in text
    assert "Type a user" not in text
    browser.look(width=1280)
