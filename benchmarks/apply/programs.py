"""The programs that are timed, each a command line; what must be compiled is compiled here, outside the timed part."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.apply.scenes import Wanted
from benchmarks.manifests import user_of, values_of
from benchmarks.measure import Run, once
from reconciler.features.sandbox.configuration import config_command_class
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.features.sandbox.java import runtime_for

_HERE = Path(__file__).parent
_BUILD_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Something that brings a cluster to what is wanted; ``command`` takes the server and the wish."""

    name: str
    command: Callable[[str, Wanted], tuple[str, ...]]


OURS = Program(
    name="kafka-quotas apply",
    command=lambda server, wanted: (
        *(sys.executable, "-m", "reconciler", "apply", str(wanted.manifests)),
        *("--bootstrap-server", server, "--auto-approve", "--quiet"),
    ),
)

BARE_OWN = Program(name="bare sum, our own messages", command=lambda server, wanted: _bare("own", server, wanted))
BARE = Program(name="bare sum, kafka-python", command=lambda server, wanted: _bare("library", server, wanted))


def _bare(how: str, server: str, wanted: Wanted) -> tuple[str, ...]:
    return sys.executable, "-m", "benchmarks.apply.bare", how, server, str(wanted.manifests)


def java_program(folder: Path) -> Program | None:
    """``Batch.java`` with the sandbox's own Kafka client; nothing, with the reason said, when there is no compiler."""
    javac = shutil.which("javac")
    if javac is None:
        print("without the Java program: there is no javac on the PATH")
        return None
    runtime = runtime_for(DEFAULT_KAFKA_VERSION)
    jars = ":".join(map(str, runtime.jars))
    _build((javac, "-cp", jars, "-d", str(folder), str(_HERE / "Batch.java")))
    command = (str(runtime.java), "-cp", f"{folder}:{jars}", "Batch")
    return Program(name="Java AdminClient", command=lambda server, wanted: (*command, server, str(wanted.table)))


def go_program(folder: Path) -> Program | None:
    """``go/main.go`` on franz-go's kadm; nothing, with the reason said, when it cannot be built here."""
    go = shutil.which("go")
    if go is None:
        print("without the Go program: there is no go on the PATH")
        return None
    program = folder / "batch"
    try:
        _build((go, "build", "-o", str(program), "."), cwd=_HERE / "go")
    except SystemExit as failed:
        print(f"without the Go program: it cannot be built: {failed}")
        return None
    return Program(name="Go kadm", command=lambda server, wanted: (str(program), server, str(wanted.table)))


def config_command(server: str, number: int) -> Run:
    """One user with Kafka's own ``ConfigCommand``, as a shell script would set one after the other."""
    runtime = runtime_for(DEFAULT_KAFKA_VERSION)
    quotas = ",".join(f"{key}={value}" for key, value in values_of(number).items())
    return once(
        *(str(runtime.java), "-cp", ":".join(map(str, runtime.jars)), config_command_class(DEFAULT_KAFKA_VERSION)),
        *("--bootstrap-server", server, "--alter", "--entity-type", "users"),
        *("--entity-name", user_of(number), "--add-config", quotas),
    )


def _build(command: tuple[str, ...], *, cwd: Path | None = None) -> None:
    built = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=_BUILD_S)
    if built.returncode:
        raise SystemExit(f"{Path(command[0]).name} ended with {built.returncode}: {built.stderr[-1000:]}")
