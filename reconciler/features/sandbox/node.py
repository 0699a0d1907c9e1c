"""The servers of a sandbox on disk and as processes: Kafka's nodes and ZooKeeper, their folders, files and command lines."""

from __future__ import annotations

import abc
import contextlib
import re
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.features.sandbox.configuration import (
    LOOPBACK,
    NodePorts,
    logging_file_name,
    logging_options,
    logging_text,
    properties_text,
    server_properties,
)
from reconciler.features.sandbox.java import (
    GROUP_SETTINGS,
    Runtime,
    class_reading_options,
    class_writing_options,
    jvm_command,
    recorder_settings,
)
from reconciler.features.sandbox.process import ProcessRef
from reconciler.features.sandbox.spec import SandboxNode, SandboxSpec, ZooKeeperSpec

_TROUBLE: Final = re.compile(r"\b(ERROR|FATAL)\b|Exception in thread|^Error: |^(Caused by: )?([\w$]+\.)+\w*(Exception|Error)\b")
_LINE_LIMIT: Final = 300
_CLUSTER_ID: Final = re.compile(r"\bCluster ID = ([\w-]+)", re.ASCII)
ZOOKEEPER_FOLDER: Final = "zookeeper"


class ServerFiles(abc.ABC):
    """What all servers have in their ``folder``."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def folder(self) -> Path:
        """The folder of all files of this server."""

    @property
    def data(self) -> Path:
        """Kafka's ``log.dirs``, ZooKeeper's snapshots and transaction logs."""
        return self.folder / "data"

    @property
    def temporary(self) -> Path:
        """The folder of the JVM's temporary files."""
        return self.folder / "tmp"

    def remove_data(self) -> None:
        """Remove all but the configuration and the logs."""
        for folder in (self.data, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFiles(ServerFiles):
    """Where node ``id`` of the sandbox in ``sandbox_folder`` keeps its things."""

    id: int
    sandbox_folder: Path

    @property
    def folder(self) -> Path:
        """The folder of all files of this node."""
        return self.sandbox_folder / f"node-{self.id}"

    @property
    def properties(self) -> Path:
        """The broker's settings, with its users' passwords."""
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        """The broker's log and whatever the JVM prints."""
        return self.folder / "kafka.log"

    @property
    def format_log(self) -> Path:
        """The output of formatting the storage."""
        return self.folder / "format.log"

    @property
    def request_log(self) -> Path:
        """One line a request, when the spec wants it."""
        return self.folder / "kafka-request.log"

    @property
    def recorded(self) -> Path:
        """The folder of the recorder's files, when the spec wants them."""
        return self.folder / "recorded"

    def write(self, spec: SandboxSpec, ports: Sequence[NodePorts], *, zookeeper: str | None = None) -> None:
        """Makes the folder and its configuration files. Raises ``UsageError`` for settings that are the sandbox's own."""
        plugins = {**(recorder_settings(self.recorded) if spec.record else {}), **(GROUP_SETTINGS if spec.groups else {})}
        text = server_properties(
            replace(spec, properties={**plugins, **spec.properties}),
            node_id=self.id,
            ports=ports,
            data=self.data,
            zookeeper=zookeeper,
        )
        self.temporary.mkdir(parents=True)
        self.properties.write_text(text, "ascii")
        logging = logging_text(spec.kafka_version, request_log=spec.request_log)
        self._logging(spec).write_text(logging, "utf-8")

    def log_text(self) -> str:
        """Return what the broker has logged by now."""
        try:
            return self.log.read_text("utf-8", "replace")
        except OSError:
            return ""

    def cluster_id(self) -> str | None:
        """Return the cluster id that a broker in ZooKeeper mode has logged by now."""
        match = _CLUSTER_ID.search(self.log_text())
        return match[1] if match else None

    def format_command(self, spec: SandboxSpec, runtime: Runtime, cluster_id: str) -> list[str]:
        """Formats the storage; Kafka's own tool, because the content of a formatted folder differs by version."""
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.properties)]
        return [*self._jvm(spec, runtime, heap_mb=128), *tool]

    def broker_command(self, spec: SandboxSpec, runtime: Runtime) -> list[str]:
        """Runs the node in the foreground."""
        options = (*spec.java_options, *spec.node_java_options.get(self.id, ()))
        # The nodes of a quorum wait for each other when they stop: they would not end in time to write an archive.
        writes = spec.nodes == 1 and not options and not (spec.record or spec.groups or spec.plugins)
        archive = class_writing_options(runtime, self.folder) if writes else ()
        jvm = self._jvm(spec, runtime, heap_mb=spec.heap_mb)
        return [*jvm, *archive, *options, "kafka.Kafka", str(self.properties)]

    def running(self, spec: SandboxSpec, process: ProcessRef, ports: NodePorts) -> SandboxNode:
        """Return this node as callers see it."""
        return SandboxNode(
            id=self.id,
            process=process,
            port=ports.plaintext,
            log_file=self.log,
            request_log_file=self.request_log if spec.request_log else None,
            recorded_folder=self.recorded if spec.record else None,
        )

    def _logging(self, spec: SandboxSpec) -> Path:
        return self.folder / logging_file_name(spec.kafka_version)

    def _jvm(self, spec: SandboxSpec, runtime: Runtime, *, heap_mb: int) -> list[str]:
        return [
            *jvm_command(runtime, folder=self.folder, temporary=self.temporary, heap_mb=heap_mb),
            *class_reading_options(runtime),
            *logging_options(spec.kafka_version, config=self._logging(spec), request_log=self.request_log),
        ]


