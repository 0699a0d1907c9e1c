"""The command line of a JVM that runs Kafka, and Kafka's classes in a form that starts sooner.

A JVM maps an archive of classes into memory (class data sharing). The first sandbox with one node writes the archive when it
stops, beside Kafka's jars in the cache. A JVM ignores an archive of another Java or of other jars. Source: the manual of
``java``, options ``-XX:ArchiveClassesAtExit`` and ``-XX:SharedArchiveFile``.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.logs import log_event

_WRITTEN: Final = "classes.jsa"
_DESTINATION: Final = "classes.destination"
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What starts a JVM with Kafka on its class path."""

    java: Path
    jars: tuple[Path, ...]


def jvm_command(runtime: Runtime, *, folder: Path, temporary: Path, heap_mb: int) -> list[str]:
    """A JVM with Kafka on its class path that leaves nothing outside ``folder``; options and a main class may follow."""
    return [
        str(runtime.java),
        f"-Xmx{heap_mb}m",
        # Both halve the time to start; a sandbox never runs long enough to earn the optimising compiler back.
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # Leave nothing outside the folder, not even when killed.
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={folder}/java-error.log",
        f"-Djava.io.tmpdir={temporary}",
        "-Dfile.encoding=UTF-8",
        "-Duser.timezone=UTC",
        "-Djava.awt.headless=true",
        "-cp",
        ":".join(str(jar) for jar in runtime.jars),
    ]


def class_reading_options(runtime: Runtime) -> tuple[str, ...]:
    """The JVM's options to use the archive; none while there is no archive."""
    archive = _class_archive(runtime)
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off") if archive.is_file() else ()


def class_writing_options(runtime: Runtime, folder: Path) -> tuple[str, ...]:
    """The JVM's options to write the archive into ``folder`` when it ends; none when it exists. ``keep`` moves it."""
    archive = _class_archive(runtime)
    if archive.is_file():
        return ()
    (folder / _DESTINATION).write_text(str(archive), "utf-8")
    return (f"-XX:ArchiveClassesAtExit={folder / _WRITTEN}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def writes_classes(folder: Path) -> bool:
    """Whether the JVM of this folder writes an archive when it ends, which takes some seconds."""
    return (folder / _DESTINATION).is_file()


def keep_classes(folder: Path) -> None:
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


def _class_archive(runtime: Runtime) -> Path:
    java = runtime.java.resolve()
    key = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return runtime.jars[0].parent / f"classes-{key}.jsa"
