"""Findings in the forms that CI systems read: JUnit, Code Quality, workflow commands, SARIF, and values for later steps.

- JUnit XML has no standard. This is what Ant's JUnit task writes and its readers agree on: ``testsuites``, ``testsuite`` with
  counts, ``testcase`` with ``failure`` or ``skipped``.
- Code Quality: GitLab's documentation of custom reports. Of two issues with one fingerprint GitLab shows the first only, so a
  number distinguishes equal ones.
- Workflow commands become annotations beside the lines of a pull request: GitHub's documentation; a step shows about ten of each
  kind.
- SARIF 2.1.0 (OASIS Standard, 27 March 2020), as GitHub code scanning and editors read it.
- Values for later steps are lines ``name=value``, for files such as GitLab's dotenv reports. A value is on one line and has no
  character that a shell, or a reader of such files, interprets: numbers, ``true`` and ``false``, digests, and ids. Names of
  clusters and entities are never here.
"""

from __future__ import annotations

import hashlib
import re
import urllib.parse
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.formats import Json, canonical_bytes, entity_to_json
from reconciler.model import (
    Drift,
    DriftClass,
    EntityDrift,
    Finding,
    GuardResult,
    GuardStatus,
    KeyDrift,
    Plan,
    Severity,
    Span,
    compose,
    escaped,
    name_part,
)
from reconciler.render.drift_text import class_words, overrides_words
from reconciler.render.markdown import RepoPaths
from reconciler.render.sink import WorkflowCommands
from reconciler.text import amount, count_of

GUARD_PREFIX: Final = "guard/"
"""What comes before a guard's id where ids of findings and guards meet."""

DRIFT_PREFIX: Final = "drift/"
"""What comes before a class of drift where ids of findings and classes meet; ``explain`` knows the class."""

MOST_CASES: Final = 5000
"""Of JUnit and SARIF, what GitHub keeps of one run. The worst come first, and the others are counted."""

MOST_OF_A_KIND: Final = 9
"""One less than GitHub shows: the tenth states how many more there are."""

FALLBACK_FILE: Final = "kafka-quotas.yaml"
"""Where a finding without a place is shown: Code Quality and code scanning refuse one that is nowhere."""


@dataclass(frozen=True, slots=True)
class _SeverityWords:
    """What a severity is called in Code Quality, workflow commands and SARIF."""

    quality: str
    command: str
    level: str


_SEVERITIES: Final = {
    Severity.ERROR: _SeverityWords("critical", "error", "error"),
    Severity.WARNING: _SeverityWords("minor", "warning", "warning"),
    Severity.INFO: _SeverityWords("info", "notice", "note"),
}
_PLACE: Final = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]*):(?P<column>[1-9][0-9]*)", re.DOTALL)
_AS_GIVEN: Final = RepoPaths()
_OF_GUARDS: Final = {GuardStatus.NEEDS_ACCEPTANCE: Severity.ERROR, GuardStatus.ACCEPTED: Severity.INFO}


def _sorted(findings: Sequence[Finding], places: RepoPaths) -> list[Finding]:
    """The worst first, then by file, line and column."""

    def order(finding: Finding) -> tuple[int, str, int, int, str, str]:
        span = finding.span
        place = (places.relative(span.file), span.line, span.column) if span else ("", 0, 0)
        return (finding.severity.rank, *place, finding.id, finding.message)

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


def render_junit(findings: Sequence[Finding], *, name: str, places: RepoPaths = _AS_GIVEN) -> str:
    """One suite of this name: an error is a failed case, a warning or info a skipped one.

    Without an error there is one case that passes, so that a good run is not an empty report.
    """
    ordered = _sorted(findings, places)
    shown = ordered[:MOST_CASES]
    failed = sum(finding.severity is Severity.ERROR for finding in shown)
    more = len(ordered) - len(shown)
    tests, skipped = len(shown) + (more > 0) + (not failed), len(shown) - failed + (more > 0)
    # Everything that does not print is escaped: XML cannot have controls, surrogates and non-characters.
    name = escaped(name)
    counts = {"tests": str(tests), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    whole = ET.Element("testsuites", {"name": name, **counts})
    suite = ET.SubElement(whole, "testsuite", {"name": name, **counts})
    for finding in shown:
        _test_case(suite, finding, places)
    if more > 0:
        case = ET.SubElement(suite, "testcase", {"classname": name, "name": f"{more} more findings have no room here"})
        ET.SubElement(case, "skipped")
    if not failed:
        ET.SubElement(suite, "testcase", {"classname": name, "name": "no errors"})
    ET.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(whole, encoding="unicode")}\n'


