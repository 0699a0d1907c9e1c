"""The sandbox's state in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.model import display_name, escaped
from reconciler.render import Line, Style, line
from reconciler.sandbox import Condition, Status

if TYPE_CHECKING:
    from reconciler.sandbox import Sandbox


def status_lines(status: Status) -> list[Line]:
    """Where it runs and how to use it, or that it does not run."""
    if status.sandbox is None:
        return [line("no sandbox is running; start one with: kafka-quotas sandbox start")]
    return [_headline(status, status.sandbox), *_details(status.sandbox), line(), line("stop it with: kafka-quotas sandbox stop")]


def stopped_lines(before: Status) -> list[Line]:
    """What ``stop`` found and ended."""
    if before.sandbox is None:
        return [line("no sandbox was running")]
    if before.condition is Condition.BROKEN:
        gone = len(before.sandbox.processes) - len(before.alive) - before.zookeeper_alive
        return [
            line(f"stopped what was left of Kafka {before.sandbox.kafka_version} ({gone} of its processes had ended already)")
        ]
    return [line(f"stopped Kafka {before.sandbox.kafka_version} and removed {escaped(str(before.sandbox.folder))}")]


def _headline(status: Status, sandbox: Sandbox) -> Line:
    beside = " with ZooKeeper" if sandbox.zookeeper else ""
    kind = f"Kafka {sandbox.kafka_version}{beside}, {len(sandbox.nodes)} {'node' if len(sandbox.nodes) == 1 else 'nodes'}"
    if status.condition is Condition.RUNNING:
        return line((f"{kind}, is running", Style.GOOD))
    gone = [f"node {node.id}" for node in sandbox.nodes if node.id not in status.alive]
    if sandbox.zookeeper and not status.zookeeper_alive:
        gone.append("ZooKeeper")
    return line((f"{kind}, is broken: the process of {', '.join(gone)} has ended", Style.BAD))


def _details(sandbox: Sandbox) -> list[Line]:
    rows = [("bootstrap server", sandbox.bootstrap_servers)]
    if sandbox.sasl_bootstrap_servers:
        rows.append(("with a login", f"{sandbox.sasl_bootstrap_servers} (SASL_PLAINTEXT, PLAIN)"))
    rows += [
        (f"  as {display_name(user.name)}", f"--command-config {escaped(str(sandbox.client_properties(user.name)))}")
        for user in sandbox.users
    ]
    if sandbox.zookeeper_server:
        rows.append(("ZooKeeper", sandbox.zookeeper_server.connection))
    rows += [("cluster id", sandbox.cluster_id), ("folder", escaped(str(sandbox.folder)))]
    if sandbox.zookeeper_server:
        rows.append(("log of ZooKeeper", escaped(str(sandbox.zookeeper_server.log_file))))
    for node in sandbox.nodes:
        rows.append((f"log of node {node.id}", escaped(str(node.log_file))))
        if node.request_log_file:
            rows.append((f"requests to node {node.id}", escaped(str(node.request_log_file))))
    width = max(len(name) for name, _ in rows)
    return [line(f"  {name:<{width}}  {value}") for name, value in rows]
