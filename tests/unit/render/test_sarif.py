"""SARIF 2.1.0: valid by its own schema, stable between runs, within GitHub's limits."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from reconciler.formats.canonical import document_text
from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import GuardResult, GuardStatus
from reconciler.render.ci_reports import findings_to_sarif, plan_to_sarif
from reconciler.render.repository_links import RepoPaths
from tests.builders import plan, span, user
from tests.support.hostile_names import HOSTILE
from tests.support.sarif_schema import sarif_schema

RULES = {"user-prefix": "A user's name begins with a prefix. It matches nobody.", "guard/prune": "Whole entities go."}


def finding(rule: str = "user-prefix", line: int = 3, file: str = "teams/a.yaml", **fields: object) -> Finding:
    defaults: dict[str, object] = {"severity": Severity.WARNING, "message": "words", "span": span(line, file, 7)}
    return Finding(id=rule, **{**defaults, **fields})  # type: ignore[arg-type]  # a test names fields as it likes


def run_of(document: object) -> dict[str, Any]:
    """The only run of a document, after the schema had its say."""
    written = json.loads(document_text(document))  # type: ignore[arg-type]  # any JSON
    schema = sarif_schema()
    jsonschema.validators.validator_for(schema)(schema).validate(written)
    assert written["version"] == "2.1.0"
    (run,) = written["runs"]
    return run


def findings_run(*findings: Finding, places: RepoPaths | None = None) -> dict[str, Any]:
    return run_of(findings_to_sarif(findings, rules=RULES, version="1.2.3", places=places))


def test_the_schema_is_the_one_of_sarif_and_refuses_what_is_not() -> None:
    assert sarif_schema()["title"].startswith("Static Analysis Results Format (SARIF) Version 2.1.0")
    with pytest.raises(jsonschema.ValidationError):
        run_of({"version": "2.1.0", "runs": [{"tool": {"driver": {}}}]})


def test_a_finding_is_a_result_with_its_rule_level_and_region() -> None:
    run = findings_run(finding(related=(Related(span=span(9, "b.yaml"), message="first here"),)))
    assert run["tool"]["driver"]["name"] == "kafka-quotas"
    assert run["tool"]["driver"]["version"] == "1.2.3"
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "user-prefix"
    assert rule["shortDescription"]["text"] == "A user's name begins with a prefix."
    assert rule["help"]["text"].startswith(RULES["user-prefix"])
    (result,) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("user-prefix", 0, "warning")
    assert result["message"]["text"] == "words"
    place = {"artifactLocation": {"uri": "teams/a.yaml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 3, "startColumn": 7}}
    assert result["locations"] == [{"physicalLocation": place}]
    assert result["relatedLocations"][0]["message"]["text"] == "first here"


def test_each_rule_is_there_once_and_results_point_at_theirs() -> None:
    run = findings_run(finding("b-rule"), finding("a-rule"), finding("b-rule", 5))
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["a-rule", "b-rule"]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


@pytest.mark.parametrize(
    ("severity", "level"), [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")]
)
def test_levels(severity: Severity, level: str) -> None:
    assert findings_run(finding(severity=severity))["results"][0]["level"] == level


def test_guards_of_a_plan_are_results_where_they_are_set() -> None:
    def guard(name: str, status: GuardStatus, set_in: str) -> GuardResult:
        return GuardResult(id=name, status=status, measured="2", limit="1", set_in=set_in, message="why")

    one = plan(
        guards=(
            guard("prune", GuardStatus.NEEDS_ACCEPTANCE, "clusters/prod.yaml:14:3"),
            guard("default-entity", GuardStatus.ACCEPTED, "built in"),
            guard("too-many-removals", GuardStatus.PASSED, "built in"),
        )
    )
    run = run_of(plan_to_sarif(one, rules=RULES, version="1"))
    assert run["properties"] == {"cluster": "prod", "digest": one.digest}
    blocked, accepted = run["results"]
    assert (blocked["ruleId"], blocked["level"]) == ("guard/prune", "error")
    assert blocked["message"]["text"].endswith("To accept, pass --accept prune.")
    assert blocked["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "clusters/prod.yaml"
    assert blocked["locations"][0]["physicalLocation"]["region"] == {"startLine": 14, "startColumn": 3}
    assert (accepted["ruleId"], accepted["level"]) == ("guard/default-entity", "note")
    help_text = run["tool"]["driver"]["rules"][1]["help"]["text"]
    assert "kafka-quotas explain prune" in help_text


def test_a_result_without_a_place_is_shown_at_the_repository_s_own_file() -> None:
    (result,) = findings_run(finding(span=None))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kafka-quotas.yaml"


def prints(run: dict[str, Any]) -> list[str]:
    return [result["partialFingerprints"]["kafkaQuotasFinding/v1"] for result in run["results"]]


def test_a_fingerprint_stays_when_lines_move_and_tells_findings_apart() -> None:
    first = prints(findings_run(finding(line=3, entity=user("a")), finding(line=5, entity=user("b"))))
    moved = prints(findings_run(finding(line=30, entity=user("a")), finding(line=50, entity=user("b"))))
    assert first == moved
    assert len(set(first)) == 2
    others = [finding(file="b.yaml", entity=user("a")), finding("other", entity=user("a")), finding(entity=user("a"), key="k")]
    assert len({*first, *(prints(findings_run(one))[0] for one in others)}) == 5


def test_equal_findings_are_numbered() -> None:
    one, two = prints(findings_run(finding(), finding(line=9)))
    assert (one[-2:], two[-2:]) == (":1", ":2")
    assert one[:-2] == two[:-2]


def test_paths_are_encoded_and_relative_to_the_root() -> None:
    places = RepoPaths(working_folder="/repo/q", root="/repo")
    run = findings_run(finding(file="a b#é:%.yaml"), finding(file="/elsewhere/x.yaml"), places=places)
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]}
    assert uris == {"q/a%20b%23%C3%A9%3A%25.yaml", "file:///elsewhere/x.yaml"}


def test_hostile_names_leave_the_document_valid() -> None:
    run = findings_run(*(finding(file=name or "x", message=f"{user(name)} {name}", entity=user(name)) for name in HOSTILE))
    assert len(run["results"]) == len(HOSTILE)


@pytest.mark.bulk
def test_more_results_than_code_scanning_keeps_are_cut_and_counted() -> None:
    many = [finding(line=n + 1, severity=Severity.INFO) for n in range(6000)]
    run = findings_run(*many, finding("bad", severity=Severity.ERROR))
    assert len(run["results"]) == 5000
    assert run["results"][0]["ruleId"] == "bad"
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("1001 results have no room here")


def test_no_findings_are_a_valid_document_too() -> None:
    assert findings_run()["results"] == []
