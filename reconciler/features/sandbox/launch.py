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

from reconciler.backends import BrokerCluster, ConnectionSettings
from reconciler.errors import BackendError
from reconciler.features.sandbox import process
from reconciler.features.sandbox.configuration import (
    LOOPBACK,
    PLAINTEXT,
    SASL,
    Ports,
    broker_settings,
    client_properties_text,
    zookeeper_settings,
)
from reconciler.features.sandbox.java import Runtime
from reconciler.features.sandbox.process import Guard, ProcessRef
from reconciler.features.sandbox.servers import PORT_TAKEN, ServerFiles, failure, log_text, node_files, zookeeper_files
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxNode, SandboxSpec, SandboxZooKeeper, client_properties_file
from reconciler.ports import EntityFilter, Progress
from reconciler.text import count_of

_READY_S: Final = 90.0
_FORMAT_S: Final = 60.0
_POLL_S: Final = 0.05
_ATTEMPT_S: Final = 2.0
"""Short, so that a broker that ended meanwhile is noticed soon."""


def launch(spec: SandboxSpec, folder: Path, runtime: Runtime, *, guard: Guard, progress: Progress, ports: Ports) -> Sandbox:
    """Start everything and return when every node answers; on failure every process has ended, and ``folder`` has the logs.

    Raises ``PortTakenError`` when a port was taken meanwhile, ``SandboxError`` for anything else, ``OSError``.
    """
    nodes = node_files(folder, spec)
    for node_id, files in nodes.items():
        settings = broker_settings(spec, node_id=node_id, ports=ports, data=files.data)
        files.write(settings, request_log=spec.request_log)
    _write_client_files(folder, spec.users)
    beside = " and ZooKeeper" if spec.zookeeper else ""
    progress.step(f"starting Kafka {spec.kafka_version}, {count_of(spec.nodes, 'node')}{beside}")
    started: list[ProcessRef] = []

    def start(files: ServerFiles, command: Sequence[str]) -> ProcessRef:
        with process.uninterrupted():
            started.append(process.spawn(command, output=files.log))
            guard.watch(started[-1])
        return started[-1]

    try:
        zookeeper = None
        if spec.zookeeper is not None:
            server = zookeeper_files(folder, spec.kafka_version)
            server.write(zookeeper_settings(spec.zookeeper, port=ports.zookeeper, data=server.data))
            ref = start(server, server.zookeeper_command(spec.zookeeper, runtime))
            await_zookeeper(server, ref, port=ports.zookeeper)
            connection = f"{LOOPBACK}:{ports.zookeeper}{spec.zookeeper.chroot}"
            zookeeper = SandboxZooKeeper(process=ref, connection=connection, log_file=server.log)
        else:
            cluster_id = _new_cluster_id()
            formats = [start(files, files.format_command(runtime, cluster_id)) for files in nodes.values()]
            process.wait_ended(formats, within_s=_FORMAT_S)
            _check_formatted(nodes)
        brokers = {node_id: start(files, files.broker_command(spec, runtime, node_id)) for node_id, files in nodes.items()}
        _await_brokers(nodes, brokers, ports)
    except BaseException:
        # ZooKeeper, the first, last: a broker that cannot reach it takes long to end.
        process.end(started[1:] if spec.zookeeper else started, grace_s=1.0)
        process.end(started, grace_s=1.0)
        raise
    return Sandbox(
        bootstrap_servers=ports.servers(PLAINTEXT),
        sasl_bootstrap_servers=ports.servers(SASL) if spec.users else None,
        cluster_id=nodes[1].cluster_id() or "",
        kafka_version=spec.kafka_version,
        folder=folder,
        nodes=tuple(
            SandboxNode(
                id=node_id,
                process=brokers[node_id],
                port=ports.nodes[node_id - 1][PLAINTEXT],
                log_file=files.log,
                request_log_file=files.request_log if spec.request_log else None,
            )
            for node_id, files in nodes.items()
        ),
        users=spec.users,
        listeners={listener.name: ports.servers(listener.name) for listener in spec.listeners},
        zookeeper_server=zookeeper,
    )


