"""The log on stderr: one line an event, as text for people or as JSON for machines.

Whatever comes in is escaped, so no name of a user or client can break a line, hide or forge one.
"""

from __future__ import annotations

import contextlib
import enum
import json
import threading
from typing import TextIO

from reconciler.formats.canonical import Json, moment_to_json
from reconciler.model.entity import escaped
from reconciler.ports import Clock


class LogFormat(enum.StrEnum):
    """How a line looks."""

    TEXT = "text"
    JSON = "json"


class Level(enum.StrEnum):
    """How bad it is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Log:
    """Writes lines. ``fields``: further values of an event, only in the JSON form; the text says them in words.

    A log that takes no more (its reader is gone, the disk is full) does not stop the service.
    """

    def __init__(self, stream: TextIO, log_format: LogFormat, *, clock: Clock) -> None:
        self._stream = stream
        self._format = log_format
        self._clock = clock
        self._lock = threading.Lock()

    def write(self, level: Level, event: str, message: str, fields: dict[str, Json] | None = None) -> None:
        """One line; ``event`` is a fixed word."""
        at = moment_to_json(self._clock.now())
        if self._format is LogFormat.JSON:
            row: dict[str, Json] = {"ts": at, "level": level.value, "event": event, "message": escaped(message), **(fields or {})}
            line = json.dumps(row, ensure_ascii=True, allow_nan=False)
        else:
            line = f"{at} {level.value} {event}: {escaped(message)}"
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")
            self._stream.flush()
