"""The text of a node's ``server.properties``: pure, so that it can be read and tested without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.sandbox.java_text import plain_server_module, properties_text
from reconciler.sandbox.login import Login
from reconciler.sandbox.ports import LOOPBACK
from reconciler.sandbox.spec import Listener, SandboxSpec

PLAINTEXT: Final = "PLAINTEXT"
SASL: Final = "SASL"
CONTROLLER: Final = "CONTROLLER"

_OWNED: Final = frozenset({
    "process.roles",
    "node.id",
    "broker.id",
    "zookeeper.connect",
    "controller.quorum.voters",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "controller.listener.names",
    "inter.broker.listener.name",
    "log.dirs",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """The loopback ports of one node; ``sasl`` only where there are users, ``further`` by the name of the listener.

    A node has either a ``controller`` of its own or a ZooKeeper.
    """

    plaintext: int
    controller: int | None
    sasl: int | None
    further: Mapping[str, int] = field(default_factory=dict)


def server_properties(
    spec: SandboxSpec, *, node_id: int, ports: Sequence[NodePorts], data: Path, zookeeper: str | None = None
) -> str:
    """The properties of node ``node_id`` (from 1); ``ports`` has every node's, ``data`` is where this one stores its data.

    ``zookeeper`` is ``host:port/chroot``; without it the nodes are a KRaft cluster.

    Raises ``UsageError`` when ``spec.properties`` names a setting the sandbox must own (ids, listeners, folders).
    """
    if owned := sorted(_OWNED & spec.properties.keys()):
        raise UsageError(f"{', '.join(owned)} cannot be set: the sandbox chooses node ids, listeners and folders itself")
    settings = {
        **_listeners(ports[node_id - 1], spec.listeners),
        **(_kraft(node_id, ports) if zookeeper is None else _zookeeper(node_id, zookeeper)),
        "log.dirs": str(data),
        **_defaults(spec.nodes),
        **_sasl(spec.users),
        **_further(spec.listeners),
        **spec.properties,
    }
    return properties_text(settings)


def _listeners(own: NodePorts, further: Sequence[Listener]) -> dict[str, str]:
    clients = f"{PLAINTEXT}://{LOOPBACK}:{own.plaintext}"
    if own.sasl is not None:
        clients += f",{SASL}://{LOOPBACK}:{own.sasl}"
    clients += "".join(f",{listener.name}://{LOOPBACK}:{own.further[listener.name]}" for listener in further)
    protocols = f"{PLAINTEXT}:PLAINTEXT,{SASL}:SASL_PLAINTEXT,{CONTROLLER}:PLAINTEXT"
    return {
        "listeners": clients if own.controller is None else f"{clients},{CONTROLLER}://{LOOPBACK}:{own.controller}",
        "advertised.listeners": clients,
        "listener.security.protocol.map": ",".join(
            [protocols, *(f"{listener.name}:{listener.protocol}" for listener in further)]
        ),
        "inter.broker.listener.name": PLAINTEXT,
    }


def _kraft(node_id: int, ports: Sequence[NodePorts]) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{n}@{LOOPBACK}:{p.controller}" for n, p in enumerate(ports, start=1)),
        "controller.listener.names": CONTROLLER,
    }


def _zookeeper(node_id: int, zookeeper: str) -> dict[str, str]:
    return {
        "broker.id": str(node_id),
        "zookeeper.connect": zookeeper,
        # Nobody waits for the partitions of a sandbox that is being stopped.
        "controlled.shutdown.enable": "false",
    }


def _defaults(nodes: int) -> dict[str, str]:
    """What makes a throw-away cluster of this size small and quick; everything that bears on quotas stays as Kafka has it."""
    replicas, in_sync = str(nodes), str(1 if nodes == 1 else 2)
    return {
        "auto.create.topics.enable": "true",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # The default reserves 128 MiB of the heap at start.
        "log.cleaner.dedupe.buffer.size": "2097152",
    }


def _sasl(users: Sequence[Login]) -> dict[str, str]:
    if not users:
        return {}
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{SASL.lower()}.plain.sasl.jaas.config": plain_server_module(users),
    }


def _further(listeners: Sequence[Listener]) -> dict[str, str]:
    return {
        f"listener.name.{listener.name.lower()}.{key}": value
        for listener in listeners
        for key, value in listener.properties.items()
    }
