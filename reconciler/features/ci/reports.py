"""Findings in the forms that CI systems read: Code Quality, workflow commands and SARIF.

- Code Quality: GitLab's documentation of custom reports. Of two issues with one fingerprint GitLab shows the first only, so a
  number distinguishes equal ones.
- Workflow commands become annotations beside the lines of a pull request: GitHub's documentation; a step shows about ten of each
  kind.
- SARIF 2.1.0 (OASIS Standard, 27 March 2020), as GitHub code scanning and editors read it.
"""

from __future__ import annotations

import hashlib
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import reconciler
from reconciler.formats import Json, canonical_bytes, document_text, entity_to_json
from reconciler.model import Finding, Severity, Span, Topic, escaped
from reconciler.render import DRIFT_PREFIX, GUARD_PREFIX, RepoPaths, WorkflowCommands
from reconciler.text import count_of
from reconciler.workflows import explanations

MOST_RESULTS: Final = 5000
"""Of SARIF, what GitHub keeps of one run. The worst come first, and the others are counted."""

MOST_OF_A_KIND: Final = 9
"""One less than GitHub shows: the tenth states how many more there are."""

FALLBACK_FILE: Final = "kafka-quotas.yaml"
"""Where a finding without a place is shown: Code Quality and code scanning refuse one that is nowhere."""


_QUALITY: Final = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}
_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
"""What a severity is called in Code Quality, workflow commands and SARIF."""


def _sorted(findings: Sequence[Finding], places: RepoPaths) -> list[Finding]:
    """New ones before those that are as before, the worst first, then by file, line and column."""

    def order(finding: Finding) -> tuple[bool, int, str, int, int, str, str]:
        span = finding.span
        place = (places.relative(span.file), span.line, span.column) if span else ("", 0, 0)
        return (finding.as_before, finding.severity.rank, *place, finding.id, finding.message)

    return sorted(findings, key=order)


def _fingerprints(findings: Sequence[Finding], places: RepoPaths) -> Iterator[tuple[Finding, str, int]]:
    """Each with 32 hexadecimal digits of the rule, the file and the subject (its entity, else its message), and their number."""
    seen: Counter[str] = Counter()
    for finding in findings:
        about: Json = [entity_to_json(finding.entity), finding.key] if finding.entity is not None else finding.message
        path = places.relative(finding.span.file) if finding.span else None
        digits = hashlib.sha256(canonical_bytes([finding.id, path, about])).hexdigest()[:32]
        seen[digits] += 1
        yield finding, digits, seen[digits]


def _related(finding: Finding, places: RepoPaths) -> list[str]:
    return [f"{places.relative(r.span.file)}:{r.span.line}:{r.span.column}: {r.message}" for r in finding.related]


def render_code_quality(findings: Sequence[Finding], places: RepoPaths, _: Mapping[str, Json]) -> str:
    """``[{description, check_name, fingerprint, severity, location: {path, lines: {begin}}}]``, the worst first."""
    issues: list[Json] = []
    for finding, digits, number in _fingerprints(_sorted(findings, places), places):
        span, related = finding.span, _related(finding, places)
        message = ". See ".join((finding.message.removesuffix("."), *related)) if related else finding.message
        unique = digits if number == 1 else hashlib.sha256(f"{digits}:{number}".encode()).hexdigest()[:32]
        path = places.relative(span.file) if span else FALLBACK_FILE
        issues.append(
            {
                "description": escaped(message),
                "check_name": finding.id,
                "fingerprint": unique,
                "severity": _QUALITY[finding.severity],
                "location": {"path": path, "lines": {"begin": span.line if span else 1}},
            }
        )
    return document_text(issues)