def _write_client_files(folder: Path, logins: Sequence[Login]) -> None:
    """A ``client.properties`` for every user, readable by its owner only."""
    for number, login in enumerate(logins):
        descriptor = os.open(client_properties_file(folder, number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(client_properties_text(login))


def _check_formatted(nodes: Mapping[int, ServerFiles]) -> None:
    for files in nodes.values():
        if files.cluster_id() is None:
            raise failure("Kafka's storage could not be formatted", files.log)


def _new_cluster_id() -> str:
    """16 random bytes in base64, as Kafka makes them; the tools take a leading dash for an option."""
    while (text := base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode("ascii")).startswith("-"):
        pass
    return text


def await_zookeeper(server: ServerFiles, ref: ProcessRef, *, port: int) -> None:
    """Wait until the server serves clients. Raises ``PortTakenError`` or ``SandboxError`` naming its log."""
    deadline = time.monotonic() + _READY_S
    # "This ZooKeeper instance is not currently serving requests", until it is.
    while b"Mode:" not in _ask(port, b"srvr"):
        if not process.is_alive(ref):
            raise failure("ZooKeeper ended while it started", server.log)
        if time.monotonic() >= deadline:
            raise failure(f"ZooKeeper did not answer within {_READY_S:.0f} s", server.log)
        time.sleep(_POLL_S)


def _ask(port: int, word: bytes) -> bytes:
    """The answer to one of ZooKeeper's four letter words; empty when no server answers."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=_ATTEMPT_S) as connection:
        connection.sendall(word)
        while part := connection.recv(4096):
            answer += part
    return answer


def _await_brokers(nodes: Mapping[int, ServerFiles], brokers: Mapping[int, ProcessRef], ports: Ports) -> None:
    def check_alive() -> None:
        for node_id, files in nodes.items():
            if not process.is_alive(brokers[node_id]):
                raise failure(f"Kafka node {node_id} ended while it started", files.log)
            # A broker that cannot listen takes many seconds to end by itself.
            if PORT_TAKEN in log_text(files.log):
                raise failure(f"Kafka node {node_id} could not listen on its ports", files.log)

    listening = {node_id: own[PLAINTEXT] for node_id, own in enumerate(ports.nodes, start=1)}
    if not wait_until_ready(nodes[1].cluster_id, listening, check_alive=check_alive):
        raise failure(f"Kafka did not answer within {_READY_S:.0f} s", nodes[1].log)


def wait_until_ready(
    cluster_id: Callable[[], str | None], ports: Mapping[int, int], *, check_alive: Callable[[], None] = lambda: None
) -> bool:
    """Whether, within 90 s, all nodes (id to plaintext port) are listed as up and answer a question about quotas.

    The cluster that answers must have the id of ``cluster_id``, once that is known: another server may have taken a port.
    ``check_alive`` is called between the looks and may raise.
    """
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        check_alive()
        if all(_accepts(port) for port in ports.values()) and _answers(cluster_id(), ports):
            return True
        time.sleep(_POLL_S)
    return False


def _answers(cluster_id: str | None, ports: Mapping[int, int]) -> bool:
    servers = tuple((LOOPBACK, port) for port in ports.values())
    settings = ConnectionSettings(servers=servers, connect_seconds=_ATTEMPT_S, request_seconds=_ATTEMPT_S)
    with contextlib.suppress(BackendError), contextlib.closing(BrokerCluster.open(settings)) as cluster:
        up = {broker.id for broker in cluster.brokers()}
        if cluster.identity().id == cluster_id and up == ports.keys():
            answers = cluster.describe_on(EntityFilter(), sorted(up))
            return not any(isinstance(answer, BackendError) for answer in answers.values())
    return False


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection((LOOPBACK, port), timeout=_ATTEMPT_S).close()
        return True
    return False
