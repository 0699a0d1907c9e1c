"""The log on stderr: one line an event, as text for people or as JSON for machines.

All values are escaped, so no name of a user or client can break, conceal or forge a line.
"""

from __future__ import annotations

import contextlib
import datetime
import enum
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Final, TextIO

from reconciler.formats import moment_to_json
from reconciler.logs import Datum, JsonFormatter
from reconciler.model import display_name, escaped
from reconciler.ports import Clock

_LOGGER: Final = "reconciler.service"


class LogFormat(enum.StrEnum):
    """How a line looks."""

    TEXT = "text"
    JSON = "json"


class Log:
    """Writes lines. A log that takes no more (its reader is gone, the disk is full) does not stop the service."""

    def __init__(
        self,
        stream: TextIO,
        log_format: LogFormat,
        *,
        clock: Clock,
        cluster: str | None = None,
        lock: threading.Lock | None = None,
        least: int = logging.NOTSET,
    ) -> None:
        """``least``: lines of a lower level are left out."""
        self._stream = stream
        self._format = log_format
        self._formatter = JsonFormatter() if log_format is LogFormat.JSON else _TextFormatter()
        self._clock = clock
        self._lock = lock or threading.Lock()
        self._cluster = cluster
        self._least = least

    def about(self, cluster: str) -> Log:
        """The same log; each line names the cluster."""
        return Log(self._stream, self._format, clock=self._clock, cluster=cluster, lock=self._lock, least=self._least)

    def write(self, level: int, event: str, message: str, fields: Mapping[str, Datum] | None = None) -> None:
        """One line. ``level``: one of ``logging``; ``event``: a fixed word; ``fields``: further values, only in the JSON form."""
        if level < self._least:
            return
        if self._cluster is not None:
            message = f"cluster {display_name(self._cluster)}: {message}"
            fields = {"cluster": self._cluster, **(fields or {})}
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
