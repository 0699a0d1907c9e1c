"""The settings of a sandbox's servers and users, without effects but for ``free_ports``."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties

from reconciler.errors import SandboxError, UsageError
from reconciler.features.sandbox.spec import Login, SandboxSpec, ZooKeeperSpec

PLAINTEXT: Final = "PLAINTEXT"
SASL: Final = "SASL"
CONTROLLER: Final = "CONTROLLER"
LOOPBACK: Final = "127.0.0.1"
PORT_RANGE: Final = range(20000, 32000)
"""Below what Linux and macOS hand to outgoing connections, so that nothing takes a port between our look and the broker's bind
but another server that picks one here."""

_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LOG_LAYOUT: Final = "[%d] %p %m (%c)%n"
"""As Kafka ships it."""
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
class Ports:
    """The loopback ports of a sandbox: of each node by the name of its listener, and of ZooKeeper, where there is one."""

    nodes: tuple[Mapping[str, int], ...]
    zookeeper: int

    def servers(self, listener: str) -> str:
        """The bootstrap string of a listener."""
        return ",".join(f"{LOOPBACK}:{ports[listener]}" for ports in self.nodes)


def free_ports(count: int) -> tuple[int, ...]:
    """``count`` different ports without a listener now; another process may still take one before it is used.

    Raises ``SandboxError`` when there are not that many.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.sample(PORT_RANGE, len(PORT_RANGE)):
            if len(ports) == count:
                break
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            with contextlib.suppress(OSError):
                probe.bind((LOOPBACK, port))
                ports.append(port)
    if len(ports) < count:
        raise SandboxError(f"no {count} free ports on {LOOPBACK} between {PORT_RANGE.start} and {PORT_RANGE.stop - 1}")
    return tuple(ports)


def assign_ports(spec: SandboxSpec, choose_ports: Callable[[int], Sequence[int]]) -> Ports:
    """A port for each listener of ``spec``, of those that ``choose_ports`` finds. Raises ``SandboxError``."""
    names = _protocols(spec)
    free = iter(choose_ports(len(names) * spec.nodes + 1))
    return Ports(nodes=tuple({name: next(free) for name in names} for _ in range(spec.nodes)), zookeeper=next(free))


def _protocols(spec: SandboxSpec) -> dict[str, str]:
    """The ``security.protocol`` of each listener, by its name."""
    return {
        PLAINTEXT: "PLAINTEXT",
        **({SASL: "SASL_PLAINTEXT"} if spec.users else {}),
        **{listener.name: listener.protocol for listener in spec.listeners},
        **({} if spec.zookeeper else {CONTROLLER: "PLAINTEXT"}),
    }


def broker_settings(spec: SandboxSpec, *, node_id: int, ports: Ports, data: Path) -> dict[str, str]:
    """The settings of node ``node_id`` (from 1), which stores its data in ``data``.

    Raises ``UsageError`` when ``spec.properties`` names a setting the sandbox must own (ids, listeners, folders).
    """
    if owned := sorted(_OWNED & spec.properties.keys()):
        raise UsageError(f"{', '.join(owned)} cannot be set: the sandbox chooses node ids, listeners and folders itself")
    own = {name: f"{name}://{LOOPBACK}:{port}" for name, port in ports.nodes[node_id - 1].items()}
    settings = {
        "listeners": ",".join(own.values()),
        "advertised.listeners": ",".join(address for name, address in own.items() if name != CONTROLLER),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in _protocols(spec).items()),
        "inter.broker.listener.name": PLAINTEXT,
        **(_zookeeper(spec.zookeeper, node_id, ports) if spec.zookeeper else _kraft(node_id, ports)),
        "log.dirs": str(data),
        **_defaults(spec.nodes),
    }
    if spec.users:
        settings["sasl.enabled.mechanisms"] = "PLAIN"
        settings[f"listener.name.{SASL.lower()}.plain.sasl.jaas.config"] = plain_server_module(spec.users)
    for listener in spec.listeners:
        settings |= {f"listener.name.{listener.name.lower()}.{key}": value for key, value in listener.properties.items()}
    return {**settings, **spec.properties}


def _kraft(node_id: int, ports: Ports) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{n}@{LOOPBACK}:{p[CONTROLLER]}" for n, p in enumerate(ports.nodes, start=1)),
        "controller.listener.names": CONTROLLER,
    }


