"""What stays the same of a finding when lines move, so that systems that remember findings know it again."""

from __future__ import annotations

import hashlib

from reconciler.formats import Json, canonical_bytes, entity_to_json
from reconciler.model import Finding
from reconciler.render.places import Places


def fingerprint(finding: Finding, places: Places) -> str:
    """32 hexadecimal digits of the rule, the file, and what the finding is about (its message, when that is no entity)."""
    entity = entity_to_json(finding.entity) if finding.entity is not None else None
    about: Json = [entity, finding.key] if entity is not None else finding.message
    path = places.relative(finding.span.file) if finding.span else None
    return hashlib.sha256(canonical_bytes([finding.id, path, about])).hexdigest()[:32]


def place_order(finding: Finding, places: Places) -> tuple[int, str, int, int, str, str]:
    """Sorts the worst first, then by file, line and column."""
    span = finding.span
    place = (places.relative(span.file), span.line, span.column) if span else ("", 0, 0)
    return (finding.severity.rank, *place, finding.id, finding.message)
