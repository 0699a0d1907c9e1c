"""The documentation builds into a site without a warning, holds a page for everything, and a dead link stops it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from reconciler.cli.registry import commands
from reconciler.client import TRAFFIC_SCHEMA
from reconciler.workflows.explain import explanations
from tests.support.site import build, copy_sources

ROOT = Path(__file__).parents[2]
PLAIN = "html_theme=basic"
"""The theme of the site takes more than half of the time, and none of these tests is about its looks."""


DEAD = ("no-such-page.md", "reference/ids/no-such-id.md", "reference/ids.md#no-such-chapter", "#no-such-heading")
"""Links at the end of ``refused-input.md`` in the copy that is built."""


Built = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The folder of the site, and how its build ended."""
    checkout = copy_sources(tmp_path_factory.mktemp("checkout"))
    page = checkout / "docs" / "refused-input.md"
    page.write_text("\n\n".join((page.read_text("utf-8"), *(f"[a]({link})" for link in DEAD))), "utf-8")
    return checkout / "site", build(checkout / "docs", checkout / "site", PLAIN)


@pytest.fixture(scope="module")
def site(built: Built) -> Path:
    return built[0]


def test_every_command_has_a_page_with_its_options(site: Path) -> None:
    pages = {name: (site / "reference" / "commands" / f"{name}.html").read_text("utf-8") for name in commands()}

    assert "--trusted-ref" in pages["plan"]
    assert '<section id="sandbox-run">' in pages["sandbox"]
    index = (site / "reference" / "commands.html").read_text("utf-8")
    assert [name for name in commands() if f'href="commands/{name}.html"' not in index] == []


def test_every_id_has_a_page_and_is_listed(site: Path) -> None:
    index = (site / "reference" / "ids.html").read_text("utf-8")

    for one in explanations():
        assert f"<h1>{one}<" in (site / "reference" / "ids" / f"{one}.html").read_text("utf-8")
        assert f'href="ids/{one}.html"' in index, one


def test_every_schema_has_a_page_with_its_required_fields(site: Path) -> None:
    pages = {path: path.read_text("utf-8") for path in (site / "reference" / "documents").glob("*.html")}

    for path in (ROOT / "schemas").glob("*.json"):
        page = next(text for text in pages.values() if f">{path.name}<" in text)
        for field in json.loads(path.read_text("utf-8")).get("required", ()):
            assert f">{field}<" in page, (path.name, field)


def test_every_column_of_recorded_traffic_is_listed(site: Path) -> None:
    page = (site / "reference" / "tables.html").read_text("utf-8")
    assert re.findall(r"<tr[^>]*>\s*<td><p><code[^>]*><span[^>]*>(\w+)<", page) == [column.name for column in TRAFFIC_SCHEMA]


def test_nothing_in_the_reference_is_without_a_description(site: Path) -> None:
    for path in (*(site / "reference" / "documents").glob("*.html"), *(site / "reference" / "commands").glob("*.html")):
        page = path.read_text("utf-8")
        descriptions = re.findall(r"<dd>(.*?)</dd>", page, re.DOTALL)
        assert descriptions or "<dl" not in page.partition('<div class="body"')[2].partition("</body>")[0], path
        plain = [re.sub(r"<em>[^<]*(?:<code.*?</code>[^<]*)*</em>\.|<[^>]+>|\s", "", one) for one in descriptions]
        assert [one for one, text in zip(descriptions, plain, strict=True) if not text] == [], path


def test_a_link_that_leads_nowhere_stops_the_build_and_nothing_else_does(built: Built) -> None:
    done = built[1]
    reported = done.stderr.splitlines()
    assert done.returncode != 0
    assert ["refused-input.md" in line for line in reported] == [True] * len(DEAD), done.stderr
    for link in DEAD:
        assert any(link.partition("#")[2] or link in line for line in reported), (link, done.stderr)


def test_every_page_has_words_for_the_search_and_every_word_a_page(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    lines = tomllib.loads((ROOT / "docs" / "search_words.toml").read_text("utf-8"))

    assert pages - set(lines) == set()
    assert [name for name in lines if not (site / f"{name}.html").exists()] == []
    assert '"bandwidth":' in (site / "searchindex.js").read_text("utf-8")
