"""Where the sandbox keeps what outlives one run: jars, and the record of a cluster left running."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from reconciler.errors import FileAccessError


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """``$KAFKA_QUOTAS_CACHE``, else ``$XDG_CACHE_HOME/kafka-quotas``, else ``~/.cache/kafka-quotas``."""
    environ = os.environ if environ is None else environ
    if own := environ.get("KAFKA_QUOTAS_CACHE"):
        return Path(own).absolute()
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "kafka-quotas"
    return Path("~/.cache/kafka-quotas").expanduser()


@contextlib.contextmanager
def exclusive(lock_file: Path, *, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds ``lock_file`` against other processes and threads; calls ``waiting`` once when somebody else has it.

    The file stays: removing a lock file would let two processes hold two different ones.
    """
    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise FileAccessError(f"cannot write {lock_file}: {error.strerror}; set KAFKA_QUOTAS_CACHE to another folder") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
