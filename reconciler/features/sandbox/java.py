"""The command line of a JVM that runs Kafka, the broker plugins, and Kafka's classes in a form that starts sooner.

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
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from reconciler.errors import MissingDependencyError, SandboxError
from reconciler.features.sandbox.jars import exclusive
from reconciler.files import bundled_folder, cache_folder
from reconciler.logs import log_event
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.resolution import GROUP_CALLBACK

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


_RELEASE: Final = "11"
_COMPILE_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlugin:
    """A plugin whose sources the package carries. ``option``: of the commands that need it.

    ``main``: the file of its class, below ``src/main/java``. A jar would have to be built wherever the package is built.
    Compiling takes two seconds, once, and needs a JDK.
    """

    name: str
    main: str
    option: str


RECORDER: Final = BrokerPlugin(name="recorder", main="kafkaquotas/recorder/QuotaRecorder.java", option="--record")
GROUPS: Final = BrokerPlugin(name="callback", main=f"{GROUP_CALLBACK.replace('.', '/')}.java", option="--groups")
GROUP_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({"client.quota.callback.class": GROUP_CALLBACK})
"""The broker settings with which a broker shares limits by group."""
_REPORTERS: Final = "org.apache.kafka.common.metrics.JmxReporter,kafkaquotas.recorder.QuotaRecorder"


def recorder_settings(folder: Path) -> Mapping[str, str]:
    """The broker settings with which a broker records into ``folder``, soon readable and on a nearly full disk, too."""
    return {
        "metric.reporters": _REPORTERS,
        "quota.recorder.folder": str(folder),
        "quota.recorder.flush.seconds": "1",
        "quota.recorder.free.bytes": str(64 * 1024 * 1024),
    }


def plugin_jar(plugin: BrokerPlugin, runtime: Runtime, *, progress: Progress = NO_PROGRESS, cache: Path | None = None) -> Path:
    """The jar, compiled unless these sources were before.

    Raises ``MissingDependencyError`` without a compiler, ``SandboxError`` when it fails.
    """
    name = plugin.name
    sources = sorted(bundled_folder(f"{name}/src/main/java", with_file=plugin.main).rglob("*.java"))
    digest = hashlib.sha256(b"".join(source.name.encode() + source.read_bytes() for source in sources)).hexdigest()[:16]
    home = (cache_folder() if cache is None else cache) / name
    jar = home / f"{name}-{digest}.jar"
    if jar.is_file():
        return jar
    compiler = _compiler(runtime.java, f"{plugin.option} compiles the {name}")
    with exclusive(home / f"{name}.lock"):
        if not jar.is_file():
            progress.step(f"compiling the {name}")
            _compile(name, compiler, sources, runtime, jar)
            log_event(_log, "broker plugin compiled", plugin=name, jar=str(jar), compiler=str(compiler))
    return jar


def _compiler(java: Path, why: str) -> Path:
    """``javac`` of the Java that runs the brokers, else on ``PATH``."""
    beside = java.resolve().with_name("javac")
    compiler = str(beside) if beside.is_file() else shutil.which("javac")
    if compiler is None:
        raise MissingDependencyError(
            f"{why}, and {java} has no javac: install a JDK (on Debian and Ubuntu: "
            "apt install openjdk-17-jdk-headless), or point JAVA_HOME at one"
        )
    return Path(compiler)


def _compile(name: str, compiler: Path, sources: list[Path], runtime: Runtime, jar: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=jar.parent) as made:
        classes, partial = Path(made) / "classes", Path(made) / jar.name
        command = [str(compiler), "--release", _RELEASE, "-d", str(classes), "-cp", ":".join(map(str, runtime.jars))]
        try:
            done = subprocess.run(
                [*command, *map(str, sources)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMPILE_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxError(f"cannot compile the {name}: {error}") from error
        if done.returncode != 0:
            lines = "\n".join(f"  {line[:300]}" for line in done.stderr.splitlines()[:8])
            raise SandboxError(f"{compiler} could not compile the {name}:\n{lines}")
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(classes.rglob("*.class")):
                archive.write(file, file.relative_to(classes))
        partial.replace(jar)
