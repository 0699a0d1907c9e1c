"""A state as the JSON document ``snapshot`` (``schemas/snapshot.v1.schema.json``), written piece by piece.

The bytes are those of ``document_text`` for the same document; making that first, and indenting it, would take several times as
long for 100,000 entities.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii as _string

from reconciler.formats.canonical import FORMAT_VERSION, Json, cluster_to_json, moment_to_json, value_to_json
from reconciler.model import DEFAULT, CurrentState, EntityName, in_canonical_order


def state_json(state: CurrentState, *, selected: Json = None) -> Iterator[str]:
    """The document; ``selected`` is its field ``filter``: what the state was filtered by, when it is not the whole cluster's."""
    head: dict[str, Json] = {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(state.cluster),
        "observed": {"at": moment_to_json(state.observed.at), "from": state.observed.origin.value},
    }
    if selected is not None:
        head["filter"] = selected
    # All but the closing brace; what is no list of entities is small.
    yield json.dumps(head, indent=2)[:-2] + ',\n  "entities": ['
    values: dict[tuple[str, float], str] = {}
    entities = state.entities
    before = "\n"
    for entity in in_canonical_order(entities):
        quotas = entities[entity]
        lines = []
        for item in sorted(quotas.items()) if len(quotas) > 1 else quotas.items():
            # Few values are of one kind: clusters have thousands of entities and a handful of classes.
            if (text := values.get(item)) is None:
                key, value = item
                text = values[item] = f"        {_string(key)}: {json.dumps(value_to_json(value))}"
            lines.append(text)
        names = [f"        {_string(entity_type)}: {_name(name)}" for entity_type, name in entity.parts]
        yield f'{before}    {{\n      "entity": {_object(names)},\n      "quotas": {_object(lines)}\n    }}'
        before = ",\n"
    yield "]\n}\n" if before == "\n" else "\n  ]\n}\n"


def _name(name: EntityName) -> str:
    return "null" if name is DEFAULT else _string(name)


def _object(lines: list[str]) -> str:
    return "{\n" + ",\n".join(lines) + "\n      }" if lines else "{}"
