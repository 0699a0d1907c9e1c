"""Kafka's classes in the form that a JVM maps into memory (class data sharing): with them a broker starts sooner.

The first sandbox with one node writes the archive when it stops, beside Kafka's jars in the cache. A JVM ignores an archive of
another Java or of other jars. Source: the manual of ``java``, options ``-XX:ArchiveClassesAtExit`` and ``-XX:SharedArchiveFile``.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
from pathlib import Path
from typing import Final

from reconciler.logs import log_event
from reconciler.sandbox.java import Runtime

_WRITTEN: Final = "classes.jsa"
_DESTINATION: Final = "classes.destination"
_log: Final = logging.getLogger(__name__)


def reading_options(runtime: Runtime) -> tuple[str, ...]:
    """The JVM's options to use the archive; none while there is no archive."""
    archive = _archive(runtime)
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off") if archive.is_file() else ()


def writing_options(runtime: Runtime, folder: Path) -> tuple[str, ...]:
    """The JVM's options to write the archive into ``folder`` when it ends; none when it exists. ``keep`` moves it."""
    archive = _archive(runtime)
    if archive.is_file():
        return ()
    (folder / _DESTINATION).write_text(str(archive), "utf-8")
    return (f"-XX:ArchiveClassesAtExit={folder / _WRITTEN}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def is_written_to(folder: Path) -> bool:
    """Whether the JVM of this folder writes an archive when it ends, which takes some seconds."""
    return (folder / _DESTINATION).is_file()


def keep(folder: Path) -> None:
    """Move the archive of ``folder``, if its JVM wrote one, to where later JVMs read it. Without room there, none is kept."""
    if not (folder / _WRITTEN).is_file():
        return
    destination = Path((folder / _DESTINATION).read_text("utf-8"))
    partial = destination.with_name(f".{destination.name}.{os.getpid()}")
    try:
        shutil.copyfile(folder / _WRITTEN, partial)
        partial.replace(destination)
        log_event(_log, "kept Kafka's classes", file=str(destination))
    except OSError as error:
        log_event(_log, "Kafka's classes are not kept", file=str(destination), error=str(error))
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _archive(runtime: Runtime) -> Path:
    java = runtime.java.resolve()
    key = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return runtime.jars[0].parent / f"classes-{key}.jsa"
