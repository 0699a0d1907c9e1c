"""A broker plugin as a jar: compiled from its sources with the JDK's compiler, and kept in the cache."""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from reconciler.errors import MissingDependencyError, SandboxError
from reconciler.files import cache_folder
from reconciler.logs import log_event
from reconciler.ports import Progress
from reconciler.sandbox.jars import exclusive
from reconciler.sandbox.java import Runtime

_log: Final = logging.getLogger(__name__)
_RELEASE: Final = "11"
_COMPILE_S: Final = 120.0


def plugin_jar(
    name: str, root: Path, runtime: Runtime, *, needed_by: str, progress: Progress | None = None, cache: Path | None = None
) -> Path:
    """The jar of all sources below ``root``, compiled unless these sources were before. ``needed_by`` is for people.

    Raises ``MissingDependencyError`` without a compiler, ``SandboxError`` when it fails.
    """
    sources = sorted(root.rglob("*.java"))
    digest = hashlib.sha256(b"".join(source.name.encode() + source.read_bytes() for source in sources)).hexdigest()[:16]
    home = (cache_folder() if cache is None else cache) / name
    jar = home / f"{name}-{digest}.jar"
    if jar.is_file():
        return jar
    compiler = _compiler(runtime.java, f"{needed_by} compiles the {name}")
    with exclusive(home / f"{name}.lock"):
        if not jar.is_file():
            if progress:
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
