"""The log on stderr: one line an event, as text for people or as JSON for machines.

All values are escaped, so no name of a user or client can break, conceal or forge a line.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Final, TextIO

from reconciler.formats import moment_to_json
from reconciler.logs import Datum, JsonFormatter
from reconciler.model import display_name, escaped
from reconciler.ports import Clock

_LOGGER: Final = "reconciler.service"


class Log:
    """Writes lines. A log that takes no more (its reader is gone, the disk is full) does not stop the service."""

    def __init__(self, stream: TextIO, *, as_json: bool, clock: Clock, least: int = logging.NOTSET) -> None:
        """``least``: lines of a lower level are left out."""
        self._stream = stream
        self._formatter = JsonFormatter() if as_json else _TextFormatter()
        self._clock = clock
        self._lock = threading.Lock()
        self._least = least

    def write(
        self, level: int, event: str, message: str, fields: Mapping[str, Datum] | None = None, *, cluster: str = ""
    ) -> None:
        """Write one line. ``level``: one of ``logging``; ``event``: a fixed word; ``fields``: further values of the JSON form."""
        if level < self._least:
            return
        if cluster:
            message = f"cluster {display_name(cluster)}: {message}"
            fields = {"cluster": cluster, **(fields or {})}
        record = logging.LogRecord(_LOGGER, level, "", 0, message, None, None)
        record.created = self._clock.now().timestamp()
        record.event, record.data = event, fields or {}
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{self._formatter.format(record)}\n")
            self._stream.flush()


@contextlib.contextmanager
def redirect_library_logs(log: Log) -> Iterator[None]:
    """Inside, warnings of libraries become lines of this log. Libraries would write them without JSON and unescaped."""
    handler = _LibraryHandler(log)
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)


class _TextFormatter(logging.Formatter):
    """``2026-01-02T12:00:00Z info pass: in_sync``."""

    def format(self, record: logging.LogRecord) -> str:
        at = moment_to_json(datetime.datetime.fromtimestamp(record.created, datetime.UTC))
        return f"{at} {record.levelname.lower()} {vars(record)['event']}: {escaped(record.getMessage())}"


class _LibraryHandler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(level=logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        # Never more than a warning: what it means for a pass, the line about the pass says.
        self._log.write(logging.WARNING, "library", f"{record.name}: {record.getMessage()}")
