"""Whatever a stranger calls a client: every rendering stays whole, shows the name, and reads nothing into it."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler.documents import PLAN
from reconciler.formats.canonical import document_text
from reconciler.formats.schema_check import load_schema
from reconciler.model.entity import DEFAULT, Entity, escaped
from reconciler.model.finding import Finding, Related, Severity, Span
from reconciler.model.plan import Action, Change, GuardResult, GuardStatus, KeyChange, ManifestCommit, Plan, Reason, Summary
from reconciler.model.state import ClusterIdentity, Observed, ObservedFrom
from reconciler.render.ci_reports import plan_annotations, plan_to_sarif
from reconciler.render.html_writer import view_html
from reconciler.render.markdown import BUDGET, plan_markdown
from reconciler.render.markdown_text import code, in_cell, prose
from reconciler.render.plan_text import plan_view
from reconciler.render.sticky_comment import Marker, marker_line, read_marker
from reconciler.render.terminal import plain
from tests.builders import plan, span, user
from tests.support.hostile_names import HOSTILE, NAMES, name_shown
from tests.support.markdown_views import Seen, by_github, by_markdown_it, seen

PLAN_SCHEMA = Draft202012Validator(load_schema("plan"))
OURS = {"h3", "p", "strong", "code", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}
OURS |= {"blockquote", "br", "em", "span"}
VALUES = st.one_of(st.floats(min_value=1e-3, max_value=1e18), st.sampled_from([0.0, float("inf"), 20971520.0, 2.0**63]))
SPANS = st.builds(Span, file=NAMES.filter(bool), line=st.integers(1, 10**6), column=st.integers(1, 500))
ENTITIES = st.dictionaries(
    st.sampled_from(["user", "client-id", "ip", "client-id-prefix"]), st.one_of(st.just(DEFAULT), NAMES), min_size=1
).map(Entity.of)


@st.composite
def key_changes(draw: st.DrawFn, key: str) -> KeyChange:
    before, after = draw(st.tuples(st.none() | VALUES, st.none() | VALUES).filter(lambda pair: pair[0] != pair[1]))
    reason = draw(st.sampled_from(list(Reason)))
    return KeyChange(key=key, before=before, after=after, reason=reason, source=draw(st.none() | SPANS))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    names = draw(
        st.lists(st.sampled_from(["producer_byte_rate", "request_percentage", "key|of`<the> @future"]), min_size=1, unique=True)
    )
    return Change(
        entity=draw(ENTITIES),
        action=draw(st.sampled_from(list(Action))),
        keys=tuple(draw(key_changes(name)) for name in sorted(names)),
        note=draw(st.none() | NAMES),
    )


IDS = st.sampled_from(["user-prefix", "default-entity", "too-many-removals"])
GUARDS = st.builds(
    GuardResult, id=IDS, status=st.sampled_from(list(GuardStatus)), measured=NAMES, limit=NAMES, set_in=NAMES, message=NAMES
)
FINDINGS = st.builds(
    Finding,
    id=IDS,
    severity=st.sampled_from(list(Severity)),
    message=NAMES,
    span=st.none() | SPANS,
    related=st.lists(st.builds(Related, span=SPANS, message=NAMES), max_size=2).map(tuple),
    entity=st.none() | ENTITIES,
    key=st.none() | NAMES,
)
TIMES = st.datetimes(
    min_value=datetime.datetime(2020, 1, 1), max_value=datetime.datetime(2040, 1, 1), timezones=st.just(datetime.UTC)
)
PLANS = st.builds(
    Plan,
    cluster=st.builds(ClusterIdentity, name=st.none() | NAMES, id=st.none() | NAMES, kafka_version=st.none() | NAMES),
    source=st.builds(ManifestCommit, commit=st.none() | NAMES, dirty=st.none() | st.booleans()),
    observed=st.builds(Observed, at=TIMES, origin=st.sampled_from(list(ObservedFrom))),
    complete=st.booleans(),
    summary=st.builds(Summary, **dict.fromkeys(("create", "update", "delete", "unchanged", "unmanaged"), st.integers(0, 10**6))),
    changes=st.lists(changes(), max_size=4).map(tuple),
    guards=st.lists(GUARDS, max_size=3).map(tuple),
    digest=st.just("sha256:" + "0123456789abcdef" * 4),
    notes=st.lists(NAMES, max_size=3).map(tuple),
    findings=st.lists(FINDINGS, max_size=3).map(tuple),
)


def everything_called(name: str) -> Plan:
    """A plan in which a stranger chose every word that a stranger can choose."""
    place = span(3, name or "a", 5)
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS, source=place)
    gone = KeyChange(key="producer_byte_rate", before=1.0, after=None, reason=Reason.ENTITY_NOT_IN_MANIFEST)
    message = f"it changes {user(name)}, {name}"
    return plan(
        Change(entity=user(name), action=Action.UPDATE, keys=(key,), note=name),
        Change(entity=user(name), action=Action.DELETE, keys=(gone,)),
        cluster=ClusterIdentity(name=name, id=name, kafka_version=name),
        guards=tuple(
            GuardResult(id="prune", status=status, measured=name, limit=name, set_in=name, message=message)
            for status in GuardStatus
        ),
        notes=(name,),
        findings=(
            Finding(
                id="user-prefix",
                severity=Severity.WARNING,
                message=message,
                span=place,
                related=(Related(span=place, message=name),),
                entity=user(name),
            ),
        ),
        source=ManifestCommit(commit=name, dirty=True),
    )


def all_hostile(test: Any) -> Any:
    """Every listed name is tried each time, beside the random ones."""
    for name in HOSTILE:
        test = example(name)(test)
    return test


def nothing_but_ours(page: Seen) -> None:
    assert set(page.elements) <= OURS
    assert {name for _, name, _ in page.attributes} <= {"align", "style", "class", "role", "aria-label", "open"}, page.attributes
    assert len(page.comments) == 1
    loose = page.outside("code").replace("[!", "")
    for sign in ("@", "#", "://", "www.", "`", "$", "|", "[", "<"):
        assert sign not in loose, loose


@all_hostile
@given(NAMES)
def test_in_markdown_a_name_is_the_text_of_one_cell_and_nothing_else(name: str) -> None:
    markdown = plan_markdown(everything_called(name))
    for page in (by_github(markdown), by_markdown_it(markdown)):
        nothing_but_ours(page)
        head, gone, changed = page.rows
        assert len(head) == len(gone) == len(changed) == 6
        assert gone[1] == changed[1]
        assert changed[1].removeprefix("user=") == str(user(name)).removeprefix("user=")
        assert name_shown(f"user={changed[1].removeprefix('user=')}") == name
        assert gone[2:] == ["producer", "1\xa0B/s", "removed", "not checked"]


@all_hostile
@given(NAMES)
def test_the_marker_reads_back_whatever_the_cluster_is_called(name: str) -> None:
    markdown = plan_markdown(everything_called(name))
    assert read_marker(markdown) == Marker(kind="plan", cluster=name, digest="sha256:" + "0" * 64, verdict="needs acceptance")
    line = marker_line(Marker(kind="plan", cluster=name, digest=None))
    assert line.count("-->") == 1
    assert "\n" not in line


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
def test_a_comment_keeps_to_its_budget_and_names_every_guard_and_removal(one: Plan) -> None:
    markdown = plan_markdown(one)
    assert len(markdown.encode()) <= BUDGET
    page = by_github(markdown)
    removed = sum(key.after is None for change in one.changes for key in change.keys)
    assert sum(row[4] == "removed" for row in page.rows) == removed
    blocked = [guard for guard in one.guards if guard.status is GuardStatus.NEEDS_ACCEPTANCE]
    assert page.text().count(" needs acceptance (") >= len(blocked)
    for guard in blocked:
        assert f"{guard.id} needs acceptance (kafka-quotas explain {guard.id})" in page.text()


@given(PLANS)
def test_a_plan_document_reads_back_as_the_plan(one: Plan) -> None:
    document = json.loads(PLAN.text(one))
    PLAN_SCHEMA.validate(document)
    assert PLAN.build(document) == one


@given(PLANS)
def test_no_rendering_says_that_nothing_changes_unless_it_is_so(one: Plan) -> None:
    quiet = dataclasses.replace(one, notes=(), guards=(), findings=(), cluster=ClusterIdentity(), source=ManifestCommit())
    for text in (plain(plan_view(quiet).lines), plan_markdown(quiet), view_html(plan_view(quiet))):
        assert ("No changes" in text) is not bool(one.changes)


@all_hostile
@given(NAMES)
def test_an_annotation_is_one_line_that_reads_back(name: str) -> None:
    lines = plan_annotations(everything_called(name)).split("\n")
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
    document = plan_to_sarif(one, rules={}, version="1")
    results = json.loads(document_text(document))["runs"][0]["results"]
    spoken = [guard for guard in one.guards if guard.status is not GuardStatus.PASSED]
    assert len(results) == len(one.findings) + len(spoken)
    prints = [result["partialFingerprints"]["kafkaQuotasFinding/v1"] for result in results]
    assert len(set(prints)) == len(prints)
