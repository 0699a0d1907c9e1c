"""The diagnostic log on stderr: ``-v``, ``-vv`` and ``--log-format``; the only place that configures loggers.

``-v`` prints the records of this program, ``-vv`` those of libraries and tracebacks, too. With ``--log-format json`` each line on
stderr is one JSON object, messages for people included. stdout never changes.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, TextIO, cast

from reconciler.logs import LIBRARIES, JsonFormatter, TextFormatter, hush_libraries
from reconciler.model import escaped
from reconciler.render import Sink

_Thrown = tuple[type[BaseException], BaseException, TracebackType | None]

OURS: Final = "reconciler"
_PREFIX: Final = "kafka-quotas: "
_WARNING: Final = "warning: "
_FROM_LIBRARIES: Final = 2
"""How many ``-v`` show records of libraries, and tracebacks."""


@contextlib.contextmanager
def diagnosed(verbosity: int, *, as_json: bool, is_service: bool = False) -> Iterator[None]:
    """Configure logging inside, and undo it at the end, for who calls ``main`` in a process of their own.

    ``verbosity`` counts ``-v``. A service (``is_service``) writes its own lines, and prints the warnings of libraries itself.
    """
    stderr, raises = sys.stderr, logging.raiseExceptions
    package_log, root = logging.getLogger(OURS), logging.getLogger()
    known = [package_log, *map(logging.getLogger, LIBRARIES)]
    levels = [log.level for log in known]
    # Without any handler, Python itself would print the warnings of libraries.
    added: list[tuple[logging.Logger, logging.Handler]] = [(log, logging.NullHandler()) for log in known]
    # A full disk or a reader that went away must not print the traceback of a handler.
    logging.raiseExceptions = False
    hush_libraries(logging.INFO if verbosity >= _FROM_LIBRARIES else logging.WARNING)
    if verbosity:
        package_log.setLevel(logging.DEBUG)
        added.append((package_log, _handler(stderr, as_json=as_json)))
    if verbosity >= _FROM_LIBRARIES:
        handler = _handler(stderr, as_json=as_json)
        handler.addFilter(lambda record: _is_foreign(record) and not (is_service and record.levelno >= logging.WARNING))
        added.append((root, handler))
    for log, handler in added:
        log.addHandler(handler)
    if as_json and not is_service:
        sys.stderr = cast("TextIO", JsonLines(stderr))
    try:
        yield
    finally:
        logging.raiseExceptions = raises
        if sys.stderr is not stderr:
            sys.stderr.flush()
            sys.stderr = stderr
        for log, handler in added:
            log.removeHandler(handler)
        for log, level in zip(known, levels, strict=True):
            log.setLevel(level)


def print_error(message: str, error: BaseException, verbosity: int) -> None:
    """Print what ended a command on stderr, after its traceback where that is wanted; with ``--log-format json`` in one line."""
    traced = verbosity >= _FROM_LIBRARIES
    # Where stderr takes nothing (a log on a full disk), the exit code still reports the failure.
    with contextlib.suppress(OSError):
        if isinstance(sys.stderr, JsonLines):
            sys.stderr.error(escaped(message), error if traced else None)
            return
        if traced:
            traceback.print_exception(error)
        print(f"{_PREFIX}{escaped(message)}", file=sys.stderr)


class JsonLines(Sink):
    """A text stream that writes each line it gets as one JSON object, for programs that read stderr.

    A message of the command, ``kafka-quotas: ...``, keeps its text without the program's name; ``level`` states how bad it is.
    """

    shows_status = False

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, breaks=False)
        self._rest = ""
        self._formatter = JsonFormatter()

    def write(self, text: str, /) -> int:
        """Write every line that is whole."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._write(line)
        return len(text)

    def flush(self) -> None:
        """Write what has no end yet, such as a question, and flush the stream behind."""
        rest, self._rest = self._rest, ""
        self._write(rest)
        self._stream.flush()

    def error(self, text: str, thrown: BaseException | None) -> None:
        """One line for an error, with the traceback of ``thrown``."""
        details = None if thrown is None else (type(thrown), thrown, thrown.__traceback__)
        self._emit(logging.ERROR, "error", {"text": text}, details)

    def _write(self, line: str) -> None:
        if not line.strip():
            return
        text = line.removeprefix(_PREFIX)
        level = logging.WARNING if text.startswith(_WARNING) else logging.INFO
        self._emit(level, "message", {"text": text.removeprefix(_WARNING)})

    def _emit(self, level: int, event: str, data: Mapping[str, str], thrown: _Thrown | None = None) -> None:
        record = logging.LogRecord("reconciler.cli", level, "", 0, event, None, thrown)
        record.data = data
        self._stream.write(f"{self._formatter.format(record)}\n")


def _handler(stream: TextIO, *, as_json: bool) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    return handler


def _is_foreign(record: logging.LogRecord) -> bool:
    return record.name != OURS and not record.name.startswith(f"{OURS}.")