def _zookeeper(server: ZooKeeperSpec, node_id: int, ports: Ports) -> dict[str, str]:
    return {
        "broker.id": str(node_id),
        "zookeeper.connect": f"{LOOPBACK}:{ports.zookeeper}{server.chroot}",
        # Nobody waits for the partitions of a sandbox that is being stopped.
        "controlled.shutdown.enable": "false",
    }


def _defaults(nodes: int) -> dict[str, str]:
    """Return the settings that make a throw-away cluster small and quick; those of quotas stay as Kafka has them."""
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


def zookeeper_settings(spec: ZooKeeperSpec, *, port: int, data: Path) -> dict[str, str]:
    """The settings of the ZooKeeper server, which stores its data in ``data``."""
    return {
        "dataDir": str(data),
        "clientPort": str(port),
        "clientPortAddress": LOOPBACK,
        # Short, so that the session of a client that died ends soon; Kafka's own asks for 18 s.
        "tickTime": "500",
        "minSessionTimeout": "1000",
        "maxSessionTimeout": "60000",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
        **spec.properties,
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file, ASCII only, which every reader of the format understands alike."""
    return "".join(f"{javaproperties.join_key_value(key, value, ensure_ascii=True)}\n" for key, value in settings.items())


def client_properties_text(login: Login) -> str:
    """The ``client.properties`` of a user, for this tool's and Kafka's own ``--command-config``."""
    module = f"{_PLAIN_MODULE} required username={_quoted(login.name)} password={_quoted(login.password)};"
    return properties_text({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": module})


def plain_server_module(logins: Sequence[Login]) -> str:
    """The JAAS line of a listener that knows ``logins``."""
    users = " ".join(f"{_quoted('user_' + login.name)}={_quoted(login.password)}" for login in logins)
    return f"{_PLAIN_MODULE} required {users};"


def _quoted(text: str) -> str:
    """A string of a JAAS configuration, as Java's StreamTokenizer reads it: with backslash escapes."""
    return '"' + "".join(f"\\{c}" if c in '"\\' else c for c in text) + '"'


def config_command_class(kafka_version: str) -> str:
    """The main class of this Kafka's ``kafka-configs``; Kafka 4.4 moved it."""
    numbers = tuple(int(part) for part in kafka_version.split(".")[:2])
    return "org.apache.kafka.tools.ConfigCommand" if numbers >= (4, 4) else "kafka.admin.ConfigCommand"


def has_log4j2(kafka_version: str) -> bool:
    """Whether this Kafka logs through Log4j 2, and not through reload4j."""
    return int(kafka_version.split(".", 1)[0]) >= 4


def logging_settings(kafka_version: str, requests: Path | None) -> dict[str, str]:
    """The settings of this Kafka's logging library: all to standard output, but requests (KIP-673), if wanted, to a file."""
    if not has_log4j2(kafka_version):
        settings = {"log4j.rootLogger": "INFO, console", "log4j.appender.console": "org.apache.log4j.ConsoleAppender"}
        if requests is not None:
            settings |= {
                "log4j.logger.kafka.request.logger": "DEBUG, requests",
                "log4j.additivity.kafka.request.logger": "false",
                "log4j.appender.requests": "org.apache.log4j.FileAppender",
                "log4j.appender.requests.File": str(requests),
            }
        for name in ("console", "requests"):
            settings[f"log4j.appender.{name}.encoding"] = "UTF-8"
            settings[f"log4j.appender.{name}.layout"] = "org.apache.log4j.PatternLayout"
            settings[f"log4j.appender.{name}.layout.ConversionPattern"] = _LOG_LAYOUT
        return settings
    settings = {"status": "WARN", "shutdownHook": "disable", "rootLogger": "INFO, console", "appender.console.type": "Console"}
    if requests is not None:
        settings |= {
            "logger.requests": "DEBUG, requests",
            "logger.requests.name": "kafka.request.logger",
            "logger.requests.additivity": "false",
            "appender.requests.type": "File",
            "appender.requests.fileName": str(requests),
        }
    for name in ("console", "requests") if requests else ("console",):
        settings[f"appender.{name}.name"] = name
        settings[f"appender.{name}.layout.type"] = "PatternLayout"
        settings[f"appender.{name}.layout.charset"] = "UTF-8"
        settings[f"appender.{name}.layout.pattern"] = _LOG_LAYOUT
    return settings