def telling_lines(log: Path) -> tuple[str, ...]:
    """Return the lines of a log that state why it ended: four about trouble and the last eight, each cut to 300 letters."""
    try:
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ()
    wanted = [n for n, line in enumerate(lines) if _TROUBLE.search(line)][:4]
    wanted += range(max(0, len(lines) - 8), len(lines))
    return tuple(lines[n][:_LINE_LIMIT] for n in sorted(set(wanted)))


_HEAP_MB: Final = 256
_POLL_S: Final = 0.02
_ANSWER_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperFiles(ServerFiles):
    """Where the ZooKeeper server of the sandbox in ``sandbox_folder`` keeps its things."""

    sandbox_folder: Path
    kafka_version: str

    @property
    def folder(self) -> Path:
        """The folder of all files of this server."""
        return self.sandbox_folder / ZOOKEEPER_FOLDER

    @property
    def configuration(self) -> Path:
        """The server's settings."""
        return self.folder / "zoo.cfg"

    @property
    def log(self) -> Path:
        """The server's log and whatever the JVM prints."""
        return self.folder / "zookeeper.log"

    def write(self, spec: ZooKeeperSpec, *, port: int) -> None:
        """Makes the folder and its configuration files."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        settings = {
            "dataDir": str(self.data),
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
        self.configuration.write_text(properties_text(settings), "ascii")
        self._logging.write_text(logging_text(self.kafka_version, request_log=False), "utf-8")

    def command(self, spec: ZooKeeperSpec, runtime: Runtime) -> list[str]:
        """Runs the server in the foreground."""
        return [
            *jvm_command(runtime, folder=self.folder, temporary=self.temporary, heap_mb=_HEAP_MB),
            # What a sandbox stores need not outlive the machine: waiting for the disk at every write would be for nothing.
            "-Dzookeeper.forceSync=no",
            *logging_options(self.kafka_version, config=self._logging, request_log=None),
            *spec.java_options,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(self.configuration),
        ]

    @property
    def _logging(self) -> Path:
        return self.folder / logging_file_name(self.kafka_version)


def wait_until_serving(port: int, *, deadline: float, check_alive: Callable[[], None]) -> bool:
    """Waits until the server serves clients; ``False`` at ``deadline`` (monotonic). ``check_alive`` is called between looks."""
    while time.monotonic() < deadline:
        check_alive()
        # "This ZooKeeper instance is not currently serving requests", until it is.
        if b"Mode:" in ask(port, b"srvr"):
            return True
        time.sleep(_POLL_S)
    return False


def ask(port: int, word: bytes) -> bytes:
    """The answer to one of ZooKeeper's four letter words; empty when no server answers."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=_ANSWER_S) as connection:
        connection.sendall(word)
        while part := connection.recv(4096):
            answer += part
    return answer
