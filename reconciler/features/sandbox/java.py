"""The command line of a JVM that runs Kafka, and Kafka's classes in a form that starts sooner.

A JVM maps an archive of classes into memory (class data sharing). The first sandbox with one node writes the archive when it
stops, beside Kafka's jars in the cache. A JVM ignores an archive of another Java or of other jars. Source: the manual of
``java``, options ``-XX:ArchiveClassesAtExit`` and ``-XX:SharedArchiveFile``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from reconciler.features.sandbox.jars import ensure_jars, jar_set
from reconciler.java import find_java
from reconciler.ports import NO_PROGRESS, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What starts a JVM with Kafka on its class path."""

    java: Path
    jars: tuple[Path, ...]

    @property
    def class_path(self) -> str:
        """The jars, as ``-cp`` takes them."""
        return ":".join(map(str, self.jars))

    @property
    def class_archive(self) -> Path:
        """The archive of Kafka's classes for this Java, which need not be there."""
        java = self.java.resolve()
        key = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:12]
        return self.jars[0].parent / f"classes-{key}.jsa"

    def class_options(self) -> tuple[str, ...]:
        """The JVM's options to use the archive; none before the archive is made."""
        archive = self.class_archive
        return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off") if archive.is_file() else ()


def runtime_for(kafka_version: str, *, progress: Progress = NO_PROGRESS) -> Runtime:
    """Java and the jars of a pinned version, fetched if need be: enough to run any of Kafka's own tools too.

    Raises ``MissingDependencyError`` without Java or PySpark to fetch with, ``SandboxError`` when fetching fails.
    """
    return Runtime(java=find_java(), jars=ensure_jars(jar_set(kafka_version), progress=progress))


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
        runtime.class_path,
        *runtime.class_options(),
    ]


def keep_classes(written: Path, archive: Path) -> None:
    """Copy an archive that a JVM wrote to where later JVMs read it. Without room there, none is kept."""
    partial = archive.with_name(f".{archive.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        shutil.copyfile(written, partial)
        partial.replace(archive)
    with contextlib.suppress(OSError):
        partial.unlink(missing_ok=True)
