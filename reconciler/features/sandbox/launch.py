"""One attempt to start a sandbox's processes on given ports, and to see that they answer."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kafka.errors import KafkaError

from reconciler.errors import SandboxError
from reconciler.features.sandbox import process
from reconciler.features.sandbox.clients import admin_client, answers_quotas, brokers_up, cluster_id
from reconciler.features.sandbox.configuration import LOOPBACK, NodePorts, Ports, client_properties_text
from reconciler.features.sandbox.java import Runtime
from reconciler.features.sandbox.node import NodeFiles, ZooKeeperFiles, telling_lines, wait_until_serving
from reconciler.features.sandbox.process import Guard, ProcessRef
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec, SandboxZooKeeper, client_properties_file
from reconciler.ports import Progress

_PORT_TAKEN: Final = "Address already in use"
_READY_S: Final = 90.0
_FORMAT_S: Final = 60.0


class PortTakenError(SandboxError):
    """Another process took a port between our look and the broker's bind."""


def launch(spec: SandboxSpec, folder: Path, runtime: Runtime, *, guard: Guard, progress: Progress, ports: Ports) -> Sandbox:
    """Starts everything and returns when every node answers; on failure every process has ended, and ``folder`` has the logs.

    Raises ``PortTakenError`` when a port was taken meanwhile, ``SandboxError`` for anything else.
    """
    files = [NodeFiles(id=node_id, sandbox_folder=folder) for node_id in range(1, spec.nodes + 1)]
    server = ZooKeeperFiles(sandbox_folder=folder, kafka_version=spec.kafka_version)
    connection = f"{LOOPBACK}:{ports.zookeeper}{spec.zookeeper_server.chroot}" if ports.zookeeper is not None else None
    try:
        if ports.zookeeper is not None:
            server.write(spec.zookeeper_server, port=ports.zookeeper)
        for file in files:
            file.write(spec, ports.nodes, zookeeper=connection)
    except OSError as error:
        raise SandboxError(f"cannot write to {folder}: {error.strerror}") from error
    beside = " and ZooKeeper" if spec.zookeeper else ""
    progress.step(f"starting Kafka {spec.kafka_version}, {spec.nodes} {'node' if spec.nodes == 1 else 'nodes'}{beside}")
    started: list[ProcessRef] = []

    def spawn(command: Sequence[str], output: Path) -> ProcessRef:
        with process.uninterrupted():
            started.append(process.spawn(command, output=output))
            guard.watch(started[-1])
        return started[-1]

    # The first broker makes the id of a cluster with ZooKeeper, and tells it in its log only.
    chosen = None if spec.zookeeper else _new_cluster_id()

    def cluster_id() -> str | None:
        return chosen or files[0].cluster_id()

    try:
        zookeeper = None
        if ports.zookeeper is not None and connection is not None:
            ref = spawn(server.command(spec.zookeeper_server, runtime), server.log)
            await_zookeeper(server, ref, port=ports.zookeeper)
            zookeeper = SandboxZooKeeper(process=ref, connection=connection, log_file=server.log)
        if chosen is not None:
            formats = [spawn(file.format_command(spec, runtime, chosen), file.format_log) for file in files]
            process.wait_ended(formats, within_s=_FORMAT_S)
            _check_formatted(files)
        brokers = [spawn(file.broker_command(spec, runtime), file.log) for file in files]
        _await_ready(cluster_id, files, brokers, ports.nodes)
    except BaseException:
        # ZooKeeper, the first, last: a broker that cannot reach it takes long to end.
        process.end(started[1:] if spec.zookeeper else started, grace_s=1.0)
        process.end(started, grace_s=1.0)
        raise
    _write_client_files(folder, spec.users)
    return Sandbox(
        bootstrap_servers=",".join(f"{LOOPBACK}:{p.plaintext}" for p in ports.nodes),
        sasl_bootstrap_servers=",".join(f"{LOOPBACK}:{p.sasl}" for p in ports.nodes) if spec.users else None,
        cluster_id=cluster_id() or "",
        kafka_version=spec.kafka_version,
        folder=folder,
        nodes=tuple(f.running(spec, ref, p) for f, ref, p in zip(files, brokers, ports.nodes, strict=True)),
        users=spec.users,
        listeners={
            listener.name: ",".join(f"{LOOPBACK}:{p.further[listener.name]}" for p in ports.nodes) for listener in spec.listeners
        },
        zookeeper_server=zookeeper,
    )


