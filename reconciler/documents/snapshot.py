"""States of a cluster as documents: a snapshot of one moment, and the baseline that a clean, verified apply wrote down for drift.

The digest of a baseline covers the cluster and all values, so that one which was edited, cut short or joined is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring_ascii as _string
from pathlib import Path
from typing import Any, Final

from reconciler.collector import pause_collector
from reconciler.documents.document import VALUES, Document, ForeignVersionError, row
from reconciler.documents.kinds import FieldError, parse
from reconciler.errors import BaselineError, FileAccessError, ManifestError
from reconciler.files import write_whole
from reconciler.formats import FORMAT_VERSION, Json, canonical_bytes, value_to_json
from reconciler.model import (
    DEFAULT,
    ClusterIdentity,
    CurrentState,
    DesiredState,
    Digest,
    Entity,
    EntityName,
    LeaderSpread,
    ManifestCommit,
    MatchKind,
    Observed,
    ObservedFrom,
    Quotas,
    Selector,
    TypeMatch,
    escaped,
    in_canonical_order,
)


def selected_entities(_: CurrentState) -> Mapping[str, Any] | None:
    """The selector of a state that describe printed of some entities only. Such a document is not a snapshot."""
    return None


SNAPSHOT: Final = Document(
    cls=CurrentState,
    name="snapshot",
    title="kafka-quotas snapshot",
    codec=VALUES.extended(
        {
            CurrentState: row("cluster observed brokers? leaders? filter? entities", filter=selected_entities),
            LeaderSpread: row("partitions leaderless absent topics?"),
        }
    ),
)


def write_snapshot(state: CurrentState, path: Path) -> None:
    """Write the document whole or not at all: an interrupted run leaves what was there. Raises ``FileAccessError``."""
    write_whole(path, snapshot_chunks(state))


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
            data = parse(text, unique=True)
            _require_all(data)
            state = SNAPSHOT.build(data)
            return replace(state, observed=Observed(at=state.observed.at, origin=ObservedFrom.SNAPSHOT))
    except json.JSONDecodeError as error:
        raise ManifestError(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}") from None
    except ForeignVersionError as error:
        raise ManifestError(f"{path} is a snapshot {error}") from None
    except FieldError as error:
        raise ManifestError(f"{path} is not a snapshot that can be used: {escaped(str(error))}") from None
    except (ValueError, RecursionError):
        raise ManifestError(f"{path} is not a snapshot: it has a number too long, or lists nested too deep, to be read") from None


def _require_all(data: Any) -> None:
    if isinstance(data, dict) and "filter" in data:
        raise FieldError("filter", "must not be given: the document is what describe printed of some entities, not all")


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
    head = SNAPSHOT.write(replace(state, entities={}))
    del head["entities"]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBaseline:
    """The desired state of a cluster as an apply recorded it."""

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    source: ManifestCommit = field(default_factory=ManifestCommit)
    """Commit of the manifests. Its fields are ``None`` outside of git."""
    entities: Mapping[Entity, Quotas]
    """Every declared entity with its quotas, those without any included."""
    unmanaged: frozenset[Entity] = frozenset()
    """Entities in the scope that no manifest declared."""

    @property
    def digest(self) -> Digest:
        """Over the format's major version, the cluster id, the entities and those that no manifest declared."""
        canonical = {
            "format": FORMAT_VERSION.partition(".")[0],
            "cluster": self.cluster.id,
            "entities": _CODEC.kind(Mapping[Entity, Quotas]).written(self.entities),
            "unmanaged": _CODEC.kind(frozenset[Entity]).written(self.unmanaged),
        }
        return "sha256:" + hashlib.sha256(canonical_bytes(canonical)).hexdigest()


_CODEC: Final = VALUES.extended({RecordedBaseline: row("cluster source entities unmanaged digest!")})
BASELINE: Final = Document(
    cls=RecordedBaseline,
    name="baseline",
    title="kafka-quotas baseline",
    codec=_CODEC,
    called="a baseline written by 'apply --record-baseline'",
)


def baseline_of(
    desired: DesiredState, cluster: ClusterIdentity, source: ManifestCommit, *, unmanaged: Iterable[Entity] = ()
) -> RecordedBaseline:
    """Make a baseline, equal for equal state, cluster, commit and unmanaged entities of the scope."""
    entities = {
        entity: {key.value: quota.value for key, quota in declared.quotas.items()}
        for entity, declared in desired.entities.items()
    }
    return RecordedBaseline(cluster=cluster, source=source, entities=entities, unmanaged=frozenset(unmanaged))


def read_baseline(text: str, *, name: str) -> RecordedBaseline:
    """The baseline of a document. Raises ``BaselineError`` for any other text, and for another digest than its entities have."""
    try:
        return BASELINE.read(text, name=name)
    except FileAccessError as error:
        raise BaselineError(f"{error}. Record it again") from error
