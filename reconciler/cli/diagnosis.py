"""The diagnostic log on stderr: ``-v``, ``-vv`` and ``--log-format``; the only place that configures loggers.

``-v`` prints the records of this program, ``-vv`` those of libraries and tracebacks, too. With ``--log-format json`` each line on
stderr is one JSON object, messages for people included. stdout never changes.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


class DiagnosticFormat(enum.StrEnum):
    """How a record is printed."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the command line asks for. ``verbosity`` counts ``-v``."""

    verbosity: int = 0
    log_format: DiagnosticFormat = DiagnosticFormat.TEXT

    @property
    def tracebacks(self) -> bool:
        """Whether an error prints its traceback."""
        return self.verbosity >= _FROM_LIBRARIES


def diagnosis_of(args: argparse.Namespace) -> Diagnosis:
    """The options of every command that are about diagnosis."""
    return Diagnosis(
        verbosity=args.verbose_before + getattr(args, "verbose", 0),
        log_format=DiagnosticFormat(args.log_format),
    )


@contextlib.contextmanager
def diagnosed(wanted: Diagnosis, *, is_service: bool = False) -> Iterator[None]:
    """Configure logging inside, and undo it at the end, for who calls ``main`` in a process of their own.

    A service (``is_service``) writes its own lines, and prints the warnings of libraries itself.
    """
    package_log, root = logging.getLogger(OURS), logging.getLogger()
    levels = {log: log.level for log in (package_log, *(logging.getLogger(name) for name in LIBRARIES))}
    stderr, raises = sys.stderr, logging.raiseExceptions
    added: list[tuple[logging.Logger, logging.Handler]] = []

    def add(log: logging.Logger, handler: logging.Handler) -> None:
        log.addHandler(handler)
        added.append((log, handler))

    # A full disk or a reader that went away must not print the traceback of a handler.
    logging.raiseExceptions = False
    # Without any handler, Python itself would print the warnings of libraries.
    for name in (OURS, *LIBRARIES):
        add(logging.getLogger(name), logging.NullHandler())
    hush_libraries(logging.INFO if wanted.tracebacks else logging.WARNING)
    if wanted.verbosity:
        package_log.setLevel(logging.DEBUG)
        add(package_log, _handler(wanted, stderr))
    if wanted.tracebacks:
        handler = _handler(wanted, stderr)
        handler.addFilter(lambda record: _is_foreign(record) and not (is_service and record.levelno >= logging.WARNING))
        add(root, handler)
    if wanted.log_format is DiagnosticFormat.JSON and not is_service:
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
        for log, level in levels.items():
            log.setLevel(level)


def print_error(message: str, error: BaseException, wanted: Diagnosis) -> None:
    """Print what ended a command on stderr, after its traceback where that is wanted; with ``--log-format json`` in one line."""
    # Where stderr takes nothing (a log on a full disk), the exit code still reports the failure.
    with contextlib.suppress(OSError):
        if isinstance(sys.stderr, JsonLines):
            sys.stderr.error(escaped(message), error if wanted.tracebacks else None)
            return
        if wanted.tracebacks:
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


def _handler(wanted: Diagnosis, stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if wanted.log_format is DiagnosticFormat.JSON else TextFormatter())
    return handler


def _is_foreign(record: logging.LogRecord) -> bool:
    return record.name != OURS and not record.name.startswith(f"{OURS}.")
