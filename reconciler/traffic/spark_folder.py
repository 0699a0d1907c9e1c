"""The temporary folder of a Spark session, and those that killed runs left behind."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reconciler.files import lock_descriptor
from reconciler.logs import log_event

_log: Final = logging.getLogger(__name__)
_PREFIX: Final = "kafka-quotas-spark-"
_LOCK: Final = "in-use"
"""A file that a run keeps locked. The kernel unlocks it however the run ends, also in another container."""


@contextmanager
def spark_folder() -> Iterator[str]:
    """An empty folder for one session, removed at the end. Folders that killed runs of this user left are removed first."""
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with _locked(folder):
            yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Without locks on this system or disk, the folder has no lock and stays after a kill."""
    unnamed = folder / f"{_LOCK}.new"
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
            stack.callback(os.close, descriptor)
            lock_descriptor(descriptor, wait=False)
            # It gets its name once it is locked: before that, another run would take the folder for an abandoned one.
            unnamed.rename(folder / _LOCK)
        yield


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_own(folder) and _is_abandoned(folder / _LOCK):
                shutil.rmtree(folder, ignore_errors=True)
                log_event(_log, "folder of a killed run removed", folder=str(folder))


def _is_own(folder: Path) -> bool:
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and hasattr(os, "getuid") and about.st_uid == os.getuid()


def _is_abandoned(lock: Path) -> bool:
    descriptor = os.open(lock, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        lock_descriptor(descriptor, wait=False)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
