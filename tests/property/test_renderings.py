"""Whatever a stranger calls a client: every rendering stays whole, shows the name, and reads nothing into it."""

from __future__ import annotations

import dataclasses
import json
import re

from hypothesis import given

from reconciler.cli.results import result_of_plan
from reconciler.model.entity import escaped
from reconciler.model.plan import GuardStatus, ManifestCommit, Plan
from reconciler.model.state import ClusterIdentity
from reconciler.render.html_page import view_html
from reconciler.render.markdown import code, in_cell, prose, view_markdown
from reconciler.render.plan_text import plan_view
from reconciler.render.terminal import plain
from tests.builders import user
from tests.support.hostile_names import NAMES
from tests.support.markdown_views import by_github, by_markdown_it, seen
from tests.support.random_plans import PLANS, all_hostile, everything_called

TAGS = frozenset("h3 h4 p strong code ul li table thead tbody tr th td br details summary".split())  # noqa: SIM905 - a list of that many strings is a column


@all_hostile
@given(NAMES)
def test_in_markdown_a_name_is_the_text_of_one_cell_and_nothing_else(name: str) -> None:
    markdown = view_markdown(plan_view(everything_called(name)))
    for page in (by_github(markdown), by_markdown_it(markdown)):
        assert set(page.elements) <= TAGS
        assert not page.comments
        head, gone, changed = page.rows
        assert len(head) == len(gone) == len(changed)
        assert gone[0] == changed[0] == str(user(name))
        loose = page.outside("code")
        for sign in ("@", "#", "://", "www.", "`", "$", "|", "[", "<"):
            assert sign not in loose, loose


@all_hostile
@given(NAMES)
def test_prose_keeps_its_words_and_becomes_nothing_but_text_and_code(text: str) -> None:
    wanted = "".join(escaped(" ".join(text.splitlines())).split())
    for view in (by_github, by_markdown_it):
        page = view(f"- x {prose(text)}")
        assert set(page.elements) <= {"ul", "li", "code"}
        assert "".join(page.text().split()) == f"x{wanted}"
        cell = view(f"| a | b |\n| --- | --- |\n| {in_cell(prose(text))} | {in_cell(code(text))} |\n")
        assert [len(row) for row in cell.rows] == [2, 2]
        assert "".join(cell.rows[1][0].split()) == wanted
        assert cell.rows[1][1].strip() == escaped(text).strip()


@given(PLANS)
def test_no_rendering_says_that_nothing_changes_unless_it_is_so(one: Plan) -> None:
    quiet = dataclasses.replace(one, notes=(), guards=(), findings=(), cluster=ClusterIdentity(), source=ManifestCommit())
    for text in (plain(plan_view(quiet).lines), view_markdown(plan_view(quiet)), view_html(plan_view(quiet))):
        assert ("No changes" in text) is not bool(one.changes)


@all_hostile
@given(NAMES)
def test_an_annotation_is_one_line_that_reads_back(name: str) -> None:
    lines = str(result_of_plan(everything_called(name)).forms["github"]()).split("\n")
    assert lines.pop() == ""
    assert len(lines) == 3
    error, warning, notice = (re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line) for line in lines)
    assert error is not None
    assert notice is not None
    assert warning is not None
    assert all(line.isprintable() for line in lines)
    properties = dict(pair.split("=", 1) for pair in warning[2].split(","))
    assert set(properties) == {"file", "line", "col", "title"}
    assert decoded(warning[3]).startswith(f"it changes {user(name)}, ")
    breaks = escaped(name.replace("\r", "\x00r").replace("\n", "\x00n")).replace("\\u0000r", "\r").replace("\\u0000n", "\n")
    if "\x00" not in name:
        assert decoded(warning[3]).startswith(f"it changes {user(name)}, {breaks}\n")


def decoded(text: str) -> str:
    return text.replace("%0A", "\n").replace("%0D", "\r").replace("%3A", ":").replace("%2C", ",").replace("%25", "%")


@all_hostile
@given(NAMES)
def test_a_page_holds_the_name_as_text_and_loads_and_runs_nothing(name: str) -> None:
    text = view_html(plan_view(everything_called(name)))
    assert all(c.isprintable() or c == "\n" for c in text)
    page = seen(text.removeprefix("<!DOCTYPE html>\n"))
    assert page.comments == []
    assert page.elements.count("script") == 1, "the page's own, which its policy names"
    assert not {"img", "link", "iframe", "object"} & set(page.elements)
    assert not [one for one in page.attributes if one[1].startswith("on") or one[1] in ("src", "style", "action")]
    assert all(value is not None and value.startswith("#") for _, key, value in page.attributes if key == "href")
    assert [row[0] for row in page.rows[1:]] == [str(user(name))] * 2
    assert page.text().count(str(user(name))) >= 4


@given(PLANS)
def test_sarif_is_plain_json_whatever_the_names_are(one: Plan) -> None:
    results = json.loads(str(result_of_plan(one).forms["sarif"]()))["runs"][0]["results"]
    spoken = [guard for guard in one.guards if guard.status is not GuardStatus.PASSED]
    assert len(results) == len(one.findings) + len(spoken)
    prints = [result["partialFingerprints"]["kafkaQuotasFinding/v1"] for result in results]
    assert len(set(prints)) == len(prints)
