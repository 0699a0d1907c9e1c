"""The log on stderr: one line an event, as text for people or as JSON for machines.

Whatever comes in is escaped, so no name of a user or client can break a line, hide or forge one.
"""

from __future__ import annotations

import contextlib
import enum
import json
import logging
import threading
from collections.abc import Iterator
from typing import TextIO

from reconciler.formats import Json, moment_to_json
from reconciler.model import escaped
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


@contextlib.contextmanager
def redirect_library_logs(log: Log) -> Iterator[None]:
    """Inside, what libraries warn of becomes lines of this log: theirs would be no JSON, and would not be escaped."""
    handler = _LibraryHandler(log)
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)


class _LibraryHandler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(level=logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        # Never more than a warning: what it means for a pass, the line about the pass says.
        self._log.write(Level.WARNING, "library", f"{record.name}: {record.getMessage()}")
