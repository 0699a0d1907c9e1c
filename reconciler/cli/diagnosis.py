"""The diagnostic log on stderr: ``-v``, ``-vv`` and ``--log-format``; the only place that configures loggers.

``-v`` prints the records of this program, ``-vv`` those of libraries and tracebacks, too. With ``--log-format json`` each record
is one JSON object on a line. Messages for people stay text, and stdout never changes.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections.abc import Iterator
from typing import Final, TextIO

from reconciler.cli import output
from reconciler.logs import LIBRARIES, JsonFormatter, TextFormatter, hush_libraries

OURS: Final = "reconciler"
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
    try:
        yield
    finally:
        logging.raiseExceptions = raises
        for log, handler in added:
            log.removeHandler(handler)
        for log, level in zip(known, levels, strict=True):
            log.setLevel(level)


def print_error(message: str, error: BaseException, verbosity: int) -> None:
    """Print what ended a command on stderr, after its traceback where that is wanted."""
    if verbosity >= _FROM_LIBRARIES:
        with contextlib.suppress(OSError):
            traceback.print_exception(error)
    output.tell(message)


def _handler(stream: TextIO, *, as_json: bool) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    return handler


def _is_foreign(record: logging.LogRecord) -> bool:
    return record.name != OURS and not record.name.startswith(f"{OURS}.")
