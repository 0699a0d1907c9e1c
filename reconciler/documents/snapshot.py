"""Snapshots as JSON documents (``schemas/snapshot.v1.schema.json``): the quotas of a cluster at one moment.

The document is ``{format_version, cluster: {name, id, kafka_version}, observed: {at, from}, brokers: [id], leaders,
entities: [{entity, quotas}]}``, with ``brokers`` and ``leaders`` only where they are known, and the entities in canonical
order. Values that JSON cannot express are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii as _string
from pathlib import Path
from typing import Final

from reconciler.collector import pause_collector
from reconciler.documents.reading import (
    FieldError,
    ForeignVersionError,
    checked,
    cluster_from_json,
    moment_from_json,
    number_from_json,
    parse,
)
from reconciler.documents.units import brokers_to_json, leaders_from_json
from reconciler.errors import FileAccessError, ManifestError
from reconciler.files import write_whole
from reconciler.formats import (
    FORMAT_VERSION,
    Json,
    cluster_to_json,
    document_text,
    entity_from_json,
    entity_to_json,
    field_path,
    moment_to_json,
    value_to_json,
)
from reconciler.model import (
    DEFAULT,
    CurrentState,
    Entity,
    EntityName,
    MatchKind,
    Observed,
    ObservedFrom,
    Quotas,
    Selector,
    TypeMatch,
    escaped,
    in_canonical_order,
)

SCHEMA: Final = "snapshot"


def snapshot_to_json(state: CurrentState) -> dict[str, Json]:
    """The JSON document of a state, the same for equal states."""
    entities: list[Json] = [
        {
            "entity": dict(entity_to_json(entity)),
            "quotas": {key: value_to_json(value) for key, value in sorted(state.entities[entity].items())},
        }
        for entity in sorted(state.entities, key=lambda entity: entity.sort_key)
    ]
    return {**_head(state), "entities": entities}


def _head(state: CurrentState) -> dict[str, Json]:
    """What stands before the entities; ``brokers`` only where they are known."""
    head: dict[str, Json] = {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(state.cluster),
        "observed": {"at": moment_to_json(state.observed.at), "from": state.observed.origin.value},
    }
    return {**head, **brokers_to_json(state.brokers, state.leaders)}


def write_snapshot(state: CurrentState, path: Path) -> None:
    """Write the document whole or not at all: an interrupted run leaves what was there. Raises ``FileAccessError``."""
    write_whole(path, [document_text(snapshot_to_json(state))])


def read_snapshot(path: Path) -> CurrentState:
    """Read a snapshot.

    Raises ``FileAccessError`` when the file cannot be read, ``ManifestError`` when it is not a snapshot of a version that this
    program understands. The message names the place in the document.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"the snapshot {path} cannot be read: {error.strerror}") from error
    return parse_snapshot(content, path)


def parse_snapshot(content: bytes, path: Path) -> CurrentState:
    """The same from a file's bytes; ``path`` names the file in messages. Raises ``ManifestError``."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ManifestError(f"{path} is not a snapshot: it is not UTF-8 text") from None
    try:
        with pause_collector():
            return snapshot_from_json(parse(text, unique=True))
    except json.JSONDecodeError as error:
        raise ManifestError(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}") from None
    except ForeignVersionError as error:
        raise ManifestError(f"{path} is a snapshot {error}") from None
    except FieldError as error:
        raise ManifestError(f"{path} is not a snapshot that can be used: {escaped(str(error))}") from None
    except (ValueError, RecursionError):
        raise ManifestError(f"{path} is not a snapshot: it has a number too long, or lists nested too deep, to be read") from None


def snapshot_from_json(data: object) -> CurrentState:
    """The state, as observed in a snapshot. Raises ``ForeignVersionError``, and ``FieldError`` that names the field."""
    document = checked(data, SCHEMA)
    if "filter" in document:
        raise FieldError("filter", "must not be given: the document is what describe printed of some entities, not all")
    entities: dict[Entity, Quotas] = {}
    for index, row in enumerate(document["entities"]):
        entity = entity_from_json(row["entity"])
        if entity in entities:
            raise FieldError(f"entities[{index}]", f"has the same entity as an earlier one: {entity}")
        try:
            entities[entity] = {key: number_from_json(value, key) for key, value in row["quotas"].items()}
        except FieldError as error:
            path = field_path(("entities", index, "quotas", error.path))
            raise FieldError(path, error.problem) from error
    at = moment_from_json(document["observed"]["at"], "observed.at")
    return CurrentState(
        cluster=cluster_from_json(document["cluster"]),
        observed=Observed(at=at, origin=ObservedFrom.SNAPSHOT),
        entities=entities,
        brokers=tuple(sorted(document.get("brokers", ()))),
        leaders=leaders_from_json(document),
    )


def selector_to_json(selector: Selector) -> dict[str, Json]:
    """A selector as the field ``filter`` and manifests spell it: ``{"user": {"prefix": "payments-"}, "strict": true}``.

    A literal name is a string, everything else an object of one field; ``strict`` only when it is set.
    """
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


def snapshot_chunks(state: CurrentState, *, selected: Json = None) -> Iterator[str]:
    """The text of the document, piece by piece; ``selected`` is its field ``filter``, for a state that was filtered.

    The bytes are those of ``document_text`` for the same document; making that first, and indenting it, would take several times
    as long for 100,000 entities.
    """
    head = _head(state)
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
