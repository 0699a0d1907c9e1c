"""Kafka's jars: the pinned versions, the exact files of each by SHA-256, how they are fetched, and the checked cache.

The committed lists are the whole truth: each line is a sum and a path in Maven's repository layout, so one line gives both
the coordinates to fetch and the content to expect. Nothing is resolved transitively, so every way of fetching ends with the
same files. A list is written by ``sha256sum`` over what Maven resolves for ``kafka_2.13``, ``kafka-tools`` without its Connect
parts, and the logging library of that version. Maven and the Ivy inside PySpark take exact coordinates, resolve nothing, and use
the user's own settings for where the registry is.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final, TypeAlias

from reconciler.errors import FileAccessError, MissingDependencyError, SandboxError, UsageError
from reconciler.files import cache_folder, lock_descriptor
from reconciler.java import find_java
from reconciler.ports import NO_PROGRESS, Progress

DEFAULT_KAFKA_VERSION: Final = "4.4.0"
KAFKA_VERSIONS: Final = (DEFAULT_KAFKA_VERSION, "4.3.1", "3.9.2", "2.8.2")
"""The pinned versions, newest first."""
ZOOKEEPER_VERSIONS: Final = ("3.9.2", "2.8.2")
"""Those that can keep their metadata in ZooKeeper, and whose jars carry ZooKeeper and its server; 4.x cannot."""
KRAFT_VERSIONS: Final = (DEFAULT_KAFKA_VERSION, "4.3.1", "3.9.2")
"""Those that run without ZooKeeper; to 2.8 that was a preview without quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One jar: its coordinates, and the SHA-256 sum (64 hex digits) of its content."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The file's name in Maven's repository layout, and in ours."""
        return f"{self.name}-{self.version}.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """All jars of ``name``, such as a version of Kafka. ``key`` changes with the list: no old cache is taken for it."""

    name: str
    key: str
    artifacts: tuple[Artifact, ...]


def require_pinned(kafka_version: str) -> None:
    """Raises ``UsageError`` for a version that is not pinned."""
    if kafka_version not in KAFKA_VERSIONS:
        known = ", ".join(KAFKA_VERSIONS)
        raise UsageError(f"the sandbox has no Kafka {kafka_version!r}. The pinned versions are {known}")


def jar_set(kafka_version: str) -> JarSet:
    """The committed list of one pinned version. Raises ``UsageError`` for a version that is not pinned."""
    require_pinned(kafka_version)
    text = (resources.files("reconciler.features.sandbox") / "sums" / f"{kafka_version}.sha256").read_text("ascii")
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()[:8]
    artifacts = tuple(_artifact(line) for line in text.splitlines())
    return JarSet(name=f"Kafka {kafka_version}", key=f"{kafka_version}-{digest}", artifacts=artifacts)


def _artifact(line: str) -> Artifact:
    sha256, path = line.split()
    *group, name, version, _ = path.split("/")
    return Artifact(group=".".join(group), name=name, version=version, sha256=sha256)


_FETCH_TIMEOUT_S: Final = 900.0
_BRIEF_JAVA: Final = "-XX:TieredStopAtLevel=1"  # the second compiler took a third of the processor's time of a fetch

Fetch: TypeAlias = Callable[[Sequence[Artifact], Path, Path], None]
"""Called with artifacts, a folder to work in, and the folder that gets the jars. Raises ``SandboxError``.

What it leaves is not trusted: the caller checks the sums.
"""


def download(artifacts: Sequence[Artifact], work: Path, jars: Path) -> None:
    """Fetch with Maven, where it is installed, else with Ivy, which takes three times as long."""
    if program := shutil.which("mvn"):
        maven(artifacts, work, jars, program=Path(program))
    else:
        ivy(artifacts, work, jars, java=find_java(), pyspark=pyspark_folder())


def maven(artifacts: Sequence[Artifact], work: Path, jars: Path, *, program: Path) -> None:
    """Fetch with ``mvn dependency:copy-dependencies`` of a project that is nothing but its dependencies."""
    exclude_all = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    rows = "".join(
        f"<dependency><groupId>{a.group}</groupId><artifactId>{a.name}</artifactId>"
        f"<version>{a.version}</version>{exclude_all}</dependency>\n"
        for a in artifacts
    )
    pom, options = work / "pom.xml", work / ".mvn" / "jvm.config"
    options.parent.mkdir()
    options.write_text(_BRIEF_JAVA, "utf-8")
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>local</groupId><artifactId>kafka-jars</artifactId><version>1</version><packaging>pom</packaging>\n"
        f"<dependencies>\n{rows}</dependencies></project>\n",
        "utf-8",
    )
    command = [str(program), "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    _run(command, name="Maven", work=work)


def ivy(artifacts: Sequence[Artifact], work: Path, jars: Path, *, java: Path, pyspark: Path | None) -> None:
    """Fetch with Apache Ivy's command line from PySpark's jars, with a cache of its own that is thrown away.

    It takes about a minute. Raises ``MissingDependencyError`` without PySpark.
    """
    if pyspark is None:
        raise MissingDependencyError(
            "nothing here can fetch Kafka's jars. Install Maven, or the extra spark (kafka-quotas explain install)"
        )
    # ``master`` is Ivy's name for a Maven module's own jar, without what it depends on.
    rows = "".join(f'<dependency org="{a.group}" name="{a.name}" rev="{a.version}" conf="default->master"/>\n' for a in artifacts)
    module = work / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="local" module="kafka-jars"/>'
        f'<configurations><conf name="default"/></configurations>\n<dependencies>\n{rows}</dependencies></ivy-module>\n',
        "utf-8",
    )
    command = [str(java), _BRIEF_JAVA, "-cp", str(pyspark / "jars" / "*"), "org.apache.ivy.Main", "-confs", "default"]
    command += ["-cache", str(work / "ivy-cache"), "-ivy", str(module), "-retrieve", str(jars / "[artifact]-[revision].[ext]")]
    _run(command, name="Ivy", work=work)


def pyspark_folder() -> Path | None:
    """PySpark's folder, found without importing it (which would take a second)."""
    spec = importlib.util.find_spec("pyspark")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "jars").is_dir():
            return Path(place)
    return None


