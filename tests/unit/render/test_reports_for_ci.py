"""Code Quality, JUnit, outputs and summaries: the forms that CI systems read, with strangers' names in them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from reconciler.cli.results import SUMMARY_BUDGET, list_of_findings, page
from reconciler.formats.canonical import document_text
from reconciler.model.cluster import Prune
from reconciler.model.drift import Drift, DriftClass, EntityDrift, KeyDrift
from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import GuardResult, GuardStatus
from reconciler.model.state import ClusterIdentity
from reconciler.render.ci_reports import (
    MOST_CASES,
    drift_outputs,
    findings_outputs,
    plan_outputs,
    render_code_quality,
    render_junit,
)
from reconciler.render.derived_findings import findings_of_drift
from reconciler.render.drift_text import drift_view
from reconciler.render.findings_text import findings_view
from reconciler.render.markdown_writer import view_markdown
from reconciler.render.repository_links import RepoPaths
from tests.builders import NOON, plan, span, user
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github

CODE_QUALITY = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/.]"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}
"""The fields that GitLab's documentation lists as required, and the values it allows."""


COUNTS = {"name", "tests", "failures", "errors", "skipped"}
ATTRIBUTES = {
    "testsuites": COUNTS,
    "testsuite": COUNTS,
    "testcase": {"classname", "name", "file", "line"},
    "failure": {"message", "type"},
    "skipped": {"message"},
}
"""What readers of JUnit XML know; pytest and others write these, too."""


def finding(severity: Severity = Severity.ERROR, line: int = 1, file: str = "./a.yaml", message: str = "words") -> Finding:
    return Finding(id="some-rule", severity=severity, message=message, span=span(line, file, 7))


def drift(*entities: EntityDrift) -> Drift:
    from reconciler.model.plan import ManifestCommit
    from reconciler.model.state import Observed, ObservedFrom

    return Drift(
        cluster=ClusterIdentity(name="prod", id="c1"),
        source=ManifestCommit(),
        observed=Observed(at=NOON, origin=ObservedFrom.BROKER),
        complete=True,
        prune=Prune.CONFIRM,
        baseline=None,
        entities=entities,
        counts={each: sum(one.drift is each for one in entities) for each in DriftClass},
    )


def drifted(name: str, kind: DriftClass = DriftClass.CHANGED) -> EntityDrift:
    key = KeyDrift(key="producer_byte_rate", desired=1024.0, baseline=None, live=2048.0, source=span(9))
    return EntityDrift(entity=user(name), drift=kind, keys=(key,), source=span(8))


def suite_of(text: str) -> ET.Element:
    """The one suite of a report, whose counts must be true."""
    root = ET.fromstring(text)
    assert root.tag == "testsuites"
    (suite,) = root
    cases = list(suite)
    assert {case.tag for case in cases} == {"testcase"}
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
    assert all(case.get("name") and case.get("classname") for case in cases)
    for counted in (root, suite):
        assert int(counted.get("tests", "")) == len(cases)
        assert int(counted.get("failures", "")) == len(suite.findall("testcase/failure"))
        assert int(counted.get("skipped", "")) == len(suite.findall("testcase/skipped"))
    return suite


def test_a_code_quality_report_has_what_gitlab_requires_the_worst_first() -> None:
    report = render_code_quality(
        (finding(Severity.INFO, 1), finding(Severity.WARNING, 2), finding(Severity.ERROR, 3)), places=RepoPaths()
    )
    jsonschema.validate(report, CODE_QUALITY)
    assert [(one["severity"], one["location"]) for one in report] == [  # type: ignore[call-overload, index]  # as the schema says
        ("critical", {"path": "a.yaml", "lines": {"begin": 3}}),
        ("minor", {"path": "a.yaml", "lines": {"begin": 2}}),
        ("info", {"path": "a.yaml", "lines": {"begin": 1}}),
    ]


def test_fingerprints_differ_between_equal_issues_and_stay_when_lines_move() -> None:
    def prints(*found: Finding) -> list[str]:
        return [str(one["fingerprint"]) for one in json.loads(document_text(render_code_quality(found)))]

    assert len(set(prints(finding(), finding(line=5), finding(line=9)))) == 3
    assert prints(finding(line=1), finding(line=2)) == prints(finding(line=31), finding(line=32))


def test_what_has_no_place_is_still_shown_somewhere() -> None:
    report = render_code_quality((Finding(id="no-manifests", severity=Severity.ERROR, message="x"),))
    jsonschema.validate(report, CODE_QUALITY)
    assert render_code_quality(()) == []


def test_an_error_fails_a_case_and_anything_less_is_skipped() -> None:
    related = (Related(span=span(2, "b.yaml"), message="first claimed here"),)
    bad = Finding(id="some-rule", severity=Severity.ERROR, message="words", span=span(3), related=related)
    suite = suite_of(render_junit((finding(Severity.WARNING), bad, finding(Severity.INFO)), name="x"))
    failed, *others = suite
    assert (failed.get("classname"), failed.get("file"), failed.get("line")) == ("some-rule", "quotas.yaml", "3")
    assert failed[0].get("message") == "words"
    assert "b.yaml:2:1: first claimed here" in str(failed[0].text)
    assert [case[0].tag for case in others] == ["skipped", "skipped"]


