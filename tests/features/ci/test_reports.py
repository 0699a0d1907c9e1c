"""Code Quality, SARIF, annotations, outputs and summaries, with strangers' names in them."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

import reconciler
from reconciler.cli.results import SUMMARY_BUDGET, result_of_plan
from reconciler.features.ci.reports import render_annotations, render_code_quality, render_sarif
from reconciler.model.cluster import Prune
from reconciler.model.drift import Drift, DriftClass, EntityDrift, KeyDrift
from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import GuardResult, GuardStatus, ManifestCommit
from reconciler.model.state import ClusterIdentity, Observed, ObservedFrom
from reconciler.render.derived_findings import drift_outputs, findings_of_drift, findings_outputs, plan_outputs
from reconciler.render.drift_text import drift_view
from reconciler.render.markdown import RepoPaths, view_markdown
from tests.builders import NOON, plan, span, user
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github
from tests.support.sarif_schema import sarif_schema


def finding(severity: Severity = Severity.ERROR, line: int = 1, file: str = "./a.yaml", message: str = "words") -> Finding:
    return Finding(id="some-rule", severity=severity, message=message, span=span(line, file, 7))


def drift(*entities: EntityDrift) -> Drift:
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


AS_GIVEN = RepoPaths()


def of_rule(rule: str = "user-prefix", line: int = 3, file: str = "teams/a.yaml", **fields: object) -> Finding:
    defaults: dict[str, object] = {"severity": Severity.WARNING, "message": "words", "span": span(line, file, 7)}
    return Finding(id=rule, **{**defaults, **fields})  # type: ignore[arg-type]  # a test names fields as it likes


def code_quality(*findings: Finding) -> list[dict[str, Any]]:
    report: list[dict[str, Any]] = json.loads(render_code_quality(findings, AS_GIVEN, {}))
    return report


def required(report: list[dict[str, Any]]) -> None:
    """Each issue has what GitLab's documentation lists as required, in the values that it allows."""
    for issue in report:
        assert issue.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["description"]
        assert re.fullmatch("[0-9a-f]{32}", issue["fingerprint"])
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert re.match("[^/.]", issue["location"]["path"])
        assert issue["location"]["lines"]["begin"] >= 1


def run_of(text: str) -> dict[str, Any]:
    """The only run of a document, after the schema had its say."""
    written = json.loads(text)
    schema = sarif_schema()
    jsonschema.validators.validator_for(schema)(schema).validate(written)
    assert written["version"] == "2.1.0"
    (run,) = written["runs"]
    return run


def findings_run(*findings: Finding, places: RepoPaths = AS_GIVEN) -> dict[str, Any]:
    return run_of(render_sarif(findings, places, {}))


def test_a_code_quality_report_has_what_gitlab_requires_the_worst_first() -> None:
    findings = (finding(Severity.INFO, 1), finding(Severity.WARNING, 2), finding(Severity.ERROR, 3))
    report = code_quality(*findings, Finding(id="no-manifests", severity=Severity.INFO, message="x"))
    required(report)
    shown = [(one["severity"], one["location"]["lines"]["begin"]) for one in report]
    assert shown == [("critical", 3), ("minor", 2), ("info", 1), ("info", 1)]
    assert code_quality() == []


def test_fingerprints_differ_between_equal_issues_and_stay_when_lines_move() -> None:
    def prints(*found: Finding) -> list[str]:
        return [str(one["fingerprint"]) for one in code_quality(*found)]

    assert len(set(prints(finding(), finding(line=5), finding(line=9)))) == 3
    assert prints(finding(line=1), finding(line=2)) == prints(finding(line=31), finding(line=32))


@pytest.mark.parametrize("name", [*HOSTILE, "]]>", "\x00", "\x1b[2J", "￾", "\ud800", "<failure>"], ids=ascii)
def test_no_name_breaks_a_report(name: str) -> None:
    found = (
        Finding(
            id="some-rule", severity=Severity.ERROR, message=f"about {name}", span=span(1, f"dir/{name}.yaml"), entity=user(name)
        ),
    )
    required(code_quality(*found))
    assert len(findings_run(*found)["results"]) == 1
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
    assert findings_outputs((finding(),)) == "errors=1\nwarnings=0\ninfos=0\nas_before=0\n"
    assert "drifted=true\n" in drift_outputs(drift(drifted("a")))
    assert "drifted=false\n" in drift_outputs(drift(drifted("a", DriftClass.UNMANAGED)))


def test_drift_is_a_warning_where_the_manifest_declares_it_and_unmanaged_is_none() -> None:
    found = findings_of_drift(drift(drifted("a"), drifted("b", DriftClass.UNMANAGED), drifted("c", DriftClass.MISSING)))
    assert [(one.id, one.severity, one.span) for one in found] == [
        ("drift/changed", Severity.WARNING, span(8)),
        ("drift/missing", Severity.WARNING, span(8)),
    ]
    assert found[0].message == "user=a: producer_byte_rate is 2 KiB/s on the cluster, declared 1 KiB/s"