def _run(command: list[str], *, name: str, work: Path) -> None:
    """Run one program in its own session, so that an interrupt reaches it and its children only through this function."""
    log = work / "fetch.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(_FETCH_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"{name} did not finish fetching jars in {_FETCH_TIMEOUT_S:.0f} s") from error
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code != 0:
        lines = [line.strip()[:300] for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        raise SandboxError(f"{name} could not fetch jars (exit code {code}). Its last lines: {' | '.join(lines[-8:])}")


def ensure_jars(
    jar_set: JarSet, *, fetch: Fetch = download, progress: Progress = NO_PROGRESS, cache: Path | None = None
) -> tuple[Path, ...]:
    """The jar files of ``jar_set``, in the order of its list, fetched if need be.

    Every file's SHA-256 is checked on every call (50 MB take less than 0.1 s), so a damaged cache is fetched anew. A fetch fills
    a temporary folder, which gets its final name only when all sums are right; a lock makes a second process wait and then find
    the files. Raises ``SandboxError`` when the fetch does not bring the right files, and what it raises.
    """
    home = (cache_folder() if cache is None else cache) / "jars"
    folder = home / jar_set.key
    if wrong := faults(folder, jar_set.artifacts):
        why = f"again, since {wrong[0]}" if folder.exists() else "(about a minute)"
        progress.step(f"fetching {jar_set.name}, {len(jar_set.artifacts)} jars {why}")
        with exclusive(home / f"{jar_set.key}.lock"):
            if faults(folder, jar_set.artifacts):
                _fetch_into(folder, jar_set, fetch)
    return tuple(folder / artifact.file_name for artifact in jar_set.artifacts)


def faults(folder: Path, artifacts: Sequence[Artifact]) -> tuple[str, ...]:
    """Return one phrase for each file of ``artifacts`` that is wrong in ``folder``; other files there do not matter."""
    wrong: list[str] = []
    for artifact in artifacts:
        try:
            with (folder / artifact.file_name).open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            wrong.append(f"{artifact.file_name} is missing")
            continue
        if actual != artifact.sha256:
            wrong.append(f"{artifact.file_name} has SHA-256 {actual}, expected {artifact.sha256}")
    return tuple(wrong)


def _fetch_into(folder: Path, jar_set: JarSet, fetch: Fetch) -> None:
    """Called with the lock taken, so whatever temporary folders of this key are there were left by processes that died."""
    prefix = f".{jar_set.key}."
    for left in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        fetched = work / "jars"
        fetched.mkdir()
        fetch(jar_set.artifacts, work, fetched)
        if wrong := faults(fetched, jar_set.artifacts):
            raise SandboxError(f"the fetch of {jar_set.name} brought the wrong files: {'; '.join(wrong[:3])}")
        if folder.exists():
            folder.rename(work / "old")
        fetched.rename(folder)
    except OSError as error:
        raise FileAccessError(f"cannot write to {folder.parent}: {error}. Set KAFKA_QUOTAS_CACHE to another folder") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def exclusive(lock_file: Path) -> Iterator[None]:
    """Lock ``lock_file`` against other processes and threads.

    The file stays: removing a lock file would let two processes lock two different ones.
    """
    try:
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise FileAccessError(f"cannot write {lock_file}: {error.strerror}. Set KAFKA_QUOTAS_CACHE to another folder") from error
    try:
        try:
            lock_descriptor(descriptor)
        except OSError as error:
            raise FileAccessError(f"cannot lock {lock_file}: {error.strerror}") from error
        yield
    finally:
        os.close(descriptor)
