"""Clients that recorded traffic names: JSON lines of ``{"user": ..., "client_id": ...}``."""

from __future__ import annotations

import json
from pathlib import Path

from reconciler.errors import FileAccessError


def read_known_clients(path: Path) -> frozenset[tuple[str, str]]:
    """Distinct pairs of a principal's name and a client id; one that is ``null``, empty or absent is a client without an id.

    Other fields are ignored, and so are empty lines. Raises ``FileAccessError`` with the line for anything else.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return frozenset(_pair(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip())
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise FileAccessError(f"{path} is not UTF-8 text") from None


def _pair(line: str, where: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _refused(where, "this is not JSON") from None
    if not isinstance(row, dict):
        raise _refused(where, "this is not an object")
    user, client_id = row.get("user"), row.get("client_id")
    if not isinstance(user, str):
        raise _refused(where, "user is not a string")
    if not isinstance(client_id, str | None):
        raise _refused(where, "client_id is not a string")
    return user, client_id or ""


def _refused(where: str, reason: str) -> FileAccessError:
    return FileAccessError(f'{where}: {reason}; a line is {{"user": "alice", "client_id": "app"}}')
