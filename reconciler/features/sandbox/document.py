"""Whether the local Kafka is running and how to reach it, as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.sandbox.background import Status
from reconciler.features.sandbox.spec import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFile:
    """A user of the local Kafka."""

    name: str
    """Name of the user."""
    client_properties: str
    """A file for --command-config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """A node of the local Kafka."""

    id: int
    """Node id."""
    pid: int
    """Process id."""
    alive: bool
    """True while the process runs."""
    port: int
    """Of the listener without any login."""
    log_file: str
    """Log file of the process."""
    request_log_file: str | None
    """``None`` when requests are not logged."""
    recorded_folder: str | None
    """Folder of the recorder's files. ``None`` without --record. Since format 1.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperState:
    """The ZooKeeper of the local Kafka."""

    connection: str
    """Host:port/chroot, as zookeeper.connect takes it."""
    pid: int
    """Process id."""
    alive: bool
    """True while the process runs."""
    log_file: str
    """Log file of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """A local Kafka and how to reach it."""

    sandbox: Sandbox
    folder: str
    """Data and logs. Stop removes it."""
    users: tuple[UserFile, ...]
    """Users who can log in, from --user."""
    nodes: tuple[NodeState, ...]
    """The nodes of the cluster."""
    zookeeper: ZooKeeperState | None
    """The ZooKeeper server. ``None``, or missing, for a cluster without one."""


def state_of_sandbox(status: Status) -> SandboxState | None:
    """How to reach it. ``None``: stopped."""
    sandbox = status.sandbox
    if sandbox is None:
        return None
    server = sandbox.zookeeper_server
    return SandboxState(
        sandbox=sandbox,
        folder=str(sandbox.folder),
        users=tuple(UserFile(name=u.name, client_properties=str(sandbox.client_properties(u.name))) for u in sandbox.users),
        nodes=tuple(
            NodeState(
                id=node.id,
                pid=node.pid,
                alive=node.id in status.alive,
                port=node.port,
                log_file=str(node.log_file),
                request_log_file=str(node.request_log_file) if node.request_log_file else None,
                recorded_folder=str(node.recorded_folder) if node.recorded_folder else None,
            )
            for node in sandbox.nodes
        ),
        zookeeper=None
        if server is None
        else ZooKeeperState(
            connection=server.connection, pid=server.process.pid, alive=status.zookeeper_alive, log_file=str(server.log_file)
        ),
    )


SANDBOX: Final = Document(
    cls=Status,
    name="sandbox",
    title="kafka-quotas sandbox status",
    codec=VALUES.extended(
        {
            Sandbox: row("bootstrap_servers sasl_bootstrap_servers cluster_id kafka_version"),
            SandboxState: row("*sandbox folder users nodes zookeeper"),
            Status: row("status=condition sandbox", sandbox=state_of_sandbox),
        }
    ),
)
