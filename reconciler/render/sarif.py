"""Findings and guards as SARIF 2.1.0 (OASIS Standard, 27 March 2020), as GitHub code scanning and editors read it."""

from __future__ import annotations

import urllib.parse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.formats import Json
from reconciler.model import Finding, Plan, Severity, Span, escaped
from reconciler.render.derived_findings import GUARD_PREFIX, findings_of_guards
from reconciler.render.repo_paths import RepoPaths, fingerprint, place_order

MOST_RESULTS: Final = 5000
"""What GitHub keeps of one run; the worst come first, and the run says how many were left out."""

FALLBACK_FILE: Final = "kafka-quotas.yaml"
"""Where a result without a place is shown: code scanning refuses results that are nowhere."""

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def plan_to_sarif(plan: Plan, *, rules: Mapping[str, str], version: str, places: RepoPaths | None = None) -> dict[str, Json]:
    """The findings of a plan, and its guards under ``guard/ID``; the run's properties carry cluster and digest."""
    document = findings_to_sarif((*findings_of_guards(plan), *plan.findings), rules=rules, version=version, places=places)
    runs = document["runs"]
    if isinstance(runs, list) and isinstance(run := runs[0], dict):
        run["properties"] = {"cluster": plan.cluster.name, "digest": plan.digest}
    return document


def findings_to_sarif(
    findings: Sequence[Finding], *, rules: Mapping[str, str], version: str, places: RepoPaths | None = None
) -> dict[str, Json]:
    """One run. ``rules`` explains findings by id; ``version`` is this tool's."""
    where = places or RepoPaths()
    ordered = sorted(findings, key=lambda f: place_order(f, where))
    kept = ordered[:MOST_RESULTS]
    ids = sorted({finding.id for finding in kept})
    seen: Counter[str] = Counter()
    invocation: dict[str, Json] = {"executionSuccessful": True}
    if len(ordered) > len(kept):
        text = f"{len(ordered) - len(kept)} results have no room here; 'kafka-quotas validate' prints all of them"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    run: dict[str, Json] = {
        "tool": {"driver": {"name": "kafka-quotas", "version": version, "rules": [_rule(one, rules.get(one)) for one in ids]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(finding, ids.index(finding.id), where, seen) for finding in kept],
    }
    return {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }


def _rule(rule_id: str, explanation: str | None) -> dict[str, Json]:
    rule: dict[str, Json] = {"id": rule_id, "name": rule_id}
    if explanation:
        first = explanation.partition(". ")[0].rstrip(".") + "."
        rule["shortDescription"] = {"text": first}
        rule["fullDescription"] = {"text": explanation}
        command = f"kafka-quotas explain {rule_id.removeprefix(GUARD_PREFIX)}"
        rule["help"] = {"text": f"{explanation}\n\n'{command}' says the same at a terminal."}
    return rule


def _result(finding: Finding, rule_index: int, places: RepoPaths, seen: Counter[str]) -> dict[str, Json]:
    print_of = fingerprint(finding, places)
    seen[print_of] += 1
    result: dict[str, Json] = {
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": escaped(finding.message)},
        "locations": [_location(finding.span, places)],
        "partialFingerprints": {"kafkaQuotasFinding/v1": f"{print_of}:{seen[print_of]}"},
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": escaped(related.message)}, **_location(related.span, places)}
            for number, related in enumerate(finding.related, 1)
        ]
    return result


def _location(span: Span | None, places: RepoPaths) -> dict[str, Json]:
    path = places.relative(span.file) if span else FALLBACK_FILE
    uri = urllib.parse.quote(path.encode("utf-8", "surrogatepass"))
    artifact: dict[str, Json] = {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    region: dict[str, Json] = {"startLine": span.line, "startColumn": span.column} if span else {"startLine": 1}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}
