"""Diagnostic records: which request went to which server, how long it took, and what came back.

A module logs with ``_log: Final = logging.getLogger(__name__)``, and one record reads
``log_event(_log, "broker answered", api="DescribeClientQuotas", milliseconds=3.1)``:

- The message is a short constant text: the name of the event. ``record.data`` has JSON values by ``lower_case`` keys, which name
  their unit (``milliseconds``, ``wait_seconds``, ``bytes``). An address is ``address``: ``host:port``.
- ``DEBUG``: each request and its answer. ``INFO``: a connection made or lost, a retry, another broker or controller. Nothing is
  logged above: what a user has to know is in the result or in the error.
- Secrets are never data: no password, token, SASL bytes, or value of a properties file. Texts are escaped here, so none can forge
  a line. A record costs nothing while its level is off.

This module configures nothing: programs do, with ``hush_libraries`` and handlers of their own.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from reconciler.model import escaped

Datum: TypeAlias = "str | int | float | bool | Sequence[Datum] | Mapping[str, Datum] | None"

LIBRARIES: Final = ("kafka", "kazoo", "urllib3", "py4j", "botocore")
"""The root loggers of the libraries that this program talks through."""

_LIBRARY_EVENT: Final = "library"
_RESERVED: Final = ("ts", "level", "logger", "event", "message")


def log_event(log: logging.Logger, message: str, *, level: int = logging.DEBUG, **data: Datum) -> None:
    """Log one record with its data, texts escaped; nothing when the level is off."""
    if log.isEnabledFor(level):
        log.log(level, message, extra={"data": {key: _plain(value) for key, value in data.items()}}, stacklevel=2)


@contextlib.contextmanager
def timed_event(log: logging.Logger, message: str, *, level: int = logging.DEBUG, **data: Datum) -> Iterator[dict[str, Datum]]:
    """Log one record at the end of the block, with its ``milliseconds`` and what the block added to the dictionary.

    When an exception ends the block, the record has the name of its class as ``error``.
    """
    begun = time.monotonic()
    try:
        yield data
    except BaseException as error:
        data["error"] = type(error).__name__
        raise
    finally:
        log_event(log, message, level=level, **data, milliseconds=round((time.monotonic() - begun) * 1000, 1))


def event_data(record: logging.LogRecord) -> Mapping[str, Datum] | None:
    """The data of a record that ``log_event`` made; ``None`` for any other record."""
    data = getattr(record, "data", None)
    return data if isinstance(data, Mapping) and record.name.startswith("reconciler") else None


def hush_libraries(level: int = logging.WARNING) -> None:
    """Set the level of the libraries' loggers, for a program that owns its process; never below ``INFO``.

    kafka-python and kazoo log what they send at ``DEBUG``, passwords among it. Without any handler in the process, their warnings
    are dropped instead of printed.
    """
    for name in LIBRARIES:
        log = logging.getLogger(name)
        log.setLevel(max(level, logging.INFO))
        if not log.handlers:
            log.addHandler(logging.NullHandler())


class JsonFormatter(logging.Formatter):
    """``{"ts", "level", "logger", "event", "message", ...data}`` on one line, ASCII only.

    ``event`` and ``message`` are the constant text of an event. A record of a library has the event ``library``, and one with an
    attribute ``event`` that. A message is escaped here.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; a traceback is the value of ``traceback``."""
        data = event_data(record)
        row: dict[str, Datum] = {key: value for key, value in (data or {}).items() if key not in _RESERVED}
        message = escaped(record.getMessage())
        head: dict[str, Datum] = {
            "ts": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _LIBRARY_EVENT if data is None else getattr(record, "event", message),
            "message": message,
        }
        if record.exc_info:
            row["traceback"] = self.formatException(record.exc_info)
        return json.dumps({**head, **row}, ensure_ascii=True, allow_nan=False, default=str)


class TextFormatter(logging.Formatter):
    """``10:20:30.123 debug backends.broker.transport: broker answered api=DescribeClientQuotas milliseconds=3.1`` for people."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; a traceback follows on lines of its own."""
        fields = "".join(f" {key}={_field(value)}" for key, value in (event_data(record) or {}).items())
        place = record.name.removeprefix("reconciler.")
        time = _moment(record)[11:23]
        line = f"{time} {record.levelname.lower()} {place}: {escaped(record.getMessage())}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _plain(value: Datum) -> Datum:
    if isinstance(value, str):
        return escaped(value[:])
    if isinstance(value, Mapping):
        return {escaped(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _field(value: Datum) -> str:
    if isinstance(value, str) and value and not any(char in value for char in ' "='):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
