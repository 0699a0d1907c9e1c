"""Write a findings baseline: entries that still match keep their reasons and days, the others go, and new findings are added."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.files import write_whole
from reconciler.formats import API_VERSION
from reconciler.manifest import REPOSITORY_FILE, FindingsBaseline
from reconciler.model import Finding, Severity
from reconciler.text import shown
from reconciler.workflows import LoadedManifests, facts_of
from reconciler.yaml import scalar_text

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