def _write_client_files(folder: Path, logins: Sequence[Login]) -> None:
    """A ``client.properties`` for every user, readable by its owner only."""
    for number, login in enumerate(logins):
        descriptor = os.open(client_properties_file(folder, number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(client_properties_text(login))


def await_zookeeper(server: ZooKeeperFiles, ref: ProcessRef, *, port: int) -> None:
    """Waits until the server serves. Raises ``PortTakenError`` or ``SandboxError`` naming its log."""

    def check_alive() -> None:
        if not process.is_alive(ref):
            raise failure("ZooKeeper ended while it started", server.log)

    if not wait_until_serving(port, deadline=time.monotonic() + _READY_S, check_alive=check_alive):
        raise failure(f"ZooKeeper did not answer within {_READY_S:.0f} s", server.log)


def _check_formatted(files: Sequence[NodeFiles]) -> None:
    for file in files:
        if not (file.data / "meta.properties").is_file():
            raise failure("Kafka's storage could not be formatted", file.format_log)


def _await_ready(
    cluster_id: Callable[[], str | None], files: Sequence[NodeFiles], brokers: Sequence[ProcessRef], ports: Sequence[NodePorts]
) -> None:
    def check_alive() -> None:
        for file, broker in zip(files, brokers, strict=True):
            if not process.is_alive(broker):
                raise failure(f"Kafka node {file.id} ended while it started", file.log)
            # A broker that cannot listen takes many seconds to end by itself.
            if _PORT_TAKEN in file.log_text():
                raise failure(f"Kafka node {file.id} could not listen on its ports", file.log)

    plaintext = {file.id: own.plaintext for file, own in zip(files, ports, strict=True)}
    if not wait_until_ready(cluster_id, plaintext, deadline=time.monotonic() + _READY_S, check_alive=check_alive):
        raise failure(f"Kafka did not answer within {_READY_S:.0f} s", files[0].log)


def _new_cluster_id() -> str:
    """16 random bytes in base64, as Kafka makes them; the tools take a leading dash for an option."""
    while (text := base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode("ascii")).startswith("-"):
        pass
    return text


def failure(what: str, log: Path) -> SandboxError:
    """The error that a server ended, with the lines of its log that have the reason."""
    lines = telling_lines(log)
    kind = PortTakenError if any(_PORT_TAKEN in line for line in lines) else SandboxError
    return kind(f"{what}. Its log, {log}, ends with:\n" + "\n".join(f"  {line}" for line in lines))


_POLL_S: Final = 0.05
_ATTEMPT_S: Final = 2.0
"""Short, so that a broker that ended meanwhile is noticed soon."""


def wait_until_ready(
    cluster: Callable[[], str | None], ports: Mapping[int, int], *, deadline: float, check_alive: Callable[[], None]
) -> bool:
    """Waits until all nodes (id to plaintext port) are listed as up and answer DescribeClientQuotas; ``False`` at ``deadline``.

    The cluster that answers must have the id of ``cluster``, once that is known: another server may have taken a port.
    ``deadline`` is on the monotonic clock. ``check_alive`` is called between the looks and may raise.
    """
    for port in ports.values():
        while not _accepts(port):
            check_alive()
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
    servers = ",".join(f"{LOOPBACK}:{port}" for port in ports.values())
    while time.monotonic() < deadline:
        check_alive()
        with contextlib.suppress(KafkaError), admin_client(servers, timeout_s=_ATTEMPT_S) as client:
            right = cluster_id(client) == cluster() and brokers_up(client) == ports.keys()
            if right and all(answers_quotas(client, node_id) for node_id in ports):
                return True
        time.sleep(_POLL_S)
    return False


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1.0).close()
    except OSError:
        return False
    return True
