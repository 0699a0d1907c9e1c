"""Clients that recorded traffic names: JSON lines of ``{"user": ..., "client_id": ...}``."""

from __future__ import annotations

import json
from pathlib import Path

from reconciler.errors import FileAccessError
from reconciler.model.entity import escaped


def read_known_clients(path: Path) -> frozenset[tuple[str, str]]:
    """Distinct pairs of a principal's name and a client id; one that is ``null``, empty or absent is a client without an id.

    Other fields are ignored, and so are empty lines. Raises ``FileAccessError`` with the line for anything else.
    """
    found: set[tuple[str, str]] = set()
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):  # noqa: B007 - the number is for the errors below
                if line.strip():
                    found.add(_pair(line))
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise FileAccessError(f"{path} is not UTF-8 text, after line {number}") from None
    except (ValueError, RecursionError) as error:
        said = escaped(str(error)) if isinstance(error, _LineError) else "this is not JSON"
        raise FileAccessError(f'{path}:{number}: {said}; a line is {{"user": "alice", "client_id": "app"}}') from None
    return frozenset(found)


class _LineError(ValueError):
    """What is wrong with a line."""


def _pair(line: str) -> tuple[str, str]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise _LineError("this is not an object")
    user, client_id = row.get("user"), row.get("client_id") or ""
    if not isinstance(user, str):
        raise _LineError("user is not a string")
    if not isinstance(client_id, str):
        raise _LineError("client_id is not a string")
    return user, client_id
