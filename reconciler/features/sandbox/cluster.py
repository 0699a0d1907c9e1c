"""Starts and stops a real Kafka on loopback: for a person, or with the state of another cluster."""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.apply import ChunkLimits, split_into_requests
from reconciler.backends import BrokerCluster, ConnectionSettings, parse_servers
from reconciler.errors import SandboxError
from reconciler.features.sandbox import process
from reconciler.features.sandbox.configuration import assign_ports, free_ports
from reconciler.features.sandbox.jars import (
    DEFAULT_KAFKA_VERSION,
    KRAFT_VERSIONS,
    ZOOKEEPER_VERSIONS,
    downloader,
    ensure_jars,
    jar_set,
)
from reconciler.features.sandbox.java import GROUPS, RECORDER, Runtime, keep_classes, plugin_jar, writes_classes
from reconciler.features.sandbox.launch import PortTakenError, failure, launch
from reconciler.features.sandbox.node import NodeFiles, ZooKeeperFiles
from reconciler.features.sandbox.process import Guard, guarding
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from reconciler.java import find_java
from reconciler.model import Action, Alteration, Change, CurrentState, Entity, KeyChange, Quotas, Reason, escaped
from reconciler.ports import NO_PROGRESS, Progress, QuotaCluster
from reconciler.resolution import refusal

_PORT_ATTEMPTS: Final = 3
_STOP_GRACE_S: Final = 3.0
"""A sandbox's data is thrown away, so a node that waits for the others of its quorum may be killed."""
_ARCHIVE_GRACE_S: Final = 30.0


def runtime_for(kafka_version: str, *, progress: Progress = NO_PROGRESS) -> Runtime:
    """Java and the jars of a pinned version, fetched if need be: enough to run any of Kafka's own tools too.

    Raises ``MissingDependencyError`` without Java or PySpark to fetch with, ``SandboxError`` when fetching fails.
    """
    java = find_java()
    jars = ensure_jars(jar_set(kafka_version), fetch=downloader(java), progress=progress)
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


_REFUSES_NAN: Final = (4, 4)
_MANY_ENTITIES: Final = 20_000
_HEAP_MB: Final = 512
_LARGE_HEAP_MB: Final = 1024


def nearest_version(kafka_version: str | None) -> tuple[str, tuple[str, ...]]:
    """The oldest pinned version from a cluster's (``"3.6"``) on, else the newest; notes on what that leaves open."""
    wanted = _numbers(kafka_version or "")
    if not wanted:
        return DEFAULT_KAFKA_VERSION, ("the cluster's Kafka version is not known",)
    version = min((v for v in KRAFT_VERSIONS if _numbers(v) >= wanted), key=_numbers, default=DEFAULT_KAFKA_VERSION)
    notes = (
        []
        if version.startswith(f"{kafka_version}.")
        else [f"the cluster runs Kafka {kafka_version}, which may check differently"]
    )
    if version in ZOOKEEPER_VERSIONS:
        notes.append("the local Kafka runs without ZooKeeper. A cluster that keeps its quotas in ZooKeeper has other checks")
    return version, tuple(notes)


def _numbers(version: str) -> tuple[int, ...]:
    """``(3, 9)`` of ``"3.9"``; empty for what does not begin with a number."""
    number = re.match(r"\d+(?:\.\d+)*", version, re.ASCII)
    return tuple(map(int, number[0].split("."))) if number else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """A local Kafka with a cluster's state; ``notes`` state in what the two differ."""

    kafka_version: str
    cluster: QuotaCluster
    notes: tuple[str, ...]


@contextlib.contextmanager
def seeded_sandbox(kafka_version: str | None, current: CurrentState, *, progress: Progress) -> Iterator[Seeded]:
    """A sandbox of the pinned version nearest to a cluster's, with ``current``, for the length of the block."""
    version, notes = nearest_version(kafka_version)
    heap = _LARGE_HEAP_MB if len(current.entities) > _MANY_ENTITIES else _HEAP_MB
    with running(SandboxSpec(kafka_version=version, heap_mb=heap), progress=progress) as sandbox:
        settings = ConnectionSettings(servers=parse_servers((sandbox.bootstrap_servers,)))
        with contextlib.closing(BrokerCluster.open(settings)) as cluster:
            left_out = seed(cluster, current.entities, kafka_version=version, progress=progress)
            yield Seeded(kafka_version=version, cluster=cluster, notes=(*notes, *left_out))


def seed(cluster: QuotaCluster, entities: Mapping[Entity, Quotas], *, kafka_version: str, progress: Progress) -> tuple[str, ...]:
    """Write a state to an empty cluster; a note on what it does not take: unknown types and keys, values that are refused now."""
    finite_only = _numbers(kafka_version) >= _REFUSES_NAN
    wanted: list[Change] = []
    refused: list[tuple[Entity, str | None]] = []
    for entity, quotas in entities.items():
        refusals = {
            key: refusal(Alteration(entity=entity, ops={key: value}), finite_only=finite_only)
            for key, value in sorted(quotas.items())
        }
        refused += ((entity, words) for words in refusals.values() if words is not None)
        keys = tuple(_setting(key, quotas[key]) for key, words in refusals.items() if words is None)
        if keys:
            wanted.append(Change(entity=entity, action=Action.CREATE, keys=keys))
    if wanted:
        progress.step(f"giving the local Kafka the cluster's state: {len(wanted)} entities")
    for request in split_into_requests(wanted, ChunkLimits()):
        results = cluster.alter([change.alteration() for change in request], validate_only=False)
        for change, result in zip(request, results, strict=True):
            if result.error_code:
                refused += ((change.entity, result.error) for _ in change.keys)
    return (_left_out(refused),) if refused else ()


def _setting(key: str, value: float) -> KeyChange:
    return KeyChange(key=key, before=None, after=value, reason=Reason.NOT_IN_CURRENT)


def _left_out(refused: Sequence[tuple[Entity, str | None]]) -> str:
    what = "1 value" if len(refused) == 1 else f"{len(refused)} values"
    entity, words = refused[0]
    example = f"{entity}: {escaped(words) if words else 'no reason given'}"
    return f"the local Kafka did not take {what} of the cluster's present state and checked without: {example}"
