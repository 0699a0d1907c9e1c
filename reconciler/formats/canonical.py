"""JSON as this tool writes it: entities, numbers, canonical bytes for digests, and stable documents for people and machines."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from reconciler.model import DEFAULT, Change, Entity, escaped, sorted_by_entity
from reconciler.text import number_text, number_to_json

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_LONGEST: Final = 60
_quoted: Final = json.encoder.encode_basestring_ascii

FORMAT_VERSION: Final = "1.0"
"""The version that every JSON document carries; the part before the dot changes when a reader must change."""


def entity_to_json(entity: Entity) -> dict[str, Json]:
    """``{"user": "alice", "client-id": null}``: a default is ``null``, an absent type is absent."""
    return {t: None if n is DEFAULT else n for t, n in entity.parts}


def entity_from_json(value: Mapping[str, object]) -> Entity:
    """The way back. Raises ``ValueError`` when a name is neither a string nor ``null``, or when there is none at all."""
    names = {}
    for entity_type, name in value.items():
        if name is not None and not isinstance(name, str):
            msg = f"the name of entity type {entity_type!r} is neither a string nor null"
            raise ValueError(msg)
        names[entity_type] = DEFAULT if name is None else name
    if not names:
        msg = "an entity has at least one type"
        raise ValueError(msg)
    return Entity.of(names)


def moment_to_json(moment: datetime.datetime) -> str:
    """RFC 3339 in UTC, ``2026-01-02T12:00:00Z``; reads back as the same moment."""
    return moment.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")


def value_to_json(value: float | None) -> int | float | str | None:
    """A quota value of a document: a number, null for "not set", or the text of what JSON cannot have (``"NaN"``)."""
    if value is None:
        return None
    return number_to_json(value) if math.isfinite(value) else number_text(value)


def canonical_bytes(value: Json) -> bytes:
    """The one byte string for a value: sorted keys, no blanks, UTF-8 (lone surrogates escaped)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def plan_digest(cluster_id: str | None, changes: Iterable[Change]) -> str:
    """``sha256:<hex>`` over the format's major version, the cluster id, and the changes sorted by entity and key.

    Time, tool version, source lines, notes and findings are left out on purpose: what is approved is what is
    written.
    """
    rows: list[str] = []
    for change in sorted_by_entity(changes, lambda change: change.entity):
        names = sorted((_quoted(t), "null" if n is DEFAULT else _quoted(n)) for t, n in change.entity.parts)
        entity = ",".join([f"{entity_type}:{name}" for entity_type, name in names])
        rows += [
            f"[{{{entity}}},{_quoted(key.key)},{_digest_value(key.before)},{_digest_value(key.after)}]"
            for key in sorted(change.keys, key=lambda key: key.key)
        ]
    version = _quoted(FORMAT_VERSION.partition(".")[0])
    cluster = "null" if cluster_id is None else _quoted(cluster_id)
    # The text that ``canonical_bytes`` gives, in a third of its time.
    text = f'{{"changes":[{",".join(rows)}],"cluster":{cluster},"format":{version}}}'
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def _digest_value(value: float | None) -> str:
    return "null" if value is None else f'"{number_text(value)}"'


def document_text(value: Json) -> str:
    """A document for stdout or a file: indented, keys in the order given, ASCII only, so that no terminal is fooled."""
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def field_path(parts: Iterable[str | int]) -> str:
    """A path of keys and indices as text for a message: ``changes[3].entity``, or ``the document`` for the root."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{escaped(part)}" for part in parts)
    return path.removeprefix(".") or "the document"


def quoted_json(value: object) -> str:
    """A value for a message: as JSON, escaped, and cut when it is long."""
    text = escaped(json.dumps(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
