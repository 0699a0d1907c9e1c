"""``kafka-quotas sandbox``: a real Kafka on this machine, until Ctrl-C."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import output
from reconciler.cli.declaration import option
from reconciler.cli.results import Result
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_VERSIONS
from reconciler.model import display_name, escaped
from reconciler.render import Line, Style, line
from reconciler.text import count_of

if TYPE_CHECKING:
    from reconciler.features.sandbox.spec import Sandbox, SandboxSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxArguments:
    """The command line of ``sandbox run``."""

    nodes: int = option("--nodes", default=1, choices=(1, 3), metavar="N", help="start 1 or 3 nodes [default: 1]")
    kafka_version: str = option(
        "--kafka-version",
        default="",
        choices=KAFKA_VERSIONS,
        metavar="V",
        help=f"run {', '.join(KAFKA_VERSIONS[:-1])} or {KAFKA_VERSIONS[-1]} [default: {DEFAULT_KAFKA_VERSION}, with --zookeeper "
        f"{ZOOKEEPER_VERSIONS[0]}]",
    )
    zookeeper: bool = option(
        "--zookeeper",
        help=f"keep the metadata in ZooKeeper, as clusters up to 3.9 can, only with {' or '.join(ZOOKEEPER_VERSIONS)}",
    )
    user: tuple[str, ...] = option("--user", metavar="NAME", help="create a user who can log in (SASL/PLAIN) (repeatable)")
    request_log: bool = option("--request-log", help="log every request, as backtest reads it")

    def spec(self) -> SandboxSpec:
        """The Kafka that these options describe; every user gets a random password. Raises ``UsageError``."""
        from reconciler.features.sandbox.spec import Login, SandboxSpec, ZooKeeperSpec

        return SandboxSpec(
            kafka_version=self.kafka_version,
            nodes=self.nodes,
            users=tuple(Login(name=name, password=secrets.token_urlsafe(16)) for name in self.user),
            request_log=self.request_log,
            zookeeper=ZooKeeperSpec() if self.zookeeper else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoArguments:
    """The command line of ``sandbox demo``."""

    seconds: float = option("--seconds", default=20.0, metavar="S", help="let the clients send for this time [default: 20]")


def run(args: SandboxArguments) -> Result:
    """Run a Kafka until an interrupt. Raises ``SandboxError`` when it does not start, or ends before."""
    from reconciler.features.sandbox.cluster import serve_sandbox

    with output.LiveProgress() as progress:
        serve_sandbox(args.spec(), lambda sandbox: output.print_lines(sandbox_lines(sandbox)), progress=progress)
    return Result()


def demo(args: DemoArguments) -> Result:
    """Show every step with real clients."""
    from reconciler.features.sandbox.demo import run_demo

    with output.LiveProgress() as progress:
        run_demo(seconds=args.seconds, progress=progress)
    return Result()


def sandbox_lines(sandbox: Sandbox) -> list[Line]:
    """Return the lines about where it runs and how to stop it."""
    beside = " with ZooKeeper" if sandbox.zookeeper else ""
    nodes = count_of(len(sandbox.nodes), "node")
    running = line((f"Kafka {sandbox.kafka_version}{beside}, {nodes}, is running", Style.GOOD))
    return [running, *_details(sandbox), line(), line("Stop it with Ctrl-C. It then deletes its folder.")]


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