def render_annotations(findings: Sequence[Finding], places: RepoPaths, _: Mapping[str, Json]) -> WorkflowCommands:
    """One line a finding that is not as before, the worst first, then by file and line; empty for no findings."""
    lines, ordered = [], _sorted([finding for finding in findings if not finding.as_before], places)
    for severity, command in _COMMANDS.items():
        of_kind = [finding for finding in ordered if finding.severity is severity]
        lines += [_command(command, finding, places) for finding in of_kind[:MOST_OF_A_KIND]]
        if (more := len(of_kind) - MOST_OF_A_KIND) > 0:
            what = f"{more} more infos" if severity is Severity.INFO else count_of(more, f"more {severity.value}")
            lines.append(f"::{command} title=kafka-quotas::{what}. The log and the summary of this step have all of them\n")
    return WorkflowCommands("".join(lines))


def _command(command: str, finding: Finding, places: RepoPaths) -> str:
    properties = {"title": finding.id}
    if span := finding.span:
        properties = {"file": places.relative(span.file), "line": str(span.line), "col": str(span.column), **properties}
    message = _message("\n".join((finding.message, *_related(finding, places))))
    return f"::{command} {','.join(f'{name}={_property(value)}' for name, value in properties.items())}::{message}\n"


def _message(text: str) -> str:
    """The per cent sign first, or it would be escaped twice. Line breaks survive; other controls are shown, not sent."""
    return escaped(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def render_sarif(findings: Sequence[Finding], places: RepoPaths, properties: Mapping[str, Json]) -> str:
    """A SARIF 2.1.0 log with one run, which has these properties. Rules are explained as ``explain`` does."""
    prefixes = {Topic.GUARD: GUARD_PREFIX, Topic.DRIFT: DRIFT_PREFIX}
    rules = {f"{prefixes.get(each.topic, '')}{each.id}": each.text for each in explanations().values()}
    kept = _sorted(findings, places)[:MOST_RESULTS]
    ids = sorted({finding.id for finding in kept})
    invocation: dict[str, Json] = {"executionSuccessful": True}
    if len(findings) > len(kept):
        text = f"{len(findings) - len(kept)} results have no room here. 'kafka-quotas validate' prints all of them"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    described: list[Json] = [_sarif_rule(rule_id, rules.get(rule_id)) for rule_id in ids]
    results = [
        _sarif_result(finding, ids.index(finding.id), f"{digits}:{number}", places)
        for finding, digits, number in _fingerprints(kept, places)
    ]
    if any(finding.as_before for finding in kept):
        states = ("unchanged" if finding.as_before else "new" for finding in kept)
        results = [{**result, "baselineState": state} for result, state in zip(results, states, strict=True)]
    run: dict[str, Json] = {
        "tool": {"driver": {"name": "kafka-quotas", "version": reconciler.__version__, "rules": described}},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [*results],
        **({"properties": {**properties}} if properties else {}),
    }
    log: dict[str, Json] = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return document_text(log)


def _sarif_rule(rule_id: str, explanation: str | None) -> dict[str, Json]:
    rule: dict[str, Json] = {"id": rule_id, "name": rule_id}
    if explanation:
        rule["shortDescription"] = {"text": explanation.partition(". ")[0].rstrip(".") + "."}
        rule["fullDescription"] = {"text": explanation}
        command = f"kafka-quotas explain {rule_id.removeprefix(GUARD_PREFIX)}"
        rule["help"] = {"text": f"{explanation}\n\n'{command}' prints the same at a terminal."}
    return rule


def _sarif_result(finding: Finding, rule_index: int, fingerprint: str, places: RepoPaths) -> dict[str, Json]:
    result: dict[str, Json] = {
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": escaped(finding.message)},
        "locations": [_sarif_location(finding.span, places)],
        "partialFingerprints": {"kafkaQuotasFinding/v1": fingerprint},
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": escaped(related.message)}, **_sarif_location(related.span, places)}
            for number, related in enumerate(finding.related, 1)
        ]
    return result


def _sarif_location(span: Span | None, places: RepoPaths) -> dict[str, Json]:
    path = places.relative(span.file) if span else FALLBACK_FILE
    uri = urllib.parse.quote(path.encode("utf-8", "surrogatepass"))
    artifact: dict[str, Json] = {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    region: dict[str, Json] = {"startLine": span.line, "startColumn": span.column} if span else {"startLine": 1}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}
