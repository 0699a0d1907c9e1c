"""Findings and guards as GitHub workflow commands, which become annotations beside the lines of a pull request.

Source of the format: GitHub's documentation of workflow commands; a step shows about ten annotations of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Finding, Plan, Severity, escaped
from reconciler.render.derived_findings import findings_of_guards
from reconciler.render.repo_paths import RepoPaths
from reconciler.render.sink import WorkflowCommands

MOST_OF_A_KIND: Final = 9
"""One less than GitHub shows: the tenth says how many more there are."""

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def plan_annotations(plan: Plan, *, places: RepoPaths | None = None) -> WorkflowCommands:
    """The findings of a plan, and its guards: one that needs acceptance is an error, an accepted one a notice."""
    return findings_annotations((*findings_of_guards(plan), *plan.findings), places=places)


def findings_annotations(findings: Sequence[Finding], *, places: RepoPaths | None = None) -> WorkflowCommands:
    """One line a finding, the worst first, then by file and line; empty for no findings."""
    lines = (f"{one}\n" for severity in Severity for one in _of(severity, findings, places or RepoPaths()))
    return WorkflowCommands("".join(lines))


def _of(severity: Severity, findings: Sequence[Finding], places: RepoPaths) -> Iterator[str]:
    found = sorted((f for f in findings if f.severity is severity), key=lambda f: _order(f, places))
    command = _COMMANDS[severity]
    for finding in found[:MOST_OF_A_KIND]:
        yield _line(command, finding, places)
    more = len(found) - MOST_OF_A_KIND
    if more > 0:
        what = f"{more} more {severity.value}{'' if more == 1 or severity is Severity.INFO else 's'}"
        yield f"::{command} title={_property('kafka-quotas')}::{what}; the log and the summary of this step have all of them"


def _order(finding: Finding, places: RepoPaths) -> tuple[str, int, int, str, str]:
    span = finding.span
    place = (places.relative(span.file), span.line, span.column) if span else ("", 0, 0)
    return (*place, finding.id, finding.message)


def _line(command: str, finding: Finding, places: RepoPaths) -> str:
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