def _test_case(suite: ET.Element, finding: Finding, places: RepoPaths) -> None:
    span, message = finding.span, escaped(finding.message)
    place = f"{places.relative(span.file)}:{span.line}:{span.column}: " if span else ""
    title = escaped(place) + message
    attributes = {"file": escaped(places.relative(span.file)), "line": str(span.line)} if span else {}
    case = ET.SubElement(suite, "testcase", {"classname": escaped(finding.id), "name": title, **attributes})
    if finding.severity is Severity.ERROR:
        failure = ET.SubElement(case, "failure", {"message": message, "type": escaped(finding.id)})
        failure.text = "\n".join((title, *map(escaped, _related(finding, places))))
    else:
        ET.SubElement(case, "skipped", {"message": f"{finding.severity.value}: {message}"})


def render_code_quality(findings: Sequence[Finding], *, places: RepoPaths = _AS_GIVEN) -> list[Json]:
    """``[{description, check_name, fingerprint, severity, location: {path, lines: {begin}}}]``, the worst first."""
    issues: list[Json] = []
    for finding, digits, number in _fingerprints(_sorted(findings, places), places):
        span, related = finding.span, _related(finding, places)
        message = ". See ".join((finding.message.removesuffix("."), *related)) if related else finding.message
        unique = digits if number == 1 else hashlib.sha256(f"{digits}:{number}".encode()).hexdigest()[:32]
        path = places.relative(span.file) if span else FALLBACK_FILE
        issue: dict[str, Json] = {
            "description": escaped(message),
            "check_name": finding.id,
            "fingerprint": unique,
            "severity": _SEVERITIES[finding.severity].quality,
            "location": {"path": path, "lines": {"begin": span.line if span else 1}},
        }
        issues.append(issue)
    return issues


def plan_annotations(plan: Plan, *, places: RepoPaths = _AS_GIVEN) -> WorkflowCommands:
    """The findings of a plan, and its guards: one that needs acceptance is a warning, an accepted one a notice.

    A plan whose guards trip is a good plan, and its job succeeds: an error beside it would contradict that.
    """
    guards = (
        replace(finding, severity=Severity.WARNING)
        if finding.id.startswith(GUARD_PREFIX) and finding.severity is Severity.ERROR
        else finding
        for finding in findings_of_guards(plan)
    )
    return findings_annotations((*guards, *plan.findings), places=places)


def findings_annotations(findings: Sequence[Finding], *, places: RepoPaths = _AS_GIVEN) -> WorkflowCommands:
    """One line a finding, the worst first, then by file and line; empty for no findings."""
    lines, ordered = [], _sorted(findings, places)
    for severity, words in _SEVERITIES.items():
        of_kind = [finding for finding in ordered if finding.severity is severity]
        lines += [_command(words.command, finding, places) for finding in of_kind[:MOST_OF_A_KIND]]
        if (more := len(of_kind) - MOST_OF_A_KIND) > 0:
            what = f"{more} more infos" if severity is Severity.INFO else count_of(more, f"more {severity.value}")
            title = f"::{words.command} title={_property('kafka-quotas')}"
            lines.append(f"{title}::{what}. The log and the summary of this step have all of them\n")
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


def plan_to_sarif(plan: Plan, *, rules: Mapping[str, str], version: str, places: RepoPaths = _AS_GIVEN) -> dict[str, Json]:
    """The findings of a plan, and its guards under ``guard/ID``; the run's properties carry cluster and digest."""
    properties: dict[str, Json] = {"properties": {"cluster": plan.cluster.name, "digest": plan.digest}}
    return _sarif((*findings_of_guards(plan), *plan.findings), rules, version, places, properties)


def findings_to_sarif(
    findings: Sequence[Finding], *, rules: Mapping[str, str], version: str, places: RepoPaths = _AS_GIVEN
) -> dict[str, Json]:
    """Findings as a SARIF 2.1.0 log with one run. ``rules`` explains findings by id; ``version`` is this tool's."""
    return _sarif(findings, rules, version, places, {})


def _sarif(
    findings: Sequence[Finding], rules: Mapping[str, str], version: str, places: RepoPaths, more: dict[str, Json]
) -> dict[str, Json]:
    kept = _sorted(findings, places)[:MOST_CASES]
    ids = sorted({finding.id for finding in kept})
    invocation: dict[str, Json] = {"executionSuccessful": True}
    if len(findings) > len(kept):
        text = f"{len(findings) - len(kept)} results have no room here. 'kafka-quotas validate' prints all of them"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    described: list[Json] = [_sarif_rule(rule_id, rules.get(rule_id)) for rule_id in ids]
    results: list[Json] = [
        _sarif_result(finding, ids.index(finding.id), f"{digits}:{number}", places)
        for finding, digits, number in _fingerprints(kept, places)
    ]
    run: dict[str, Json] = {
        "tool": {"driver": {"name": "kafka-quotas", "version": version, "rules": described}},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": results,
        **more,
    }
    return {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }


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
        "level": _SEVERITIES[finding.severity].level,
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


