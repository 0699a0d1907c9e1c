"""Two ways to get jars from the package registry: Maven, and the Ivy that comes inside PySpark.

Both take exact coordinates, resolve nothing, and use the user's own settings for where the registry is.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from reconciler.errors import MissingDependencyError, SandboxError
from reconciler.sandbox.artifacts import Artifact

FETCH_TIMEOUT_S: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """A way to get jars. ``fetch(artifacts, work, jars)`` leaves the files in ``jars`` and anything else below ``work``.

    ``fetch`` raises ``SandboxError`` when the program fails. What it leaves is not trusted: the caller checks the sums.
    """

    name: str
    fetch: Callable[[Sequence[Artifact], Path, Path], None]


def pyspark_folder() -> Path | None:
    """PySpark's folder, found without importing it (which would take a second)."""
    spec = importlib.util.find_spec("pyspark")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "jars").is_dir():
            return Path(place)
    return None


def available_fetchers(java: Path, *, find_pyspark: Callable[[], Path | None] = pyspark_folder) -> tuple[Fetcher, ...]:
    """What this machine has, the faster first. Raises ``MissingDependencyError`` when it has nothing."""
    found: list[Fetcher] = []
    if maven := shutil.which("mvn"):
        found.append(maven_fetcher(Path(maven)))
    if pyspark := find_pyspark():
        found.append(ivy_fetcher(java, pyspark))
    if not found:
        raise MissingDependencyError(
            "nothing here can fetch Kafka's jars; install Maven, or PySpark (whose Ivy does it too): "
            "pip install 'kafka-quota-reconciler[traffic]'"
        )
    return tuple(found)


def maven_fetcher(maven: Path) -> Fetcher:
    """``mvn dependency:copy-dependencies`` of a project that is nothing but its dependencies."""

    def fetch(artifacts: Sequence[Artifact], work: Path, jars: Path) -> None:
        pom = work / "pom.xml"
        pom.write_text(_pom(artifacts), "utf-8")
        command = [str(maven), "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        _run(command, name="mvn", work=work)

    return Fetcher(name="Maven", fetch=fetch)


def ivy_fetcher(java: Path, pyspark: Path) -> Fetcher:
    """Apache Ivy's command line, from PySpark's jars, with a cache of its own that is thrown away."""

    def fetch(artifacts: Sequence[Artifact], work: Path, jars: Path) -> None:
        module = work / "ivy.xml"
        module.write_text(_ivy_module(artifacts), "utf-8")
        command = [str(java), "-cp", str(pyspark / "jars" / "*"), "org.apache.ivy.Main", "-cache", str(work / "ivy-cache")]
        command += ["-ivy", str(module), "-confs", "default", "-retrieve", str(jars / "[artifact]-[revision].[ext]")]
        _run(command, name="Ivy", work=work)

    return Fetcher(name="Ivy (one file at a time, about a minute)", fetch=fetch)


def _run(command: list[str], *, name: str, work: Path) -> None:
    """Runs one program in its own session, so that an interrupt ends it, its children too, when we say so."""
    log = work / "fetch.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(FETCH_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"{name} did not finish fetching Kafka's jars in {FETCH_TIMEOUT_S:.0f} s") from error
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code != 0:
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        words = " | ".join(line.strip()[:300] for line in lines[-8:])
        raise SandboxError(f"{name} could not fetch Kafka's jars (exit code {code}); its last lines: {words}")


def _pom(artifacts: Sequence[Artifact]) -> str:
    exclude_all = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    rows = "".join(
        f"<dependency><groupId>{escape(a.group)}</groupId><artifactId>{escape(a.name)}</artifactId>"
        f"<version>{escape(a.version)}</version>{exclude_all}</dependency>\n"
        for a in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>local</groupId><artifactId>kafka-jars</artifactId><version>1</version><packaging>pom</packaging>\n"
        f"<dependencies>\n{rows}</dependencies></project>\n"
    )


def _ivy_module(artifacts: Sequence[Artifact]) -> str:
    # ``master`` is Ivy's name for a Maven module's own jar, without what it depends on.
    rows = "".join(
        f'<dependency org={quoteattr(a.group)} name={quoteattr(a.name)} rev={quoteattr(a.version)} conf="default->master"/>\n'
        for a in artifacts
    )
    return (
        '<ivy-module version="2.0"><info organisation="local" module="kafka-jars"/>'
        f'<configurations><conf name="default"/></configurations>\n<dependencies>\n{rows}</dependencies></ivy-module>\n'
    )
