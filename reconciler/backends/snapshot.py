"""Snapshot files: a cluster's quotas at one moment as JSON, written by ``export --snapshot`` and read in place of the cluster.

The document is ``{format_version, cluster: {name, id, kafka_version}, observed: {at, from}, entities: [{entity, quotas}]}``, with
the entities in canonical order; values that JSON cannot hold are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. Its
schema is ``schemas/snapshot.v1.schema.json``.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from reconciler.errors import FileAccessError, ManifestError
from reconciler.formats import (
    FORMAT_VERSION,
    Json,
    cluster_to_json,
    document_text,
    entity_from_json,
    entity_to_json,
    moment_to_json,
    value_to_json,
    write_whole,
)
from reconciler.logs import log_event
from reconciler.model import ClusterIdentity, CurrentState, Entity, Observed, ObservedFrom, Quotas, escaped

_log: Final = logging.getLogger(__name__)

_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class SnapshotReader:
    """A ``QuotaReader`` over a file; the state says that it was read from a snapshot, and when the cluster was observed.

    With ``content`` the file is not opened, and ``path`` only names it.
    """

    def __init__(self, path: Path, *, content: bytes | None = None) -> None:
        self._path = path
        self._content = content

    def current_state(self) -> CurrentState:
        """The recorded state. Raises as ``read_snapshot``."""
        state = read_snapshot(self._path) if self._content is None else parse_snapshot(self._content, self._path)
        log_event(_log, "snapshot read", file=str(self._path), entities=len(state.entities))
        return state


def snapshot_document(state: CurrentState) -> dict[str, Json]:
    """The JSON document of a state, the same for equal states."""
    entities: list[Json] = [
        {
            "entity": dict(entity_to_json(entity)),
            "quotas": {key: value_to_json(value) for key, value in sorted(state.entities[entity].items())},
        }
        for entity in sorted(state.entities, key=lambda entity: entity.sort_key)
    ]
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(state.cluster),
        "observed": {"at": moment_to_json(state.observed.at), "from": state.observed.origin.value},
        "entities": entities,
    }


def write_snapshot(state: CurrentState, path: Path) -> None:
    """Write the document whole or not at all: an interrupted run leaves what was there. Raises ``FileAccessError``."""
    write_whole(path, [document_text(snapshot_document(state))])


def read_snapshot(path: Path) -> CurrentState:
    """Read a snapshot.

    Raises ``FileAccessError`` when the file cannot be read, ``ManifestError`` when it is not a snapshot of a version that this
    program understands; the message says where in the document.
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
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ManifestError(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}") from None
    except _DocumentError as error:
        raise ManifestError(f"{path} is not a snapshot: {error}") from None
    except (ValueError, RecursionError):
        raise ManifestError(f"{path} is not a snapshot: it has a number too long, or lists nested too deep, to be read") from None
    try:
        return _state(document)
    except _DocumentError as error:
        raise ManifestError(f"{path} is not a snapshot that can be used: {escaped(str(error))}") from None


class _DocumentError(Exception):
    """What is wrong, and where in the document."""


def _state(document: Any) -> CurrentState:
    top = _object(document, "the document")
    _require_version(top.get("format_version"))
    if top.get("filter") is not None:
        raise _DocumentError("it has a filter: it is what describe printed of some entities, and not all that the cluster has")
    cluster = _object(top.get("cluster"), "cluster")
    observed = _object(top.get("observed"), "observed")
    rows = top.get("entities")
    if not isinstance(rows, list):
        raise _DocumentError("entities is not a list")
    entities: dict[Entity, Quotas] = {}
    for index, row in enumerate(rows):
        where = f"entities[{index}]"
        entity = _entity(row, where)
        if entity in entities:
            raise _DocumentError(f"{where} has the same entity as an earlier one: {entity}")
        entities[entity] = _quotas(row, where)
    identity = ClusterIdentity(**{key: _text(cluster.get(key), f"cluster.{key}") for key in ("name", "id", "kafka_version")})
    return CurrentState(
        cluster=identity,
        observed=Observed(at=_instant(observed.get("at")), origin=ObservedFrom.SNAPSHOT),
        entities=entities,
    )


def _require_version(version: object) -> None:
    if not isinstance(version, str):
        raise _DocumentError("it has no format_version")
    ours = FORMAT_VERSION.split(".")[0]
    if version.split(".")[0] != ours:
        raise _DocumentError(f"its format_version is {version}, and this program reads version {ours}.x")


def _entity(row: Any, where: str) -> Entity:
    names = _object(_object(row, where).get("entity"), f"{where}.entity")
    try:
        return entity_from_json(names)
    except ValueError as error:
        raise _DocumentError(f"{where}.entity: {error}") from None


def _quotas(row: Mapping[str, Any], where: str) -> Quotas:
    quotas = _object(row.get("quotas"), f"{where}.quotas")
    return {key: _number(value, f"{where}.quotas.{key}") for key, value in quotas.items()}


def _number(value: object, where: str) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            return float(value)
    raise _DocumentError(f"{where} is not a number")


def _instant(value: object) -> datetime.datetime:
    try:
        at = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise _DocumentError("observed.at is not a date and time") from None
    if at.tzinfo is None:
        raise _DocumentError("observed.at has no time zone")
    return at


def _text(value: object, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _DocumentError(f"{where} is neither a string nor null")
    return value


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _DocumentError(f"{where} is not an object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DocumentError("an object has the same key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise _DocumentError(f"{name} is not JSON; it is written in quotes")