def plan_outputs(plan: Plan) -> str:
    """The digest, counts of entities, ``applyable``, ``complete``, ``errored``, ``guards`` (ids) and ``withheld`` (owners)."""
    summary = plan.summary
    return _output_lines(
        {
            "digest": plan.digest,
            "changes": summary.changed,
            "create": summary.create,
            "update": summary.update,
            "delete": summary.delete,
            "unmanaged": summary.unmanaged,
            "applyable": plan.applyable,
            "complete": plan.complete,
            "errored": plan.errored,
            "guards": ",".join(guard.id for guard in plan.tripped),
            "withheld": len(plan.withheld),
            **_severity_counts(plan.findings),
        }
    )


def findings_outputs(findings: Sequence[Finding]) -> str:
    """The numbers of findings as outputs of a CI step: ``errors``, ``warnings`` and ``infos``."""
    return _output_lines(_severity_counts(findings))


def drift_outputs(drift: Drift) -> str:
    """``drifted``, ``complete``, how many entities are in each class, and how many unmanaged ones the scope contains."""
    counts = {each.value.replace("-", "_"): count for each, count in drift.counts.items()}
    in_scope = len(drift.unmanaged_in_scope)
    return _output_lines({"drifted": drift.differs, "complete": drift.complete, **counts, "unmanaged_in_scope": in_scope})


def _severity_counts(findings: Sequence[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings)
    return {f"{severity.value}s": counts[severity] for severity in Severity}


def _output_lines(values: Mapping[str, object]) -> str:
    return "".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}\n" for name, value in values.items())


def findings_of_guards(plan: Plan) -> tuple[Finding, ...]:
    """An error for every guard that needs acceptance, an info for every accepted one; those that passed are silent.

    Where owners are isolated, also the findings that withhold an owner.
    """
    guards = tuple(
        Finding(
            id=f"{GUARD_PREFIX}{guard.id}",
            severity=_OF_GUARDS[guard.status],
            message=_guard_sentence(guard),
            span=_place_of(guard, plan),
        )
        for guard in (*plan.guards, *plan.withholding_guards)
        if guard.status in _OF_GUARDS
    )
    return (*guards, *plan.owner_errors)


def _place_of(guard: GuardResult, plan: Plan) -> Span | None:
    """The proposed line that the guard is about, else where its limit is set, unless that is a file of another commit."""
    changes = (*plan.changes, *(change for each in plan.withheld for change in each.changes))
    about = [change for change in changes if change.entity in guard.entities]
    if guard.status is GuardStatus.NEEDS_ACCEPTANCE and not about:
        about = list(changes)
    source = next((key.source for change in about for key in change.keys if key.source is not None), None)
    place = span_of(guard.set_in)
    return source or (None if place is None or ":" in place.file else place)


def span_of(set_in: str) -> Span | None:
    """The place that a text is, as ``file:line:column``."""
    match = _PLACE.fullmatch(set_in)
    return Span(file=match["file"], line=int(match["line"]), column=int(match["column"])) if match else None


def _guard_sentence(guard: GuardResult) -> str:
    """The guard's message, and whose changes it is about; for one that needs acceptance also how to accept it."""
    message = guard.message
    if guard.owner is not None:
        message = compose("Owner {owner}: {message}", owner=name_part(guard.owner), message=message)
    if guard.status is not GuardStatus.NEEDS_ACCEPTANCE:
        return message
    return compose("{message} {advice}", message=message, advice=guard.advice or f"To accept, pass --accept {guard.id}.")


def findings_of_drift(drift: Drift) -> tuple[Finding, ...]:
    """In the order of the entities, each where its manifest declares it; unmanaged entities are none."""
    return tuple(_drifted(entity, drift) for entity in drift.entities if entity.drift.is_difference)


def _drifted(entity_drift: EntityDrift, drift: Drift) -> Finding:
    keys = "; ".join(_key_words(key, entity_drift.drift) for key in entity_drift.keys)
    why = f" ({class_words(entity_drift, drift.prune)})" if entity_drift.source is None else ""
    return Finding(
        id=f"{DRIFT_PREFIX}{entity_drift.drift.value}",
        severity=Severity.WARNING,
        message=f"{entity_drift.entity}{why}: {keys}",
        span=entity_drift.source or next((key.source for key in entity_drift.keys if key.source), None),
        entity=entity_drift.entity,
    )


def _key_words(key: KeyDrift, drift: DriftClass) -> str:
    is_added = drift is DriftClass.ADDED
    declared = overrides_words(key) if is_added else f", declared {amount(key.key, key.desired)}"
    return f"{escaped(key.key)} is {amount(key.key, key.live)} on the cluster{declared}"
