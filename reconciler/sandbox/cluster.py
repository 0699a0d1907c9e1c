"""Starts and stops a real Kafka on loopback."""

from __future__ import annotations

import base64
import contextlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from reconciler.errors import SandboxError
from reconciler.ports import Progress
from reconciler.sandbox import client_files, process
from reconciler.sandbox.artifacts import jar_set
from reconciler.sandbox.fetch import available_fetchers
from reconciler.sandbox.guard import Guard, guarding
from reconciler.sandbox.jars import ensure_jars
from reconciler.sandbox.java import find_java
from reconciler.sandbox.node import NODE_FOLDERS, NodeFiles, Runtime, telling_lines
from reconciler.sandbox.ports import LOOPBACK, free_ports
from reconciler.sandbox.process import ProcessRef
from reconciler.sandbox.properties import NodePorts
from reconciler.sandbox.readiness import wait_until_ready
from reconciler.sandbox.spec import Sandbox, SandboxSpec

_PORT_ATTEMPTS: Final = 3
_PORT_TAKEN: Final = "Address already in use"
_READY_S: Final = 90.0
_FORMAT_S: Final = 60.0
_STOP_GRACE_S: Final = 3.0
"""A sandbox's data is thrown away, so a node that waits for the others of its quorum may be killed."""


class _PortTakenError(SandboxError):
    """Another process took a port between our look and the broker's bind."""


def runtime_for(kafka_version: str, *, progress: Progress | None = None) -> Runtime:
    """Java and the jars of a pinned version, fetched if need be: enough to run any of Kafka's own tools too.

    Raises ``MissingDependencyError`` without Java or anything to fetch with, ``SandboxError`` when fetching fails.
    """
    java = find_java()
    jars = ensure_jars(jar_set(kafka_version), fetchers=lambda: available_fetchers(java), progress=progress)
    return Runtime(java=java, jars=jars)


def start(
    spec: SandboxSpec,
    folder: Path,
    *,
    progress: Progress | None = None,
    record: Callable[[Sandbox], None] = lambda _sandbox: None,
    choose_ports: Callable[[int], Sequence[int]] = free_ports,
) -> Sandbox:
    """Starts a sandbox that goes on running when this process ends; ``folder`` must not exist, or be empty.

    Returns when every node answers and ``record`` has noted it. An interrupt (or the death of this process) before that leaves no
    process and no folder. When another process takes one of the ports of ``choose_ports``, it is asked again, three times in all.
    Raises ``SandboxError`` when it does not start; then ``folder`` is kept and the message names the log.
    """
    runtime = runtime_for(spec.kafka_version, progress=progress)
    _claim(folder.absolute())
    with guarding(folder) as guard:
        sandbox = _start(spec, folder.absolute(), runtime, guard, progress, choose_ports)
        try:
            record(sandbox)
        except BaseException:
            stop(sandbox)
            raise
        return sandbox


@contextlib.contextmanager
def running(spec: SandboxSpec, *, progress: Progress | None = None) -> Iterator[Sandbox]:
    """A sandbox in a temporary folder, for the length of the block; afterwards no process and no folder is left.

    This holds for exceptions and interrupts, and, through a guard process, even when this process is killed. Raises as ``start``.
    """
    runtime = runtime_for(spec.kafka_version, progress=progress)
    folder = Path(tempfile.gettempdir()) / f"kafka-quotas-sandbox-{secrets.token_hex(6)}"
    with guarding(folder) as guard:
        folder.mkdir(mode=0o700)
        sandbox = _start(spec, folder, runtime, guard, progress, free_ports)
        try:
            yield sandbox
        finally:
            stop(sandbox)


def stop(sandbox: Sandbox) -> None:
    """Ends the sandbox's processes (and never another that has one of their numbers now) and removes its folder."""
    try:
        process.end([node.process for node in sandbox.nodes], grace_s=_STOP_GRACE_S)
    finally:
        _remove(sandbox.folder)


def _remove(folder: Path) -> None:
    """What a sandbox made in its folder, and the folder itself unless somebody else put something there."""
    for made in (*folder.glob(NODE_FOLDERS), *folder.glob(client_files.PATTERN)):
        shutil.rmtree(made, ignore_errors=True) if made.is_dir() else made.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def is_running(sandbox: Sandbox) -> bool:
    """Whether every one of its processes is there."""
    return all(process.is_alive(node.process) for node in sandbox.nodes)


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SandboxError(f"{folder} is not empty; a sandbox needs a folder of its own, which stop removes")
        folder.chmod(0o700)
    except OSError as error:
        raise SandboxError(f"cannot use {folder} for a sandbox: {error.strerror}") from error


