"""The text of a node's ``server.properties``: pure, so that it can be read and tested without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.sandbox.ports import LOOPBACK
from reconciler.sandbox.spec import Login, SandboxSpec

PLAINTEXT: Final = "PLAINTEXT"
SASL: Final = "SASL"
CONTROLLER: Final = "CONTROLLER"

_OWNED: Final = frozenset({
    "process.roles",
    "node.id",
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
    """The loopback ports of one node; ``sasl`` only where there are users."""

    plaintext: int
    controller: int
    sasl: int | None


def server_properties(spec: SandboxSpec, *, node_id: int, ports: Sequence[NodePorts], data: Path) -> str:
    """The properties of node ``node_id`` (from 1); ``ports`` has every node's, ``data`` is where this one stores its data.

    Raises ``UsageError`` when ``spec.properties`` names a setting the sandbox must own (ids, listeners, folders).
    """
    if owned := sorted(_OWNED & spec.properties.keys()):
        raise UsageError(f"{', '.join(owned)} cannot be set: the sandbox chooses node ids, listeners and folders itself")
    settings = {**_identity(node_id, ports, data), **_defaults(spec.nodes), **_sasl(spec.users), **spec.properties}
    return properties_text(settings)


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file, ASCII only, which every reader of the format understands alike."""
    return "".join(f"{_escaped(key, key=True)}={_escaped(value, key=False)}\n" for key, value in settings.items())


def plain_login_module(login: Login) -> str:
    """The JAAS line of a client that logs in as ``login``."""
    return f"{_PLAIN_MODULE} required username={_quoted(login.name)} password={_quoted(login.password)};"


_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


def _identity(node_id: int, ports: Sequence[NodePorts], data: Path) -> dict[str, str]:
    own = ports[node_id - 1]
    clients = f"{PLAINTEXT}://{LOOPBACK}:{own.plaintext}"
    if own.sasl is not None:
        clients += f",{SASL}://{LOOPBACK}:{own.sasl}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{n}@{LOOPBACK}:{p.controller}" for n, p in enumerate(ports, start=1)),
        "listeners": f"{clients},{CONTROLLER}://{LOOPBACK}:{own.controller}",
        "advertised.listeners": clients,
        "listener.security.protocol.map": f"{PLAINTEXT}:PLAINTEXT,{SASL}:SASL_PLAINTEXT,{CONTROLLER}:PLAINTEXT",
        "controller.listener.names": CONTROLLER,
        "inter.broker.listener.name": PLAINTEXT,
        "log.dirs": str(data),
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
    logins = " ".join(f"{_quoted('user_' + user.name)}={_quoted(user.password)}" for user in users)
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{SASL.lower()}.plain.sasl.jaas.config": f"{_PLAIN_MODULE} required {logins};",
    }


def _quoted(text: str) -> str:
    """A string of a JAAS configuration, as Java's StreamTokenizer reads it: backslash escapes, octal for control characters."""
    return '"' + "".join(f"\\{ord(c):03o}" if ord(c) < 32 else f"\\{c}" if c in '"\\' else c for c in text) + '"'


def _escaped(text: str, *, key: bool) -> str:
    out: list[str] = []
    for position, char in enumerate(text):
        if char == "\\" or (key and char in "=: #!") or (position == 0 and char in " #!"):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out.extend(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return "".join(out)
