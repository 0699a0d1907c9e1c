"""Starts and stops a real Kafka on loopback."""

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
from reconciler.features.sandbox.java import Runtime, keep_classes, runtime_for
from reconciler.features.sandbox.launch import launch
from reconciler.features.sandbox.process import Guard, guarding
from reconciler.features.sandbox.servers import PortTakenError, failure, node_files, writes_classes, zookeeper_files
from reconciler.features.sandbox.spec import Sandbox, SandboxNode, SandboxSpec
from reconciler.ports import NO_PROGRESS, Progress

_PORT_ATTEMPTS: Final = 3
_STOP_GRACE_S: Final = 3.0
"""A sandbox's data is thrown away, so a node that waits for the others of its quorum may be killed."""
_ARCHIVE_GRACE_S: Final = 30.0
_LOOK_S: Final = 1.0


@contextlib.contextmanager
def running(
    spec: SandboxSpec, *, progress: Progress = NO_PROGRESS, choose_ports: Callable[[int], Sequence[int]] = free_ports
) -> Iterator[Sandbox]:
    """A sandbox in a temporary folder, for the length of the block; afterwards no process and no folder is left.

    So also after exceptions and interrupts and, through a guard process, when this process is killed. When another process takes
    one of the ports of ``choose_ports``, it is asked again, three times in all. Raises ``SandboxError`` when Kafka does not
    start; then the folder is kept and the message names the log.
    """
    runtime = runtime_for(spec.kafka_version, progress=progress)
    # Behind Kafka's jars: a JVM takes the archive of their classes only when they come first.
    runtime = replace(runtime, jars=(*runtime.jars, *spec.plugins))
    folder = Path(tempfile.gettempdir()) / f"kafka-quotas-sandbox-{secrets.token_hex(6)}"
    with guarding(folder) as guard:
        sandbox = _start(spec, folder, runtime, guard, progress, choose_ports)
        progress.step("")
        try:
            yield sandbox
        finally:
            _stop(sandbox, spec, runtime)


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
            folder.mkdir(mode=0o700)
            try:
                return launch(spec, folder, runtime, guard=guard, progress=progress, ports=assign_ports(spec, choose_ports))
            except PortTakenError:
                if attempt == _PORT_ATTEMPTS:
                    raise
                shutil.rmtree(folder)
    except SandboxError:
        # The logs stay for a person to read, also when the guard's owner is gone.
        guard.release()
        for files in (*node_files(folder, spec).values(), zookeeper_files(folder, spec.kafka_version)):
            files.remove_data()
        raise
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SandboxError(f"cannot start Kafka in {folder}: {error}") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    raise AssertionError  # pragma: no cover - the loop returns or raises


def _stop(sandbox: Sandbox, spec: SandboxSpec, runtime: Runtime) -> None:
    """End the processes, and never another that has one of their numbers now. Remove the folder."""
    try:
        grace_s = _ARCHIVE_GRACE_S if writes_classes(spec, runtime) else _STOP_GRACE_S
        # ZooKeeper last: a broker that cannot reach it takes long to end.
        brokers = [server.process for server in sandbox.servers if isinstance(server, SandboxNode)]
        written = node_files(sandbox.folder, spec)[1].classes
        if process.end(brokers, grace_s=grace_s) and written.is_file():
            keep_classes(written, runtime.class_archive)
        process.end([server.process for server in sandbox.servers], grace_s=_STOP_GRACE_S)
    finally:
        shutil.rmtree(sandbox.folder, ignore_errors=True)


def serve_sandbox(spec: SandboxSpec, show: Callable[[Sandbox], None], *, progress: Progress) -> None:
    """Run a sandbox until an interrupt, after ``show``. Raises ``SandboxError`` when one of its processes ends before."""
    with running(spec, progress=progress) as sandbox:
        show(sandbox)
        with contextlib.suppress(KeyboardInterrupt):
            while not (ended := [server for server in sandbox.servers if not process.is_alive(server.process)]):
                time.sleep(_LOOK_S)
            raise failure("a process of the local Kafka ended", ended[0].log_file)
