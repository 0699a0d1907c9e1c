"""A findings baseline: what is wrong with it, and how it is written anew with the reasons and days of the entries that stay."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.files import write_whole
from reconciler.formats import API_VERSION
from reconciler.manifest import REPOSITORY_FILE, FindingsBaseline, KnownFinding, finding
from reconciler.model import Finding, Severity, compose, join_messages, name_part, rules
from reconciler.text import count_of, shown
from reconciler.workflows import EarlierFindings, LoadedManifests, facts_of, known_entries
from reconciler.yaml import scalar_text

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


_DAYS: Final = 90
"""How long entries last where the file names no day yet."""
_ASK: Final = "# write why these findings may stay"
_OWN: Final = "baseline-"
"""How the ids of findings about the baseline begin."""


def write_findings_baseline(
    file: str, findings: Sequence[Finding], loaded: LoadedManifests, *, whole: bool, today: datetime.date
) -> int:
    """Write one entry for each different finding, and return how many there are. Errors are left out.

    ``whole``: no other finding is known, so that other entries of the manifests' baseline go. Raises ``UsageError`` for a file
    that would not count, and ``FileAccessError``.
    """
    path, baseline = Path(file), loaded.proposed_baseline
    _require_place(path, baseline, loaded.root)
    counts = Counter((facts_of(each), each.severity) for each in findings if _may_be_known(each))
    kept = {((entry.id, *entry.subject), entry.severity): entry for entry in (baseline.findings if baseline is not None else ())}
    if not whole:
        counts |= Counter({known: entry.count for known, entry in kept.items()})
    lasts = baseline is not None and baseline.until is not None and baseline.until >= today
    until = baseline.until if baseline is not None and lasts else today + datetime.timedelta(days=_DAYS)
    reason = baseline.reason if baseline is not None else ""
    lines = [f"apiVersion: {API_VERSION}", "kind: FindingsBaseline", "spec:", f"  until: {until}"]
    lines.append(f"  reason: {scalar_text(reason)}{'' if reason else f' {_ASK}'}")
    lines.append(f"  findings:{'' if counts else ' []'}")
    for (facts, severity), count in sorted(counts.items()):
        lines.append(f"    - id: {facts[0]}")
        if severity is not Severity.WARNING:
            lines.append(f"      severity: {severity.value}")
        lines.append(f"      subject: [{', '.join(map(scalar_text, facts[1:]))}]")
        if count > 1:
            lines.append(f"      count: {count}")
        known = kept.get((facts, severity))
        if known is None and reason:
            lines.append(f'      reason: "" {_ASK}')
        elif known is not None and known.reason not in (None, reason):
            lines.append(f"      reason: {scalar_text(known.reason)}")
        if known is not None and known.until not in (None, until) and known.until >= today:
            lines.append(f"      until: {known.until}")
    write_whole(path, [f"{line}\n" for line in lines])
    return len(counts)


def _may_be_known(finding: Finding) -> bool:
    return finding.severity is not Severity.ERROR and not finding.id.startswith(_OWN)


def _require_place(path: Path, baseline: FindingsBaseline | None, root: str | None) -> None:
    if path.suffix not in (".yaml", ".yml") or path.name.startswith("."):
        raise UsageError(f"--write-baseline takes a manifest, such as kafka-quotas-baseline.yaml, not {shown(path.name)}")
    if baseline is not None and not _same(path, Path(baseline.file)):
        raise UsageError(f"the findings baseline is {shown(baseline.file)}. Name this file, or remove it")
    if baseline is None and path.exists():
        raise UsageError(f"{shown(str(path))} is there, and is not the findings baseline of these manifests. Name a new file")
    if root is not None and not _same(path.parent, Path(root)):
        raise UsageError(f"a findings baseline counts only beside {shown(str(Path(root, REPOSITORY_FILE)))}. Write it there")


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()
