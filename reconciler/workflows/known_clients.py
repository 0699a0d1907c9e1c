"""Clients that recorded traffic names: JSON lines of ``{"user": ..., "client-id": ...}``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError
from reconciler.text import did_you_mean, shown

_CLIENT_ID: Final = "client-id"
_SPELLINGS: Final = (_CLIENT_ID, "client_id")
"""The second is the name of the column in recorded traffic, and was the only one that this file knew."""


def read_known_clients(path: Path) -> frozenset[tuple[str, str]]:
    """Distinct pairs of a principal's name and a client id; one that is ``null``, empty or absent is a client without an id.

    Empty lines are ignored. Raises ``FileAccessError`` with the line for anything else, unknown fields included.
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
    known = ("user", *_SPELLINGS)
    for field in row:
        if field not in known:
            raise _refused(where, f"the field {shown(field)} is unknown{did_you_mean(field, known)}")
    spelled = [name for name in _SPELLINGS if name in row]
    if len(spelled) > 1:
        raise _refused(where, f"{' and '.join(spelled)} are the same field; write one of them")
    user, client_id = row.get("user"), row[spelled[0]] if spelled else None
    if not isinstance(user, str):
        raise _refused(where, "user is not a string")
    if not isinstance(client_id, str | None):
        raise _refused(where, f"{spelled[0]} is not a string")
    return user, client_id or ""


def _refused(where: str, reason: str) -> FileAccessError:
    return FileAccessError(f'{where}: {reason}; a line is {{"user": "alice", "client-id": "app"}}')
