"""Files on disk: written whole or not at all, extended by a whole line, and those that travel with the package."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import reconciler
from reconciler.errors import FileAccessError

_QUIET_OPEN: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""No descriptor for child processes; and on Windows, bytes as they are given."""


def write_whole(path: Path, chunks: Iterable[str], *, mode: int | None = None) -> None:
    """Replace a file by UTF-8 text; a reader sees the old one or the new one, also after a crash.

    ``mode``: its permissions; ``None``: those of a new file. Raises ``FileAccessError``; whatever ``chunks`` raises comes
    through, and then the old file is still there.
    """
    partial: Path | None = None
    try:
        beside = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
        # The kernel takes the process umask off this mode. Asking for the umask would set it for every thread for a moment.
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | _QUIET_OPEN, 0o666)
        partial = beside
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(handle, mode)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        partial = None
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise FileAccessError(msg) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def lock_descriptor(descriptor: int, *, wait: bool = True) -> None:
    """Lock an open file against other processes until it is closed.

    Raises ``BlockingIOError`` when another process has the lock and ``wait`` is false, and ``OSError`` on systems without POSIX
    file locks.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOLCK, "This system has no POSIX file locks. Run this command on Linux or macOS") from None
    fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def require_appendable(path: Path) -> None:
    """Find out early whether lines can be added; an absent file is made, empty. Raises ``FileAccessError``."""
    with _errors_as_ours(path):
        os.close(_open(path))


def append_line(path: Path, line: str) -> None:
    """Add one line (given without its end) and see it on the disk. Raises ``FileAccessError``; then nothing was added.

    It goes out in one write at the end of the file, so writers of other programs cannot come in between; other runs of this one
    wait their turn. A last line without its end, left by a crash of another program, is left as it is, on a line of its own.
    """
    with _errors_as_ours(path):
        descriptor = _open(path)
        try:
            lock_descriptor(descriptor)
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
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOCTTY", 0) | _QUIET_OPEN, 0o666)


@contextlib.contextmanager
def _errors_as_ours(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"cannot append to {path}: {error.strerror or error}"
        raise FileAccessError(msg) from error


def bundled_folder(name: str, *, with_file: str) -> Path:
    """The folder ``name``: inside the package when installed from a wheel, beside it in a source tree.

    A folder of that name is ours when it has this file. Raises ``FileAccessError`` when neither place has one.
    """
    package = Path(reconciler.__file__).parent
    for candidate in (package / name, package.parent / name):
        if (candidate / with_file).is_file():
            return candidate
    msg = f"this installation of kafka-quotas lacks its {name}. Install the package again"
    raise FileAccessError(msg)


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """``$KAFKA_QUOTAS_CACHE``, else ``$XDG_CACHE_HOME/kafka-quotas``, else ``~/.cache/kafka-quotas``."""
    environ = os.environ if environ is None else environ
    if own := environ.get("KAFKA_QUOTAS_CACHE"):
        return Path(own).absolute()
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "kafka-quotas"
    return Path("~/.cache/kafka-quotas").expanduser()
