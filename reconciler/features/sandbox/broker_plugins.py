"""The broker plugins of the sandbox: their settings, and their jars, compiled by the JDK and kept in the cache."""

from __future__ import annotations

import hashlib
import logging
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
from reconciler.features.sandbox.java import Runtime
from reconciler.files import bundled_folder, cache_folder
from reconciler.logs import log_event
from reconciler.ports import Progress
from reconciler.resolution import GROUP_CALLBACK

_log: Final = logging.getLogger(__name__)
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


def plugin_jar(plugin: BrokerPlugin, runtime: Runtime, *, progress: Progress | None = None, cache: Path | None = None) -> Path:
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
