"""The ZooKeeper server of a sandbox: its folder, its files, its JVM command line, and whether it answers."""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.features.sandbox.configuration import logging_file_name, logging_options, logging_text, properties_text
from reconciler.features.sandbox.java import Runtime, jvm_command
from reconciler.features.sandbox.ports import LOOPBACK
from reconciler.features.sandbox.spec import ZooKeeperSpec

FOLDER: Final = "zookeeper"
"""Its folder's name in a sandbox's folder."""

_HEAP_MB: Final = 256
_POLL_S: Final = 0.02
_ANSWER_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperFiles:
    """Where the ZooKeeper server of the sandbox in ``sandbox_folder`` keeps its things."""

    sandbox_folder: Path
    kafka_version: str

    @property
    def folder(self) -> Path:
        """Everything of this server is below."""
        return self.sandbox_folder / FOLDER

    @property
    def configuration(self) -> Path:
        """The server's settings."""
        return self.folder / "zoo.cfg"

    @property
    def data(self) -> Path:
        """Snapshots and transaction logs."""
        return self.folder / "data"

    @property
    def temporary(self) -> Path:
        """What the JVM uses for temporary files."""
        return self.folder / "tmp"

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

    def remove_data(self) -> None:
        """Everything but the configuration and the log."""
        for folder in (self.data, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)

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
    with (
        contextlib.suppress(OSError),
        socket.create_connection((LOOPBACK, port), timeout=_ANSWER_S) as connection,
    ):
        connection.sendall(word)
        while part := connection.recv(4096):
            answer += part
    return answer