def test_a_sarif_result_has_its_rule_level_region_and_related_places() -> None:
    with pytest.raises(jsonschema.ValidationError):
        run_of('{"version": "2.1.0", "runs": [{"tool": {"driver": {}}}]}')
    related = (Related(span=span(9, "b.yaml"), message="first here"),)
    run = findings_run(of_rule(related=related), of_rule("a-rule", severity=Severity.ERROR, span=None), of_rule("a-rule", 5))
    assert run["tool"]["driver"]["version"] == reconciler.__version__
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["a-rule", "user-prefix"]
    assert rules[1]["shortDescription"]["text"].endswith(".")
    assert rules[1]["help"]["text"].startswith(rules[1]["fullDescription"]["text"])
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    nowhere, result, _ = run["results"]
    assert (nowhere["level"], result["ruleId"], result["level"]) == ("error", "user-prefix", "warning")
    place = {"artifactLocation": {"uri": "teams/a.yaml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 3, "startColumn": 7}}
    assert result["locations"] == [{"physicalLocation": place}]
    assert result["relatedLocations"][0]["message"]["text"] == "first here"
    assert nowhere["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kafka-quotas.yaml"
    assert findings_run()["results"] == []


GUARDS = tuple(
    GuardResult(id=name, status=status, measured="2", limit="1", set_in=set_in, message="why")
    for name, status, set_in in (
        ("prune", GuardStatus.NEEDS_ACCEPTANCE, "clusters/prod.yaml:14:3"),
        ("default-entity", GuardStatus.ACCEPTED, "built in"),
        ("too-many-removals", GuardStatus.PASSED, "built in"),
    )
)


def test_guards_of_a_plan_are_findings_where_they_are_set() -> None:
    one = plan(guards=GUARDS)
    forms = result_of_plan(one).forms
    run = run_of(str(forms["sarif"]()))
    assert run["properties"] == {"cluster": "prod", "digest": one.digest}
    blocked, accepted = run["results"]
    assert (blocked["ruleId"], blocked["level"], accepted["level"]) == ("guard/prune", "error", "note")
    assert blocked["message"]["text"].endswith("To accept, pass --accept prune.")
    assert "kafka-quotas explain prune" in run["tool"]["driver"]["rules"][1]["help"]["text"]
    assert forms["github"]() == (
        "::warning file=clusters/prod.yaml,line=14,col=3,title=guard/prune::why To accept, pass --accept prune.\n"
        "::notice title=guard/default-entity::why\n"
    )


def prints(run: dict[str, Any]) -> list[str]:
    return [result["partialFingerprints"]["kafkaQuotasFinding/v1"] for result in run["results"]]


def test_a_fingerprint_stays_when_lines_move_and_tells_findings_apart() -> None:
    first = prints(findings_run(of_rule(line=3, entity=user("a")), of_rule(line=5, entity=user("b"))))
    moved = prints(findings_run(of_rule(line=30, entity=user("a")), of_rule(line=50, entity=user("b"))))
    assert first == moved
    assert len(set(first)) == 2
    others = [of_rule(file="b.yaml", entity=user("a")), of_rule("other", entity=user("a")), of_rule(entity=user("a"), key="k")]
    assert len({*first, *(prints(findings_run(one))[0] for one in others)}) == 5


def test_paths_are_encoded_and_relative_to_the_root() -> None:
    places = RepoPaths(working_folder="/repo/q", root="/repo")
    files = ("a b#é:%.yaml", "../b.yaml", "/repo/q/c.yaml", "../../repository/d.yaml", "/elsewhere/x.yaml")
    run = findings_run(*(of_rule(file=file) for file in files), places=places)
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]}
    assert uris == {
        "q/a%20b%23%C3%A9%3A%25.yaml", "b.yaml", "q/c.yaml", "../../repository/d.yaml", "file:///elsewhere/x.yaml",
    }  # fmt: skip


@pytest.mark.bulk
def test_more_results_than_code_scanning_keeps_are_cut_and_counted() -> None:
    many = [of_rule(line=n + 1, severity=Severity.INFO) for n in range(6000)]
    written = json.loads(render_sarif((*many, of_rule("bad", severity=Severity.ERROR)), AS_GIVEN, {}))
    assert len(written["runs"][0]["results"]) == 5000
    del written["runs"][0]["results"][9:]
    run = run_of(json.dumps(written))
    assert run["results"][0]["ruleId"] == "bad"
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("1001 results have no room here")


def test_annotations_carry_place_title_and_message_the_worst_first() -> None:
    related = (Related(span=span(2, "b.yaml"), message="first claimed here"),)
    nowhere = Finding(id="no-manifests", severity=Severity.INFO, message="x")
    bad = Finding(id="some-rule", severity=Severity.ERROR, message="words", span=span(3, "b.yaml"), related=related)
    odd = finding(Severity.WARNING, file="a,b:c%.yaml", message="100%: a,b\r\nc\x1b")
    assert render_annotations((nowhere, odd, bad, finding(Severity.ERROR, 9)), AS_GIVEN, {}) == (
        "::error file=a.yaml,line=9,col=7,title=some-rule::words\n"
        "::error file=b.yaml,line=3,col=1,title=some-rule::words%0Ab.yaml:2:1: first claimed here\n"
        "::warning file=a%2Cb%3Ac%25.yaml,line=1,col=7,title=some-rule::100%25: a,b%0D%0Ac\\u001b\n"
        "::notice title=no-manifests::x\n"
    )


@pytest.mark.parametrize(("count", "last"), [(9, None), (10, "1 more error."), (30, "21 more errors.")])
def test_the_tenth_of_a_kind_counts_the_rest(count: int, last: str | None) -> None:
    every = [finding(severity, n + 1) for severity in Severity for n in range(count)]
    text = render_annotations(every, AS_GIVEN, {})
    assert [text.count(f"::{kind} ") for kind in ("error", "warning", "notice")] == [min(count, 10)] * 3
    assert (last is None) or f"::error title=kafka-quotas::{last}" in text
