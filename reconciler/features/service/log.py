"""The log on stderr: one line an event, as text for people or as JSON for machines.

All values are escaped, so no name of a user or client can break, conceal or forge a line.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
from collections.abc import Iterator, Mapping
from typing import Final, TextIO

from reconciler.formats import moment_to_json
from reconciler.logs import Datum, JsonFormatter
from reconciler.model import display_name, escaped

_LOGGER: Final = "reconciler.service"
_LONGEST: Final = 2_000


class Log:
    """Writes lines. A log that takes no more (its reader is gone, the disk is full) does not stop the service."""

    def __init__(self, stream: TextIO, *, as_json: bool, least: int = logging.NOTSET) -> None:
        """``least``: lines of a lower level are left out."""
        self._handler = _LineHandler(stream)
        self._handler.setFormatter(JsonFormatter() if as_json else _TextFormatter())
        self._handler.addFilter(lambda record: record.name == _LOGGER or record.levelno >= logging.WARNING)
        self._logger = logging.Logger(_LOGGER, least)  # noqa: LOG001 - a log is of one service, not of the process
        self._logger.addHandler(self._handler)

    def write(
        self, level: int, event: str, message: str, fields: Mapping[str, Datum] | None = None, *, cluster: str = ""
    ) -> None:
        """Write one line. ``level``: one of ``logging``; ``event``: a fixed word; ``fields``: further values of the JSON form."""
        if cluster:
            message = f"cluster {display_name(cluster)}: {message}"
            fields = {"cluster": cluster, **(fields or {})}
        message = escaped(message)
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]}... ({len(message)} characters)"
        self._logger.log(level, message, extra={"event": event, "data": fields or {}})

    @contextlib.contextmanager
    def with_libraries(self) -> Iterator[None]:
        """Inside, warnings of libraries become lines of this log. Libraries would write them without JSON and unescaped."""
        root = logging.getLogger()
        root.addHandler(self._handler)
        logging.captureWarnings(capture=True)
        try:
            yield
        finally:
            logging.captureWarnings(capture=False)
            root.removeHandler(self._handler)


class _LineHandler(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Leave the line out."""


class _TextFormatter(logging.Formatter):
    """``2026-01-02T12:00:00Z info pass: in_sync``."""

    def format(self, record: logging.LogRecord) -> str:
        at = moment_to_json(datetime.datetime.fromtimestamp(record.created, datetime.UTC))
        event = getattr(record, "event", f"library: {record.name}")
        return f"{at} {record.levelname.lower()} {event}: {escaped(record.getMessage())}"
