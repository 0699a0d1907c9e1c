"""A cluster of three nodes, each broker and controller, whose nodes are killed, stopped, continued and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reconciler.features.sandbox import process
from reconciler.features.sandbox.clients import admin_client
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.java import runtime_for
from reconciler.features.sandbox.launch import wait_until_ready
from reconciler.features.sandbox.process import Guard, guarding
from reconciler.features.sandbox.servers import ServerFiles, node_files
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support.polling import wait_until

_QUORUM_STATE = "__cluster_metadata-0/quorum-state"


class ThreeNodes:
    """The running cluster. Nodes are named by their ids, 1 to 3; use ``three_nodes``."""

    def __init__(self, sandbox: Sandbox, spec: SandboxSpec, guard: Guard) -> None:
        self._guard = guard
        self.ports = {node.id: node.port for node in sandbox.nodes}
        self._sandbox = sandbox
        self._spec = spec
        self._processes = {node.id: node.process for node in sandbox.nodes}
        self._stopped: set[int] = set()

    def servers(self, *nodes: int) -> str:
        """A bootstrap string of these nodes; of those that run, when none is given."""
        return ",".join(f"127.0.0.1:{self.ports[node]}" for node in nodes or self.up)

    @property
    def up(self) -> tuple[int, ...]:
        """The nodes that run."""
        return tuple(node for node in self.ports if node not in self._stopped and process.is_alive(self._processes[node]))

    def leader(self) -> int:
        """Whom all nodes that run have noted as the leader of the metadata quorum, be it one that runs no more; 0: they differ.

        From their own files: a request for it is forwarded to the leader, and hangs while that stands still.
        """
        noted = {json.loads((self._files(node).data / _QUORUM_STATE).read_text("utf-8"))["leaderId"] for node in self.up}
        return int(noted.pop()) if len(noted) == 1 else 0

    def active_controller(self) -> int:
        """That leader, once it is one that runs."""

        def leader() -> int:
            found = self.leader()
            return found if found in self.up else 0

        return wait_until(leader)

    def listed(self) -> frozenset[int]:
        """The brokers that a running one names to clients."""
        from kafka.protocol.metadata import MetadataRequest

        return frozenset(int(broker.node_id) for broker in self._ask(MetadataRequest(topics=[])).brokers)

    def leaders_of(self, topic: str) -> tuple[int, ...]:
        """The leader of each partition, as a running broker names it. -1: none."""
        from kafka.protocol.metadata import MetadataRequest

        topics = self._ask(MetadataRequest[1]([topic])).topics
        return tuple(int(partition[2]) for each in topics for partition in each[3])

    @property
    def request_logs(self) -> dict[int, Path]:
        """The request log of each node, of a spec with ``request_log``."""
        return {node.id: node.request_log_file for node in self._sandbox.nodes if node.request_log_file is not None}

    def kill(self, node: int) -> None:
        """SIGKILL, and gone when this returns."""
        self._stopped.discard(node)
        os.kill(self._processes[node].pid, signal.SIGKILL)
        assert process.wait_ended([self._processes[node]], within_s=30)

    def stop(self, node: int) -> None:
        """SIGSTOP: it holds its connections and says nothing."""
        self._stopped.add(node)
        os.kill(self._processes[node].pid, signal.SIGSTOP)

    def go_on(self, node: int) -> None:
        """SIGCONT."""
        self._stopped.discard(node)
        os.kill(self._processes[node].pid, signal.SIGCONT)

    def mend(self) -> None:
        """Every node runs, is known to the others, and answers; what was killed is started again on its own data."""
        for node in tuple(self._stopped):
            self.go_on(node)
        runtime = runtime_for(self._sandbox.kafka_version)
        for node in self.ports.keys() - set(self.up):
            files = self._files(node)
            self._processes[node] = process.spawn(files.broker_command(self._spec, runtime, node), output=files.log)
            self._guard.watch(self._processes[node])
        assert wait_until_ready(lambda: self._sandbox.cluster_id, self.ports, check_alive=self._check_alive)

    def bytes_waiting(self, node: int) -> int:
        """What the node's sockets hold that it has not read, for a node that is stopped: requests have arrived there."""
        properties = self._files(node).settings.read_text("ascii").replace("\\", "").splitlines()
        (listening,) = (line for line in properties if line.startswith("listeners="))
        ports = {int(address.rpartition(":")[2]) for address in listening.split(",")}
        tables = [Path(f"/proc/net/{name}").read_text("ascii").splitlines()[1:] for name in ("tcp", "tcp6")]
        rows = [line.split() for table in tables for line in table]
        return sum(int(row[4].partition(":")[2], 16) for row in rows if int(row[1].partition(":")[2], 16) in ports)

    def end(self) -> None:
        """No process of any node is left."""
        process.end([*self._processes.values()], grace_s=1.0)

    def _ask(self, request: Any) -> Any:
        """Send a request to one that runs: the library would ask any that is listed."""
        with admin_client(self.servers(self.up[0])) as client:
            return client._manager.run(client._manager.send, request, self.up[0])

    def _files(self, node: int) -> ServerFiles:
        return node_files(self._sandbox.folder, self._spec)[node]

    def _check_alive(self) -> None:
        dead = [node for node, ref in self._processes.items() if not process.is_alive(ref)]
        assert not dead, f"nodes {dead} ended while they started"


@contextlib.contextmanager
def three_nodes(spec: SandboxSpec) -> Iterator[ThreeNodes]:
    """Start them; afterwards nothing is left."""
    with running(spec) as sandbox, guarding(sandbox.folder) as guard:
        nodes = ThreeNodes(sandbox, spec, guard)
        try:
            yield nodes
        finally:
            nodes.end()
