"""Findings for CI systems: a JUnit report, and a Code Quality report for GitLab.

JUnit XML has no standard; this is what Ant's JUnit task writes and its readers agree on: ``testsuites``, ``testsuite`` with
counts, ``testcase`` with ``failure`` or ``skipped``. Source of the other format: GitLab's documentation of custom Code Quality
reports. Of two issues with one fingerprint only the first is shown, so a number distinguishes equal ones.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from reconciler.formats import Json
from reconciler.model import Finding, Severity, escaped
from reconciler.render.repo_paths import RepoPaths, fingerprint, place_order

MOST_CASES: Final = 5000
"""The worst come first; what has no room is counted in a case of its own."""

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>'


def render_junit(findings: Sequence[Finding], *, name: str, places: RepoPaths | None = None) -> str:
    """One suite of this name: an error is a failed case, a warning or info a skipped one.

    Without an error there is one case that passes, so that a good run is not an empty report.
    """
    where = places or RepoPaths()
    ordered = sorted(findings, key=lambda one: place_order(one, where))
    cases = [_case(one, where) for one in ordered[:MOST_CASES]]
    failed = sum(one.severity is Severity.ERROR for one in ordered[:MOST_CASES])
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


def _case(finding: Finding, places: RepoPaths) -> str:
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
    """Everything that does not print is escaped: no control, surrogate or non-character, which XML cannot hold, is left."""
    return escaped(text)


FALLBACK_FILE: Final = "kafka-quotas.yaml"
"""Where an issue without a place is shown: the format has none that are nowhere."""

_SEVERITIES: Final = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def render_code_quality(findings: Sequence[Finding], *, places: RepoPaths | None = None) -> list[Json]:
    """``[{description, check_name, fingerprint, severity, location: {path, lines: {begin}}}]``, the worst first."""
    where = places or RepoPaths()
    seen: Counter[str] = Counter()
    issues: list[Json] = []
    for finding in sorted(findings, key=lambda one: place_order(one, where)):
        print_of = fingerprint(finding, where)
        seen[print_of] += 1
        if seen[print_of] > 1:
            print_of = hashlib.sha256(f"{print_of}:{seen[print_of]}".encode()).hexdigest()[:32]
        issues.append(_issue(finding, print_of, where))
    return issues


def _issue(finding: Finding, print_of: str, places: RepoPaths) -> dict[str, Json]:
    span = finding.span
    related = "".join(f"; {places.relative(r.span.file)}:{r.span.line}: {r.message}" for r in finding.related)
    path = places.relative(span.file) if span else FALLBACK_FILE
    lines: dict[str, Json] = {"begin": span.line if span else 1}
    return {
        "description": escaped(finding.message + related),
        "check_name": finding.id,
        "fingerprint": print_of,
        "severity": _SEVERITIES[finding.severity],
        "location": {"path": path, "lines": lines},
    }
