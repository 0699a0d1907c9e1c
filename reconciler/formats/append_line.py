"""Adding one line to a file that several runs share: whole or not at all, also when the disk is full or the machine goes down."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from reconciler.errors import FileAccessError


def require_appendable(path: Path) -> None:
    """Find out early whether lines can be added; an absent file is made, empty. Raises ``FileAccessError``."""
    with _errors_as_ours(path):
        os.close(_open(path))


def append_line(path: Path, line: str) -> None:
    """Add one line (given without its end) and see it on the disk. Raises ``FileAccessError``; then nothing was added.

    It goes out in one write at the end of the file, so writers of other programs cannot come in between; other runs of this one
    wait their turn. A last line without its end, left by a crash of somebody else, is left as it is, on a line of its own.
    """
    with _errors_as_ours(path):
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            about = os.fstat(descriptor)
            regular = stat.S_ISREG(about.st_mode)
            torn = regular and about.st_size > 0 and os.pread(descriptor, 1, about.st_size - 1) != b"\n"
            content = (b"\n" if torn else b"") + line.encode("utf-8") + b"\n"
            try:
                _write_at_once(descriptor, content)
                if regular:
                    os.fsync(descriptor)
            except OSError:
                if regular:
                    with contextlib.suppress(OSError):
                        os.ftruncate(descriptor, about.st_size)
                raise
        finally:
            os.close(descriptor)


def _write_at_once(descriptor: int, content: bytes) -> None:
    written = os.write(descriptor, content)
    if written < len(content):
        msg = f"only {written} of {len(content)} bytes could be written"
        raise OSError(msg)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o666)


@contextlib.contextmanager
def _errors_as_ours(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"cannot append to {path}: {error.strerror or error}"
        raise FileAccessError(msg) from error
