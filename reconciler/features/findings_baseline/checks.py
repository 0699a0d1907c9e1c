"""What is wrong with a findings baseline: entries that expired, that have no reason, or that match nothing any more."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.manifest import FindingsBaseline, KnownFinding, finding
from reconciler.model import Finding, Severity, compose, join_messages, name_part, rules
from reconciler.text import count_of
from reconciler.workflows import EarlierFindings, known_entries

NEED_CLUSTER: Final = frozenset(
    {"first-default", "reduction-throttles", "migrated-name", "unreadable-node", "client-id-never-wins"}
)
"""Rules that only a plan can break, since they compare with the cluster."""


def baseline_findings(
    baseline: FindingsBaseline, findings: Sequence[Finding], *, whole: bool, at: datetime.datetime | None
) -> Iterator[Finding]:
    """One finding for all entries without a reason, one for all that expired, and one for each that matches nothing.

    ``findings``: those of the manifests. ``whole``: they are of all files and clusters.
    """
    if any(each.severity is Severity.ERROR and each.span and each.span.file == baseline.file for each in findings):
        return
    if without := [entry for entry in baseline.findings if not entry.reason]:
        message = compose("{count} no reason. Write why the findings may stay", count=_entries(without, "has", "have"))
        yield finding(
            "baseline-without-reason", message, without[0].span if baseline.reason else baseline.reason_span or baseline.span
        )
    today = datetime.date.min if at is None else at.date()
    if expired := [entry for entry in baseline.findings if entry.until is None or entry.until < today]:
        message = compose(
            "{count}, so the findings count as new. Correct what they are about, or move the date",
            count=_entries(expired, "has expired", "have expired"),
        )
        yield finding("baseline-expired", message, expired[0].span)
    if not baseline.findings:
        yield finding("baseline-stale", "the findings baseline has no entries. Remove the file", baseline.span)
    if whole:
        yield from _stale(baseline, findings, at)


def _entries(entries: Sequence[KnownFinding], singular: str, plural: str) -> str:
    return f"{count_of(len(entries), 'entry', 'entries')} {singular if len(entries) == 1 else plural}"


def _stale(baseline: FindingsBaseline, findings: Sequence[Finding], at: datetime.datetime | None) -> Iterator[Finding]:
    known = EarlierFindings(known_entries(baseline, at))
    known.mark(findings)
    checked = rules("file", "manifest", "lint").keys() - NEED_CLUSTER
    for entry in baseline.findings:
        facts = (entry.id, *entry.subject)
        if entry.id not in checked or not (left := known.take(facts, entry.severity, entry.count)):
            continue
        about = join_messages([compose("{id}", id=name_part(fact)) for fact in facts], " ")
        message = compose("no finding matches this entry any more ({about}). Remove it", about=about)
        if left < entry.count:
            matching = entry.count - left
            message = compose("only {count} of {about} left. Lower its count", count=count_of(matching, "finding"), about=about)
        yield finding("baseline-stale", message, entry.span)
