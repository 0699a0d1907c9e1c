"""What a file of recorded traffic is known by: how it begins, so that a new name, compression or more lines change nothing."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import IO, Final, cast

from reconciler.errors import TrafficError

_LONGEST_LINE: Final = 1024 * 1024
_FOOTER: Final = 64 * 1024
_DIGITS: Final = 24


def log_identity(path: Path, broker: int) -> str | None:
    """Of a request log: its broker and its first whole line; ``None`` while it has none. Raises ``TrafficError``."""
    try:
        with _opened(path) as stream:
            first = stream.readline(_LONGEST_LINE)
    except (OSError, EOFError, zlib.error) as error:
        raise TrafficError(f"recorded traffic {path} cannot be read: {error}") from error
    if not first.endswith(b"\n") and len(first) < _LONGEST_LINE:
        return None
    return _digest(f"log {broker}\n".encode() + first)


def parquet_identity(path: Path) -> str:
    """Of a Parquet file, which is never added to: its length and its end. Raises ``TrafficError``."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            stream.seek(max(0, size - _FOOTER))
            return _digest(f"parquet {size}\n".encode() + stream.read())
    except OSError as error:
        raise TrafficError(f"recorded traffic {path} cannot be read: {error.strerror}") from error


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
