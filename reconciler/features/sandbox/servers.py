"""The servers of a sandbox on disk and as processes: Kafka's nodes and ZooKeeper, their folders, files and command lines."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import SandboxError
from reconciler.features.sandbox.configuration import has_log4j2, logging_settings, properties_text
from reconciler.features.sandbox.java import Runtime, jvm_command
from reconciler.features.sandbox.spec import SandboxSpec, ZooKeeperSpec

_TROUBLE: Final = re.compile(r"\b(ERROR|FATAL)\b|Exception in thread|^Error: |^(Caused by: )?([\w$]+\.)+\w*(Exception|Error)\b")
_LINE_LIMIT: Final = 300
_CLUSTER_ID: Final = re.compile(r"^cluster\.id=(.+)$", re.MULTILINE)
PORT_TAKEN: Final = "Address already in use"


class PortTakenError(SandboxError):
    """Another process took a port between our look and the broker's bind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFiles:
    """The folder of one server, a node or ZooKeeper, and what is in it."""

    folder: Path
    kafka_version: str

    @property
    def data(self) -> Path:
        """Kafka's ``log.dirs``, ZooKeeper's snapshots and transaction logs."""
        return self.folder / "data"

    @property
    def temporary(self) -> Path:
        """The folder of the JVM's temporary files."""
        return self.folder / "tmp"

    @property
    def settings(self) -> Path:
        """The server's settings."""
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        """The server's log and whatever the JVM prints."""
        return self.folder / "server.log"

    @property
    def request_log(self) -> Path:
        """One line a request, when the spec wants it."""
        return self.folder / "kafka-request.log"

    @property
    def classes(self) -> Path:
        """The archive of classes that a JVM writes when it ends, when it was asked to."""
        return self.folder / "classes.jsa"

    def write(self, settings: Mapping[str, str], *, request_log: bool = False) -> None:
        """Make the folder and its configuration files. Raises ``OSError``."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(properties_text(settings), "ascii")
        logging = logging_settings(self.kafka_version, self.request_log if request_log else None)
        self._logging.write_text(properties_text(logging), "ascii")

    def remove_data(self) -> None:
        """Remove all but the configuration and the logs."""
        for folder in (self.data, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)

    def cluster_id(self) -> str | None:
        """Return the cluster id in a node's data; the first broker of a cluster with ZooKeeper makes it."""
        with contextlib.suppress(OSError):
            match = _CLUSTER_ID.search((self.data / "meta.properties").read_text("utf-8"))
            return match[1] if match else None
        return None

    def format_command(self, runtime: Runtime, cluster_id: str) -> list[str]:
        """Formats the storage; Kafka's own tool, because the content of a formatted folder differs by version."""
        return [*self._jvm(runtime, heap_mb=128), "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.settings)]

    def broker_command(self, spec: SandboxSpec, runtime: Runtime, node_id: int) -> list[str]:
        """Runs the node in the foreground."""
        options = [*spec.java_options, *spec.node_java_options.get(node_id, ())]
        if writes_classes(spec, runtime):
            options += [f"-XX:ArchiveClassesAtExit={self.classes}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        return [*self._jvm(runtime, heap_mb=spec.heap_mb), *options, "kafka.Kafka", str(self.settings)]

    def zookeeper_command(self, spec: ZooKeeperSpec, runtime: Runtime) -> list[str]:
        """Runs the ZooKeeper server in the foreground. A sandbox need not outlive the machine, so it waits for no disk."""
        options = ("-Dzookeeper.forceSync=no", *spec.java_options)
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [*self._jvm(runtime, heap_mb=256), *options, main, str(self.settings)]

    @property
    def _logging(self) -> Path:
        return self.folder / "log4j.properties"

    def _jvm(self, runtime: Runtime, *, heap_mb: int) -> list[str]:
        option = f"log4j.configuration={self._logging.as_uri()}"
        if has_log4j2(self.kafka_version):
            option = f"log4j2.configurationFile={self._logging}"
        return [*jvm_command(runtime, folder=self.folder, temporary=self.temporary, heap_mb=heap_mb), f"-D{option}"]


def node_files(folder: Path, spec: SandboxSpec) -> dict[int, ServerFiles]:
    """Return the files of each node of the sandbox in ``folder``, by its id."""
    return {n: ServerFiles(folder=folder / f"node-{n}", kafka_version=spec.kafka_version) for n in range(1, spec.nodes + 1)}


def zookeeper_files(folder: Path, kafka_version: str) -> ServerFiles:
    """Return the files of the ZooKeeper server of the sandbox in ``folder``."""
    return ServerFiles(folder=folder / "zookeeper", kafka_version=kafka_version)


def writes_classes(spec: SandboxSpec, runtime: Runtime) -> bool:
    """Whether a broker writes the archive of classes when it ends, which takes some seconds.

    The nodes of a quorum wait for each other when they stop: they would not end in time.
    """
    is_plain = spec.nodes == 1 and not (spec.java_options or spec.node_java_options or spec.plugins)
    return is_plain and not runtime.class_archive.is_file()


def failure(what: str, log: Path) -> SandboxError:
    """The error that a server ended: with lines of its log, four about trouble and the last eight."""
    text = log_text(log)
    lines = [line for line in text.splitlines() if line.strip()]
    wanted = [n for n, line in enumerate(lines) if _TROUBLE.search(line)][:4]
    wanted += range(max(0, len(lines) - 8), len(lines))
    shown = "\n".join(f"  {lines[n][:_LINE_LIMIT]}" for n in sorted(set(wanted)))
    kind = PortTakenError if PORT_TAKEN in text else SandboxError
    return kind(f"{what}. Its log, {log}, ends with:\n{shown}")


def log_text(log: Path) -> str:
    """Return what a server has logged by now."""
    with contextlib.suppress(OSError):
        return log.read_text("utf-8", "replace")
    return ""
