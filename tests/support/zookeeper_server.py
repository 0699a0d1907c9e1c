"""A ZooKeeper server alone, with the settings a test wants; it can be killed and started again with its data and port."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.features.sandbox import process
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports, zookeeper_settings
from reconciler.features.sandbox.jars import ZOOKEEPER_VERSIONS
from reconciler.features.sandbox.java import runtime_for
from reconciler.features.sandbox.launch import await_zookeeper
from reconciler.features.sandbox.process import Guard, ProcessRef, guarding
from reconciler.features.sandbox.servers import PortTakenError, ServerFiles, zookeeper_files
from reconciler.features.sandbox.spec import ZooKeeperSpec
from tests.support.polling import wait_until


@dataclass(kw_only=True)
class ZooKeeperServer:
    """The server on ``port``; ``spec`` may be changed between a kill and a start."""

    files: ServerFiles
    port: int
    spec: ZooKeeperSpec
    guard: Guard
    process: ProcessRef | None = field(default=None)

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{LOOPBACK}:{self.port}"

    def write(self) -> None:
        """Write its settings."""
        self.files.write(zookeeper_settings(self.spec, port=self.port, data=self.files.data))

    def start(self) -> None:
        """Start it and wait until it serves."""
        command = self.files.zookeeper_command(self.spec, runtime_for(self.files.kafka_version))
        self.process = process.spawn(command, output=self.files.log)
        self.guard.watch(self.process)
        await_zookeeper(self.files, self.process, port=self.port)

    def alone_of_three(self, *, local_sessions: bool) -> None:
        """Start it again as one of an ensemble whose two other servers are away: it serves reads only.

        Since 3.7 that is of use only with local sessions; without them nobody can connect.
        """
        self.kill()
        own, *others = (free_ports(6)[2 * n : 2 * n + 2] for n in range(3))
        members = {f"server.{n}": f"{LOOPBACK}:{ports[0]}:{ports[1]}" for n, ports in enumerate((own, *others), start=1)}
        timing = {"initLimit": "5", "syncLimit": "2", "localSessionsEnabled": "true" if local_sessions else "false"}
        self.spec = ZooKeeperSpec(
            properties={**self.spec.properties, **members, **timing}, java_options=("-Dreadonlymode.enabled=true",)
        )
        self.write()
        (self.files.data / "myid").write_text("1")
        self.start()

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        ended = self.process
        assert ended is not None
        process.end([ended], grace_s=0.0)
        wait_until(lambda: not process.is_alive(ended))


@contextlib.contextmanager
def zookeeper_server(
    *,
    properties: Mapping[str, str] | None = None,
    java_options: tuple[str, ...] = (),
    heap_mb: int | None = None,
    version: str = ZOOKEEPER_VERSIONS[0],
) -> Iterator[ZooKeeperServer]:
    """Start one; it is ended with the block. A port that another process takes is replaced, three times in all."""
    heap = () if heap_mb is None else (f"-Xmx{heap_mb}m",)
    spec = ZooKeeperSpec(properties=properties or {}, java_options=(*heap, *java_options))
    with tempfile.TemporaryDirectory() as folder, guarding(Path(folder) / "guarded") as guard:
        files = zookeeper_files(Path(folder), version)
        server = ZooKeeperServer(files=files, port=0, spec=spec, guard=guard)
        try:
            _start_on_free_port(server, attempts=3)
            yield server
        finally:
            if server.process is not None:
                process.end([server.process], grace_s=0.0)


def _start_on_free_port(server: ZooKeeperServer, *, attempts: int) -> None:
    [server.port] = free_ports(1)
    server.write()
    try:
        server.start()
    except PortTakenError:
        if attempts == 1:
            raise
        _start_on_free_port(server, attempts=attempts - 1)
