"""Writing a file whole or not at all: beside the target, then renamed over it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from reconciler.errors import FileAccessError


def write_whole(path: Path, chunks: Iterable[str]) -> None:
    """Replace a file by UTF-8 text; a reader sees the old one or the new one, also after a crash.

    Raises ``FileAccessError``; whatever ``chunks`` raises comes through, and then the old file is still there.
    """
    partial: Path | None = None
    try:
        beside = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
        # The kernel takes the process umask off this mode. Asking for the umask would set it for every thread for a moment.
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        partial = beside
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
