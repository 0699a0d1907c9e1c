"""Entities to ask about as JSON lines: ``{"user": "alice", "client-id": null}``, where ``null`` is the default."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Final

from reconciler.collector import pause_collector
from reconciler.errors import FileAccessError
from reconciler.model import DEFAULT, Entity, EntityName, Known, escaped
from reconciler.resolution import client_of
from reconciler.text import shown

AskedClient = tuple[Entity, Known]
"""An entity as it was asked for, and the client that it stands for."""

_OBJECTS: Final = json.JSONDecoder(object_pairs_hook=tuple)
"""An object as a tuple of pairs, so that a type that is there twice is seen."""


def read_clients(path: Path) -> list[AskedClient]:
    """The entities of a file, in order. Raises ``FileAccessError`` for an unreadable file or line."""
    try:
        with path.open("rb") as stream:
            return parse_clients(stream, str(path))
    except OSError as error:
        raise FileAccessError(f"{escaped(str(path))} cannot be read: {error.strerror}") from error


def parse_clients(stream: BinaryIO, name: str) -> list[AskedClient]:
    """The entities of a stream, in order; empty lines are left out.

    An empty client id is a client that sends none. Raises ``FileAccessError`` with ``name`` and the line for the first line that
    is not such an object.
    """
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig")
    try:
        with pause_collector():
            return _parsed(lines, escaped(name))
    except UnicodeDecodeError:
        raise FileAccessError(f"{escaped(name)} is not UTF-8 text") from None
    finally:
        with contextlib.suppress(ValueError):
            lines.detach()


def _parsed(lines: Iterable[str], name: str) -> list[AskedClient]:
    clients = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            value, end = _OBJECTS.raw_decode(text)
            if end != len(text):
                raise json.JSONDecodeError("Extra data", text, end)
            entity = _entity(value)
            clients.append((entity, client_of(entity)))
        except (ValueError, RecursionError) as error:
            raise FileAccessError(
                f'{name}:{number}: {_reason(error)}. A line is {{"user": "alice", "client-id": "app"}}'
            ) from None
    return clients


def _entity(value: Any) -> Entity:
    if not isinstance(value, tuple):
        raise _LineError("this is not an object")
    names: dict[str, EntityName] = {}
    for entity_type, name in value:
        if entity_type in names:
            raise _LineError(f"{shown(entity_type)} is there twice")
        if name is None:
            names[entity_type] = DEFAULT
        elif isinstance(name, str):
            names[entity_type] = name
        else:
            raise _LineError(f"the name of the {shown(entity_type)} is neither a string nor null")
    if not names:
        raise _LineError("the object has no entity type")
    return Entity.of(names)


class _LineError(ValueError):
    """What is wrong with the object of a line."""


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"this is not JSON: {error.msg} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "this is not JSON: it is nested too deep"
    return str(error)
