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
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from reconciler.formats import Json
from reconciler.model import Drift, Finding, Plan, Severity, Span, escaped
from reconciler.render.derived_findings import GUARD_PREFIX, findings_of_guards
from reconciler.render.repository_links import RepoPaths, fingerprint, place_order
from reconciler.render.sink import WorkflowCommands

MOST_CASES: Final = 5000
"""The worst come first; what has no room is counted in a case of its own."""

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>'

MOST_OF_A_KIND: Final = 9
"""One less than GitHub shows: the tenth states how many more there are."""

FALLBACK_FILE: Final = "kafka-quotas.yaml"
"""Where a finding without a place is shown: Code Quality and code scanning refuse one that is nowhere."""

_SEVERITIES: Final = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}

MOST_RESULTS: Final = 5000
"""What GitHub keeps of one run; the worst come first, and the run states how many were left out."""

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_junit(findings: Sequence[Finding], *, name: str, places: RepoPaths | None = None) -> str:
    """One suite of this name: an error is a failed case, a warning or info a skipped one.

    Without an error there is one case that passes, so that a good run is not an empty report.
    """
    where = places or RepoPaths()
    ordered = sorted(findings, key=lambda finding: place_order(finding, where))
    cases = [_test_case(finding, where) for finding in ordered[:MOST_CASES]]
    failed = sum(finding.severity is Severity.ERROR for finding in ordered[:MOST_CASES])
    skipped = len(cases) - failed
    if len(ordered) > MOST_CASES:
        more = f"{len(ordered) - MOST_CASES} more findings have no room here"
        cases.append(_element("testcase", {"classname": name, "name": more}, "<skipped/>"))
        skipped += 1
    if not failed:
        cases.append(_element("testcase", {"classname": name, "name": "no errors"}))
    counts = {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    suite = _element("testsuite", {"name": name, **counts}, "\n", *(f"{case}\n" for case in cases))
    return f"{_HEAD}\n{_element('testsuites', {'name': name, **counts}, f'{chr(10)}{suite}{chr(10)}')}\n"


def _test_case(finding: Finding, places: RepoPaths) -> str:
    span = finding.span
    place = f"{places.relative(span.file)}:{span.line}:{span.column}" if span else ""
    title = f"{place}: {finding.message}" if place else finding.message
    lines = [title, *(f"{places.relative(r.span.file)}:{r.span.line}:{r.span.column}: {r.message}" for r in finding.related)]
    attributes = {"classname": finding.id, "name": title}
    if span:
        attributes |= {"file": places.relative(span.file), "line": str(span.line)}
    if finding.severity is Severity.ERROR:
        text = "\n".join(escape(_legal(line)) for line in lines)
        inside = f"<failure message={_quoted(finding.message)} type={_quoted(finding.id)}>{text}</failure>"
    else:
        inside = f"<skipped message={_quoted(f'{finding.severity.value}: {finding.message}')}/>"
    return _element("testcase", attributes, inside)


def _element(tag: str, attributes: dict[str, str], *inside: str) -> str:
    written = "".join(f" {name}={_quoted(value)}" for name, value in attributes.items())
    return f"<{tag}{written}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{written}/>"


def _quoted(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Everything that does not print is escaped: no control, surrogate or non-character, which XML cannot have, is left."""
    return escaped(text)


def render_code_quality(findings: Sequence[Finding], *, places: RepoPaths | None = None) -> list[Json]:
    """``[{description, check_name, fingerprint, severity, location: {path, lines: {begin}}}]``, the worst first."""
    where = places or RepoPaths()
    seen: Counter[str] = Counter()
    issues: list[Json] = []
    for finding in sorted(findings, key=lambda finding: place_order(finding, where)):
        print_of = fingerprint(finding, where)
        seen[print_of] += 1
        if seen[print_of] > 1:
            print_of = hashlib.sha256(f"{print_of}:{seen[print_of]}".encode()).hexdigest()[:32]
        issues.append(_issue(finding, print_of, where))
    return issues


def _issue(finding: Finding, print_of: str, places: RepoPaths) -> dict[str, Json]:
    span = finding.span
    related = "".join(f". See {places.relative(r.span.file)}:{r.span.line}: {r.message}" for r in finding.related)
    message = finding.message.removesuffix(".") + related if related else finding.message
    path = places.relative(span.file) if span else FALLBACK_FILE
    lines: dict[str, Json] = {"begin": span.line if span else 1}
    return {
        "description": escaped(message),
        "check_name": finding.id,
        "fingerprint": print_of,
        "severity": _SEVERITIES[finding.severity],
        "location": {"path": path, "lines": lines},
    }


def plan_annotations(plan: Plan, *, places: RepoPaths | None = None) -> WorkflowCommands:
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


def findings_annotations(findings: Sequence[Finding], *, places: RepoPaths | None = None) -> WorkflowCommands:
    """One line a finding, the worst first, then by file and line; empty for no findings."""
    lines = (f"{command}\n" for severity in Severity for command in _commands(severity, findings, places or RepoPaths()))
    return WorkflowCommands("".join(lines))


def _commands(severity: Severity, findings: Sequence[Finding], places: RepoPaths) -> Iterator[str]:
    ordered = sorted((f for f in findings if f.severity is severity), key=lambda f: place_order(f, places))
    command = _COMMANDS[severity]
    for finding in ordered[:MOST_OF_A_KIND]:
        yield _command(command, finding, places)
    more = len(ordered) - MOST_OF_A_KIND
    if more > 0:
        what = f"{more} more {severity.value}{'' if more == 1 or severity is Severity.INFO else 's'}"
        yield f"::{command} title={_property('kafka-quotas')}::{what}. The log and the summary of this step have all of them"


def _command(command: str, finding: Finding, places: RepoPaths) -> str:
    properties = {"title": finding.id}
    if span := finding.span:
        properties = {"file": places.relative(span.file), "line": str(span.line), "col": str(span.column), **properties}
    related = (f"{places.relative(r.span.file)}:{r.span.line}:{r.span.column}: {r.message}" for r in finding.related)
    message = "\n".join((finding.message, *related))
    return f"::{command} {','.join(f'{name}={_property(value)}' for name, value in properties.items())}::{_message(message)}"


def _message(text: str) -> str:
    """The per cent sign first, or it would be escaped twice. Line breaks survive; other controls are shown, not sent."""
    coded = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped(coded)


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


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
    """Findings as a SARIF 2.1.0 log with one run. ``rules`` explains findings by id; ``version`` is this tool's."""
    where = places or RepoPaths()
    ordered = sorted(findings, key=lambda f: place_order(f, where))
    kept = ordered[:MOST_RESULTS]
    ids = sorted({finding.id for finding in kept})
    seen: Counter[str] = Counter()
    invocation: dict[str, Json] = {"executionSuccessful": True}
    if len(ordered) > len(kept):
        text = f"{len(ordered) - len(kept)} results have no room here. 'kafka-quotas validate' prints all of them"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    described: list[Json] = [_sarif_rule(rule_id, rules.get(rule_id)) for rule_id in ids]
    run: dict[str, Json] = {
        "tool": {"driver": {"name": "kafka-quotas", "version": version, "rules": described}},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_sarif_result(finding, ids.index(finding.id), where, seen) for finding in kept],
    }
    return {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }


def _sarif_rule(rule_id: str, explanation: str | None) -> dict[str, Json]:
    rule: dict[str, Json] = {"id": rule_id, "name": rule_id}
    if explanation:
        first = explanation.partition(". ")[0].rstrip(".") + "."
        rule["shortDescription"] = {"text": first}
        rule["fullDescription"] = {"text": explanation}
        command = f"kafka-quotas explain {rule_id.removeprefix(GUARD_PREFIX)}"
        rule["help"] = {"text": f"{explanation}\n\n'{command}' prints the same at a terminal."}
    return rule


def _sarif_result(finding: Finding, rule_index: int, places: RepoPaths, seen: Counter[str]) -> dict[str, Json]:
    print_of = fingerprint(finding, places)
    seen[print_of] += 1
    result: dict[str, Json] = {
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": escaped(finding.message)},
        "locations": [_sarif_location(finding.span, places)],
        "partialFingerprints": {"kafkaQuotasFinding/v1": f"{print_of}:{seen[print_of]}"},
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