def test_a_run_without_errors_is_a_report_with_one_case_that_passes() -> None:
    (only,) = suite_of(render_junit((), name="kafka-quotas validate"))
    assert (only.get("name"), len(only)) == ("no errors", 0)
    assert [len(case) for case in suite_of(render_junit((finding(Severity.WARNING),), name="x"))] == [1, 0]


def test_a_report_of_very_many_findings_is_cut_and_says_so() -> None:
    found = [finding(Severity.WARNING, line) for line in range(1, MOST_CASES + 11)]
    suite = suite_of(render_junit((*found, finding(Severity.ERROR)), name="x"))
    assert len(suite) == MOST_CASES + 1
    assert len(suite.findall("testcase/failure")) == 1
    assert suite[-1].get("name") == "11 more findings have no room here"


@pytest.mark.parametrize("name", [*HOSTILE, "]]>", "\x00", "\x1b[2J", "￾", "\ud800", "<failure>"], ids=ascii)
def test_no_name_breaks_a_report(name: str) -> None:
    found = (
        Finding(
            id="some-rule", severity=Severity.ERROR, message=f"about {name}", span=span(1, f"dir/{name}.yaml"), entity=user(name)
        ),
    )
    suite = suite_of(render_junit(found, name=name))
    assert len(suite) == 1
    jsonschema.validate(json.loads(list_of_findings("code-quality", found)), CODE_QUALITY)
    changed = drift(drifted(name))
    page = by_github(view_markdown(drift_view(changed), budget=SUMMARY_BUDGET))
    assert page.elements.count("tr") == 2
    assert all(re.fullmatch(r"[a-z_]+=[\w.:,-]*", line) for line in drift_outputs(changed).splitlines())


def test_outputs_are_one_line_a_value_and_name_no_cluster() -> None:
    tripped = GuardResult(
        id="default-entity", status=GuardStatus.NEEDS_ACCEPTANCE, measured="1", limit="0", set_in="built in", message="m"
    )
    text = plan_outputs(plan(guards=(tripped,), findings=(finding(Severity.WARNING),), cluster=ClusterIdentity(name="a\nb=c")))
    values = dict(line.split("=", 1) for line in text.splitlines())
    assert values["digest"] == "sha256:" + "0" * 64
    assert (values["changes"], values["applyable"], values["guards"]) == ("0", "false", "default-entity")
    assert (values["errors"], values["warnings"], values["complete"]) == ("0", "1", "true")
    assert findings_outputs((finding(),)) == "errors=1\nwarnings=0\ninfos=0\n"
    assert "drifted=true\n" in drift_outputs(drift(drifted("a")))
    assert "drifted=false\n" in drift_outputs(drift(drifted("a", DriftClass.UNMANAGED)))


def test_drift_is_a_warning_where_the_manifest_declares_it_and_unmanaged_is_none() -> None:
    found = findings_of_drift(drift(drifted("a"), drifted("b", DriftClass.UNMANAGED), drifted("c", DriftClass.MISSING)))
    assert [(one.id, one.severity, one.span) for one in found] == [
        ("drift/changed", Severity.WARNING, span(8)),
        ("drift/missing", Severity.WARNING, span(8)),
    ]
    assert found[0].message == "user=a: producer_byte_rate is 2 KiB/s on the cluster, declared 1 KiB/s"


def test_a_summary_of_very_much_drift_keeps_to_its_size_and_counts_the_rest() -> None:
    text = view_markdown(drift_view(drift(*(drifted(f"user-{number}") for number in range(3000)))), budget=60_000)
    assert len(text.encode()) <= 60_000
    left_out = int(re.findall(r"\*\*([\d,]+) rows have no room here", text)[0].replace(",", ""))
    assert text.count("(changed: ") == 3000 - left_out > 100


def test_a_summary_lists_the_first_undeclared_entities_and_counts_the_rest() -> None:
    many = (drifted(f"user-{number:04}", DriftClass.UNMANAGED) for number in range(2010))
    text = view_markdown(drift_view(drift(*many)), budget=60_000)
    assert text.count("- `user=user-") == 10
    assert "- and 2,000 more. `--show-unmanaged` lists all" in text
    assert "2,010 unmanaged" in text


@pytest.mark.bulk
def test_a_summary_of_very_many_findings_keeps_to_its_size_and_counts_the_rest() -> None:
    text = page(findings_view([finding(line=line, message="words " * 30) for line in range(1, 9001)]), "summary", None)
    assert 900_000 < len(text.encode()) <= SUMMARY_BUDGET
    left_out = int(re.findall(r"\*\*([\d,]+) rows have no room here", text)[0].replace(",", ""))
    assert text.count("some-rule") == 9000 - left_out
