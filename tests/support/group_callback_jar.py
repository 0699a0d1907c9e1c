"""The quota callback of ``callback/`` for brokers of the sandbox."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from reconciler.features.sandbox.cluster import runtime_for
from reconciler.features.sandbox.java import GROUP_SETTINGS, GROUPS, plugin_jar
from reconciler.features.sandbox.spec import SandboxSpec

SOURCES = Path(__file__).parents[2] / "callback" / "src"
SETTINGS = GROUP_SETTINGS


def with_callback(spec: SandboxSpec) -> SandboxSpec:
    """The same sandbox, its brokers with the callback."""
    return replace(spec, groups=True)


def ask_java(kafka_version: str, folder: Path, lines: list[str], *, remembers_kinds: bool) -> list[str]:
    """The answers of the Java class, called as ``lines`` say (``Answers.java`` has their form)."""
    runtime = runtime_for(kafka_version)
    path = ":".join(map(str, (folder, plugin_jar(GROUPS, runtime), *runtime.jars)))
    sources = [SOURCES / "test" / "java" / "kafkaquotas" / "callback" / name for name in ("Answers.java", "Entities.java")]
    compiler = runtime.java.resolve().with_name("javac")
    subprocess.run([compiler, "-proc:none", "-d", folder, "-cp", path, *sources], check=True, timeout=120)
    command = [
        str(runtime.java),
        "-Dfile.encoding=UTF-8",
        "-cp",
        path,
        "kafkaquotas.callback.Answers",
        str(remembers_kinds).lower(),
    ]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
