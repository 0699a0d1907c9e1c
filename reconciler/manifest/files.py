"""Reading one file within bounds: never a pipe or a device, never more than the limit."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 32 * 1024 * 1024
"""Largest file that is read; 100,000 entries are about 12 MB."""


_CHUNK: Final = 1024 * 1024


class UnreadableError(Exception):
    """A file that cannot be read; ``rule_id`` is the finding, the text says why."""

    def __init__(self, rule_id: str, message: str) -> None:
        super().__init__(message)
        self.rule_id = rule_id


def read_file(path: str) -> bytes:
    """The whole content. Raises ``UnreadableError``."""
    try:
        # Not blocking: opening a pipe would otherwise wait for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise UnreadableError(*_why(error, path)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("not-a-file", f"this is {kind_of(status.st_mode)}, not a file")
        if status.st_size > MAX_BYTES:
            message = f"the file has {status.st_size} bytes; at most {MAX_BYTES} are read, so split it"
            raise UnreadableError("file-too-large", message)
        content = _read_all(descriptor)
    except OSError as error:
        raise UnreadableError(*_why(error, path)) from error
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise UnreadableError("file-too-large", f"the file has more than {MAX_BYTES} bytes; split it")
    return content


def _read_all(descriptor: int) -> bytes:
    parts = []
    left = MAX_BYTES + 1
    while left > 0 and (part := os.read(descriptor, min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def kind_of(mode: int) -> str:
    """What a path is, in words."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((word for test, word in kinds if test(mode)), "something else")


def _why(error: OSError | ValueError, path: str) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        if Path(path).is_symlink():
            return "file-not-readable", "this link leads nowhere"
        return "file-not-found", "there is no such file or folder"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return "file-not-readable", f"cannot be read: {reason}"
