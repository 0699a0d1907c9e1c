"""A selector as JSON, spelled as in manifests: ``{"user": {"prefix": "payments-"}, "strict": true}``."""

from __future__ import annotations

from reconciler.formats.canonical import Json
from reconciler.model import MatchKind, Selector, TypeMatch


def selector_to_json(selector: Selector) -> dict[str, Json]:
    """A literal name is a string, everything else an object of one field; ``strict`` only when it is set."""
    document: dict[str, Json] = {entity_type: _match_to_json(wanted) for entity_type, wanted in selector.types}
    if selector.strict:
        document["strict"] = True
    return document


def _match_to_json(wanted: TypeMatch) -> Json:
    if wanted.kind is MatchKind.NAME:
        return wanted.text
    if wanted.kind in (MatchKind.DEFAULT, MatchKind.NAMED, MatchKind.ANY):
        return {wanted.kind.value: True}
    return {wanted.kind.value: wanted.text}
