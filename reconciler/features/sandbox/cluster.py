"""Starts and stops a real Kafka on loopback: for a person, or with the state of another cluster."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from reconciler.errors import SandboxError
from reconciler.features.sandbox import process
from reconciler.features.sandbox.configuration import assign_ports, free_ports
from reconciler.features.sandbox.jars import (
    ensure_jars,
    ivy,
    jar_set,
)
from reconciler.features.sandbox.java import GROUPS, RECORDER, Runtime, keep_classes, plugin_jar, writes_classes
from reconciler.features.sandbox.launch import PortTakenError, failure, launch
from reconciler.features.sandbox.node import NodeFiles, ZooKeeperFiles
from reconciler.features.sandbox.process import Guard, guarding
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from reconciler.java import find_java
from reconciler.ports import NO_PROGRESS, Progress

_PORT_ATTEMPTS: Final = 3
_STOP_GRACE_S: Final = 3.0
"""A sandbox's data is thrown away, so a node that waits for the others of its quorum may be killed."""
_ARCHIVE_GRACE_S: Final = 30.0


def runtime_for(kafka_version: str, *, progress: Progress = NO_PROGRESS) -> Runtime:
    """Java and the jars of a pinned version, fetched if need be: enough to run any of Kafka's own tools too.

    Raises ``MissingDependencyError`` without Java or PySpark to fetch with, ``SandboxError`` when fetching fails.
    """
    java = find_java()
    jars = ensure_jars(jar_set(kafka_version), fetch=ivy(java), progress=progress)
    return Runtime(java=java, jars=jars)


@contextlib.contextmanager
def running(
    spec: SandboxSpec, *, progress: Progress = NO_PROGRESS, choose_ports: Callable[[int], Sequence[int]] = free_ports
) -> Iterator[Sandbox]:
    """A sandbox in a temporary folder, for the length of the block; afterwards no process and no folder is left.

    So also after exceptions and interrupts and, through a guard process, when this process is killed. When another process takes
    one of the ports of ``choose_ports``, it is asked again, three times in all. Raises ``SandboxError`` when Kafka does not
    start; then the folder is kept and the message names the log.
    """
    runtime = _runtime_of(spec, progress)
    folder = Path(tempfile.gettempdir()) / f"kafka-quotas-sandbox-{secrets.token_hex(6)}"
    with guarding(folder) as guard:
        folder.mkdir(mode=0o700)
        sandbox = _start(spec, folder, runtime, guard, progress, choose_ports)
        progress.step("")
        try:
            yield sandbox
        finally:
            _stop(sandbox)


def _runtime_of(spec: SandboxSpec, progress: Progress) -> Runtime:
    runtime = runtime_for(spec.kafka_version, progress=progress)
    # Behind Kafka's jars: a JVM takes the archive of their classes only when they come first.
    recorder = (plugin_jar(RECORDER, runtime, progress=progress),) if spec.record else ()
    groups = (plugin_jar(GROUPS, runtime, progress=progress),) if spec.groups else ()
    return replace(runtime, jars=(*runtime.jars, *recorder, *groups, *spec.plugins))


def _stop(sandbox: Sandbox) -> None:
    """End the processes, and never another that has one of their numbers now. Remove the folder."""
    try:
        # ZooKeeper last: a broker that cannot reach it takes long to end.
        folders = [NodeFiles(id=node.id, sandbox_folder=sandbox.folder).folder for node in sandbox.nodes]
        writes = any(writes_classes(folder) for folder in folders)
        ended = process.end([node.process for node in sandbox.nodes], grace_s=_ARCHIVE_GRACE_S if writes else _STOP_GRACE_S)
        for folder in folders if ended else ():
            keep_classes(folder)
        process.end([server.process for server in sandbox.servers], grace_s=_STOP_GRACE_S)
    finally:
        shutil.rmtree(sandbox.folder, ignore_errors=True)


def _start(
    spec: SandboxSpec,
    folder: Path,
    runtime: Runtime,
    guard: Guard,
    progress: Progress,
    choose_ports: Callable[[int], Sequence[int]],
) -> Sandbox:
    try:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                return launch(spec, folder, runtime, guard=guard, progress=progress, ports=assign_ports(spec, choose_ports))
            except PortTakenError:
                if attempt == _PORT_ATTEMPTS:
                    raise
                shutil.rmtree(folder)
                folder.mkdir(mode=0o700)
    except SandboxError:
        # The logs stay for a person to read, also when the guard's owner is gone.
        guard.release()
        for number in range(1, spec.nodes + 1):
            NodeFiles(id=number, sandbox_folder=folder).remove_data()
        ZooKeeperFiles(sandbox_folder=folder, kafka_version=spec.kafka_version).remove_data()
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    raise AssertionError  # pragma: no cover - the loop returns or raises


_LOOK_S: Final = 1.0


def serve_sandbox(spec: SandboxSpec, show: Callable[[Sandbox], None], *, progress: Progress) -> None:
    """Run a sandbox until an interrupt, after ``show``. Raises ``SandboxError`` when one of its processes ends before."""
    with running(spec, progress=progress) as sandbox:
        show(sandbox)
        with contextlib.suppress(KeyboardInterrupt):
            while not (ended := [server for server in sandbox.servers if not process.is_alive(server.process)]):
                time.sleep(_LOOK_S)
            raise failure("a process of the local Kafka ended", ended[0].log_file)
