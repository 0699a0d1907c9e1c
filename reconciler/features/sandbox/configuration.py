"""The text of every file that configures a JVM or a client of the sandbox: pure, so that it is tested without a broker.

A broker logs to standard output, and its requests (KIP-673) to a file of their own. Kafka 4.x logs through Log4j 2, 3.9 through
reload4j; both read the request log's path from the system property ``kafka.quotas.request.log``. The request log's layout is
the one Kafka ships: ``[%d] %p %m (%c)%n``.
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import javaproperties

from reconciler.errors import SandboxError, UsageError
from reconciler.features.sandbox.spec import Listener, Login, SandboxSpec

PLAINTEXT: Final = "PLAINTEXT"
SASL: Final = "SASL"
CONTROLLER: Final = "CONTROLLER"

_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
REQUEST_LOG_PROPERTY: Final = "kafka.quotas.request.log"
_LOG_LAYOUT: Final = "[%d] %p %m (%c)%n"

_LOG4J2_REQUEST_APPENDER: Final = f"""\
    <File name="requests" fileName="${{sys:{REQUEST_LOG_PROPERTY}}}" immediateFlush="true">
      <PatternLayout pattern="{_LOG_LAYOUT}" charset="UTF-8"/>
    </File>
"""
_LOG4J2_REQUEST_LOGGER: Final = """\
    <Logger name="kafka.request.logger" level="DEBUG" additivity="false"><AppenderRef ref="requests"/></Logger>
"""
_RELOAD4J: Final = f"""\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.encoding=UTF-8
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern={_LOG_LAYOUT}
"""
_RELOAD4J_REQUESTS: Final = f"""\
log4j.logger.kafka.request.logger=DEBUG, requests
log4j.additivity.kafka.request.logger=false
log4j.appender.requests=org.apache.log4j.FileAppender
log4j.appender.requests.File=${{{REQUEST_LOG_PROPERTY}}}
log4j.appender.requests.encoding=UTF-8
log4j.appender.requests.ImmediateFlush=true
log4j.appender.requests.layout=org.apache.log4j.PatternLayout
log4j.appender.requests.layout.ConversionPattern={_LOG_LAYOUT}
"""

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


def properties_text(settings: Mapping[str, str]) -> str:
    """A Java properties file, ASCII only, which every reader of the format understands alike."""
    return "".join(f"{javaproperties.join_key_value(key, value, ensure_ascii=True)}\n" for key, value in settings.items())


def client_properties_text(login: Login) -> str:
    """The ``client.properties`` of a user, for this tool's and Kafka's own ``--command-config``."""
    return properties_text(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": plain_login_module(login)}
    )


def plain_login_module(login: Login) -> str:
    """The JAAS line of a client that logs in as ``login``."""
    return f"{_PLAIN_MODULE} required username={_quoted(login.name)} password={_quoted(login.password)};"


def plain_server_module(logins: Sequence[Login]) -> str:
    """The JAAS line of a listener that knows ``logins``."""
    users = " ".join(f"{_quoted('user_' + login.name)}={_quoted(login.password)}" for login in logins)
    return f"{_PLAIN_MODULE} required {users};"


def _quoted(text: str) -> str:
    """A string of a JAAS configuration, as Java's StreamTokenizer reads it: backslash escapes, octal for control characters."""
    return '"' + "".join(f"\\{ord(c):03o}" if ord(c) < 32 else f"\\{c}" if c in '"\\' else c for c in text) + '"'


def uses_log4j2(kafka_version: str) -> bool:
    """Whether this Kafka logs through Log4j 2."""
    return int(kafka_version.split(".", 1)[0]) >= 4


def config_command_class(kafka_version: str) -> str:
    """The main class of this Kafka's ``kafka-configs``; Kafka 4.4 moved it."""
    numbers = tuple(int(part) for part in kafka_version.split(".")[:2])
    return "org.apache.kafka.tools.ConfigCommand" if numbers >= (4, 4) else "kafka.admin.ConfigCommand"


def logging_file_name(kafka_version: str) -> str:
    """The name that this Kafka's logging library expects of its configuration file."""
    return "log4j2.xml" if uses_log4j2(kafka_version) else "log4j.properties"


def logging_text(kafka_version: str, *, request_log: bool) -> str:
    """The configuration file of this Kafka's logging library."""
    if not uses_log4j2(kafka_version):
        return _RELOAD4J + (_RELOAD4J_REQUESTS if request_log else "")
    appender = _LOG4J2_REQUEST_APPENDER if request_log else ""
    logger = _LOG4J2_REQUEST_LOGGER if request_log else ""
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN" shutdownHook="disable">
  <Appenders>
    <Console name="console"><PatternLayout pattern="{_LOG_LAYOUT}" charset="UTF-8"/></Console>
{appender}  </Appenders>
  <Loggers>
{logger}    <Root level="INFO"><AppenderRef ref="console"/></Root>
  </Loggers>
</Configuration>
"""


def logging_options(kafka_version: str, *, config: Path, request_log: Path | None) -> tuple[str, ...]:
    """The system properties that make the JVM use ``config`` and write requests, if it logs them, to ``request_log``."""
    option = f"-Dlog4j2.configurationFile={config}" if uses_log4j2(kafka_version) else f"-Dlog4j.configuration={config.as_uri()}"
    return (option,) if request_log is None else (option, f"-D{REQUEST_LOG_PROPERTY}={request_log}")


LOOPBACK: Final = "127.0.0.1"
PORT_RANGE: Final = range(20000, 32000)
"""Below what Linux and macOS hand to outgoing connections, so that nothing takes a port between our look and the broker's bind
but another server that picks one here."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """The loopback ports of one node; ``sasl`` only where there are users, ``further`` by the name of the listener.

    A node has either a ``controller`` of its own or a ZooKeeper.
    """

    plaintext: int
    controller: int | None
    sasl: int | None
    further: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of a sandbox; ``zookeeper`` is ``None`` in KRaft mode."""

    nodes: tuple[NodePorts, ...]
    zookeeper: int | None


def assign_ports(spec: SandboxSpec, choose_ports: Callable[[int], Sequence[int]]) -> Ports:
    """A port for each listener of ``spec``, of those that ``choose_ports`` finds. Raises ``SandboxError``."""
    free = iter(choose_ports((3 + len(spec.listeners)) * spec.nodes + 1))
    return Ports(
        nodes=tuple(
            NodePorts(
                plaintext=next(free),
                controller=None if spec.zookeeper else next(free),
                sasl=next(free) if spec.users else None,
                further={listener.name: next(free) for listener in spec.listeners},
            )
            for _ in range(spec.nodes)
        ),
        zookeeper=next(free) if spec.zookeeper else None,
    )
