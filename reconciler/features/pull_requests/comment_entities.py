"""The entities that a plan changes, hidden in its comment: other pull requests compare theirs with them."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Final

from reconciler.formats import entity_from_json, entity_to_json
from reconciler.model import Entity, Plan

_START: Final = "<!-- kafka-quotas:entities "
_END: Final = " -->"
_MOST_LINE: Final = 6_000
_MOST_TEXT: Final = 1_000_000


def entities_line(plan: Plan) -> str | None:
    """The line of a plan; ``None`` when nothing changes, or so many entities that the line would be too long."""
    entities = {change.entity for change in plan.changes}
    entities |= {change.entity for withheld in plan.withheld for change in withheld.changes}
    if not entities:
        return None
    rows = [entity_to_json(entity) for entity in sorted(entities, key=lambda entity: entity.sort_key)]
    packed = zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 9)
    line = f"{_START}{base64.b64encode(packed).decode()}{_END}"
    return line if len(line) <= _MOST_LINE else None


def hidden_entities(comment: str) -> frozenset[Entity]:
    """The entities in a comment; none without a line that can be read."""
    for line in comment.splitlines():
        if line.startswith(_START) and line.endswith(_END):
            try:
                packed = base64.b64decode(line.removeprefix(_START).removesuffix(_END), validate=True)
                rows = json.loads(zlib.decompressobj().decompress(packed, _MOST_TEXT))
                return frozenset(entity_from_json(row) for row in rows)
            except (ValueError, TypeError, AttributeError, KeyError, zlib.error, RecursionError):
                return frozenset()
    return frozenset()