def _start(
    spec: SandboxSpec,
    folder: Path,
    runtime: Runtime,
    guard: Guard,
    progress: Progress | None,
    choose_ports: Callable[[int], Sequence[int]],
) -> Sandbox:
    try:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                return _attempt(spec, folder, runtime, guard, progress, _node_ports(spec, choose_ports))
            except _PortTakenError:
                if attempt == _PORT_ATTEMPTS:
                    raise
                _remove(folder)
                folder.mkdir(mode=0o700, exist_ok=True)
    except SandboxError:
        # The logs stay for a person to read, also when the guard's owner is gone.
        guard.release()
        for number in range(1, spec.nodes + 1):
            NodeFiles(id=number, sandbox_folder=folder).remove_data()
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    raise AssertionError  # pragma: no cover - the loop returns or raises


def _attempt(
    spec: SandboxSpec,
    folder: Path,
    runtime: Runtime,
    guard: Guard,
    progress: Progress | None,
    ports: Sequence[NodePorts],
) -> Sandbox:
    files = [NodeFiles(id=node_id, sandbox_folder=folder) for node_id in range(1, spec.nodes + 1)]
    cluster_id = _new_cluster_id()
    try:
        for file in files:
            file.write(spec, ports)
    except OSError as error:
        raise SandboxError(f"cannot write to {folder}: {error.strerror}") from error
    if progress:
        progress.step(f"starting Kafka {spec.kafka_version}, {spec.nodes} {'node' if spec.nodes == 1 else 'nodes'}")
    started: list[ProcessRef] = []

    def spawn(command: Sequence[str], output: Path) -> ProcessRef:
        started.append(process.spawn(command, output=output))
        guard.watch(started[-1])
        return started[-1]

    try:
        formats = [spawn(file.format_command(spec, runtime, cluster_id), file.format_log) for file in files]
        process.wait_ended(formats, within_s=_FORMAT_S)
        _check_formatted(files)
        brokers = [spawn(file.broker_command(spec, runtime), file.log) for file in files]
        _await_ready(cluster_id, files, brokers, ports)
    except BaseException:
        process.end(started, grace_s=1.0)
        raise
    client_files.write(folder, spec.users)
    return Sandbox(
        bootstrap_servers=",".join(f"{LOOPBACK}:{p.plaintext}" for p in ports),
        sasl_bootstrap_servers=",".join(f"{LOOPBACK}:{p.sasl}" for p in ports) if spec.users else None,
        cluster_id=cluster_id,
        kafka_version=spec.kafka_version,
        folder=folder,
        nodes=tuple(f.running(spec, ref, p) for f, ref, p in zip(files, brokers, ports, strict=True)),
        users=spec.users,
        listeners={
            listener.name: ",".join(f"{LOOPBACK}:{p.further[listener.name]}" for p in ports) for listener in spec.listeners
        },
    )


def _check_formatted(files: Sequence[NodeFiles]) -> None:
    for file in files:
        if not (file.data / "meta.properties").is_file():
            raise _failure("Kafka's storage could not be formatted", file.format_log)


def _await_ready(cluster_id: str, files: Sequence[NodeFiles], brokers: Sequence[ProcessRef], ports: Sequence[NodePorts]) -> None:
    def check_alive() -> None:
        for file, broker in zip(files, brokers, strict=True):
            if not process.is_alive(broker):
                raise _failure(f"Kafka node {file.id} ended while it started", file.log)
            # A broker that cannot listen takes many seconds to end by itself.
            if file.says(_PORT_TAKEN):
                raise _failure(f"Kafka node {file.id} could not listen on its ports", file.log)

    plaintext = {file.id: own.plaintext for file, own in zip(files, ports, strict=True)}
    if not wait_until_ready(cluster_id, plaintext, deadline=time.monotonic() + _READY_S, check_alive=check_alive):
        raise _failure(f"Kafka did not answer within {_READY_S:.0f} s", files[0].log)


def _node_ports(spec: SandboxSpec, choose_ports: Callable[[int], Sequence[int]]) -> tuple[NodePorts, ...]:
    free = iter(choose_ports((3 + len(spec.listeners)) * spec.nodes))
    return tuple(
        NodePorts(
            plaintext=next(free),
            controller=next(free),
            sasl=next(free) if spec.users else None,
            further={listener.name: next(free) for listener in spec.listeners},
        )
        for _ in range(spec.nodes)
    )


def _new_cluster_id() -> str:
    """16 random bytes in base64, as Kafka makes them; the tools take a leading dash for an option."""
    while (text := base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode("ascii")).startswith("-"):
        pass
    return text


def _failure(what: str, log: Path) -> SandboxError:
    lines = telling_lines(log)
    kind = _PortTakenError if any(_PORT_TAKEN in line for line in lines) else SandboxError
    return kind(f"{what}; its log is {log} and says:\n" + "\n".join(f"  {line}" for line in lines))
