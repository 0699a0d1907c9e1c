"""A few lines of request logs, read before anything is started: a file of something else is refused at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from reconciler.errors import TrafficError
from reconciler.model import escaped
from reconciler.traffic.sources.log_documents import MARKER
from reconciler.traffic.sources.log_files import BrokerFiles
from reconciler.traffic.sources.log_text import LogPart, log_parts
from reconciler.traffic.sources.request_log import parse_lines
from reconciler.traffic.sources.statuses import UNREADABLE

NOT_A_LOG: Final = "no line says 'Completed request:'; is the logger kafka.request.logger at DEBUG, and is this its file?"
_PLACES: Final = 20
"""Parts that are looked at, spread over all files."""
_SHARES: Final = 32
_LINES: Final = 50
"""Request lines of each."""
_LEAST: Final = 50
"""Fewer lines than this prove nothing about the others."""
_PASSED: Final = 5_000
"""Other lines of each part that are passed over while looking for request lines."""
_BUFFER: Final = 1 << 20
_SHOWN: Final = 3


def require_request_lines(logs: Sequence[BrokerFiles], zone: str) -> None:
    """Raise ``TrafficError`` when no line of any file is of a request, or when all that are looked at cannot be read.

    A log with request lines is read as far as its first one; only files without any are read whole.
    """
    files = [file for log in logs for file in log.files]
    if not any(map(_has_marker, files)):
        raise TrafficError(f"recorded traffic {escaped(files[0])}{_more(files)}: {NOT_A_LOG}")
    parts = log_parts(logs, _SHARES)
    rows, details = 0, list[str]()
    for part in parts[:: max(1, len(parts) // _PLACES)]:
        for batch in parse_lines(_request_lines(part), broker=part.broker, file=part.uri, zone=zone):
            unreadable = batch.column("status").to_pylist()
            if any(status != UNREADABLE for status in unreadable):
                return
            rows += batch.num_rows
            details += [detail for detail in batch.column("detail").to_pylist() if detail]
    if rows >= _LEAST:
        shown = "".join(f"\n  {escaped(detail)}" for detail in details[:_SHOWN])
        raise TrafficError(
            f"recorded traffic {escaped(files[0])}{_more(files)}: none of the {rows} request lines looked at can be read "
            f"(no time stamp before the message, or JSON cut short), for instance:{shown}"
        )


def _has_marker(file: str) -> bool:
    if file.endswith(".gz"):
        part = LogPart(file, 0, 0, Path(file).stat().st_size)
        return any(MARKER in line for line in part.lines())
    with Path(file).open("rb", buffering=0) as stream:
        text = b""
        while more := stream.read(_BUFFER):
            text = text[-len(MARKER) :] + more
            if MARKER in text:
                return True
    return False


def _request_lines(part: LogPart) -> Iterator[bytes]:
    lines = itertools.islice(part.lines(), _PASSED)
    return itertools.islice((line for line in lines if MARKER in line), _LINES)


def _more(files: Sequence[str]) -> str:
    return f" and {len(files) - 1} more" if len(files) > 1 else ""
