"""Findings as a Code Quality report: the JSON list that GitLab shows beside the lines of a merge request.

Source of the format: GitLab's documentation of custom Code Quality reports. Of two issues with one fingerprint only the first is
shown, so equal ones are told apart by a number.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Final

from reconciler.formats import Json
from reconciler.model import Finding, Severity, escaped
from reconciler.render.fingerprints import fingerprint, place_order
from reconciler.render.places import Places

FALLBACK_FILE: Final = "kafka-quotas.yaml"
"""Where an issue without a place is shown: the format has none that are nowhere."""

_SEVERITIES: Final = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def code_quality(findings: Sequence[Finding], *, places: Places | None = None) -> list[Json]:
    """``[{description, check_name, fingerprint, severity, location: {path, lines: {begin}}}]``, the worst first."""
    where = places or Places()
    seen: Counter[str] = Counter()
    issues: list[Json] = []
    for finding in sorted(findings, key=lambda one: place_order(one, where)):
        print_of = fingerprint(finding, where)
        seen[print_of] += 1
        if seen[print_of] > 1:
            print_of = hashlib.sha256(f"{print_of}:{seen[print_of]}".encode()).hexdigest()[:32]
        issues.append(_issue(finding, print_of, where))
    return issues


def _issue(finding: Finding, print_of: str, places: Places) -> dict[str, Json]:
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
