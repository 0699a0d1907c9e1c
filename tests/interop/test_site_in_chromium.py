"""The documentation in a real Chromium: what its search finds, what its copy buttons copy, and how wide it is on a phone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.chromium import Chromium
from tests.support.site import build, copy_sources, served

pytestmark = pytest.mark.interop

PHONE = 420
UNTIL_S = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkout = copy_sources(tmp_path_factory.mktemp("checkout"))
    done = build(checkout / "docs", checkout / "site")
    assert (done.returncode, done.stderr) == (0, "")
    return checkout / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


def visit(browser: Chromium, url: str) -> None:
    browser.said.clear()
    browser.call("Page.navigate", url=url)
    browser.event("Page.loadEventFired")


def search(browser: Chromium, address: str, query: str) -> list[str]:
    """The pages that the site's own search lists, the best first."""
    visit(browser, f"{address}/search.html?q={quote(query)}")
    until = time.monotonic() + UNTIL_S
    while not browser.evaluate(
        "/found|did not match/.test(document.querySelector('#search-results .search-summary')?.textContent)"
    ):
        assert time.monotonic() < until, "the search did not end"
    links = browser.evaluate(
        "[...document.querySelectorAll('#search-results ul.search > li > a')].map((a) => a.getAttribute('href'))"
    )
    return [link.partition("#")[0].partition("?")[0] for link in links]


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("add quota", "change-a-quota.html"),
        ("how do I add a quota for my team", "change-a-quota.html"),
        ("raise limit", "change-a-quota.html"),
        ("increase limit", "change-a-quota.html"),
        ("bandwidth", "change-a-quota.html"),
        ("throughput", "change-a-quota.html"),
        ("temporary limit", "change-a-quota.html"),
        ("expiring quota", "change-a-quota.html"),
        ("remove a limit", "change-a-quota.html"),
        ("roll back", "emergency.html"),
        ("rollback", "emergency.html"),
        ("undo", "emergency.html"),
        ("upgrade", "install.html"),
        ("docker", "install.html"),
        ("adopt", "adopt-a-cluster.html"),
        ("drift", "adopt-a-cluster.html"),
        ("enable request log", "record-traffic.html"),
        ("mtls", "secured-clusters.html"),
        ("acl", "secured-clusters.html"),
        ("slow client", "why.html"),
        ("consumer lag", "why.html"),
        ("slack", "monitor.html"),
        ("policy", "guards.html"),
        ("review a pull request", "pull-requests.html"),
        ("group of users", "totals-and-groups.html"),
        ("many teams", "teams.html"),
        ("airflow", "from-python.html"),
        ("throttle time", "how-kafka-throttles.html"),
        ("json schema", "reference/documents.html"),
        ("exit codes", "reference/commands.html"),
        ("large-reduction", "reference/ids/large-reduction.html"),
    ],
)
def test_the_first_hit_of_a_search_is_the_page_for_it(browser: Chromium, address: str, query: str, page: str) -> None:
    assert search(browser, address, query)[:1] == [page]


def test_no_page_is_wider_than_a_phone(browser: Chromium, site: Path, address: str) -> None:
    browser.look(width=PHONE)
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    assert len(pages) > 200
    wide = {}
    for page in pages:
        visit(browser, f"{address}/{page}")
        width = browser.evaluate("document.documentElement.scrollWidth")
        if width > PHONE:
            wide[page] = width
    assert wide == {}


COPY = """(text) => new Promise((done) => {
  const code = [...document.querySelectorAll("div.highlight pre")].find((one) => one.textContent.includes(text));
  document.addEventListener("copy", () => done(document.activeElement.value), {once: true});
  code.parentElement.querySelector("button.copybtn").focus();
  setTimeout(() => done(null), 20000);
})"""


def copied(browser: Chromium, text: str) -> str | None:
    """What the copy button of the first block with this text copies, pressed with the keyboard."""
    browser.evaluate(f"window.copied = ({COPY})({text!r}); 0")
    browser.press("Enter", code=13, text="\r")
    found: str | None = browser.evaluate("window.copied")
    return found


@pytest.mark.parametrize(
    ("page", "text", "starts", "excluded"),
    [
        ("tutorial", "validate quotas", ["kafka-quotas validate quotas"], r"(?m)^(?!kafka-quotas ).+"),
        ("ci", "--ci gitlab", ["kafka-quotas init quotas --ci gitlab ", "--bootstrap-server b1:9092 "], r"\$ kafka"),
        ("change-a-quota", "kind: ClientQuotas", ["apiVersion: kafka-quotas/v1", "kind: ClientQuotas"], "^$"),
    ],
    ids=["no prompt and no output", "continued lines", "a manifest whole"],
)
def test_a_copy_button_copies_what_a_user_pastes(
    browser: Chromium, address: str, page: str, text: str, starts: list[str], excluded: str
) -> None:
    browser.look(width=1280)
    visit(browser, f"{address}/{page}.html")
    found = (copied(browser, text) or "").strip()
    lines = found.splitlines()
    assert [line.strip().startswith(start) for line, start in zip(lines, starts, strict=False)] == [True] * len(starts)
    assert re.search(excluded, found) is None
