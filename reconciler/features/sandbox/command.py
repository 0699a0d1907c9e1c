"""``kafka-quotas sandbox``: a real Kafka on this machine, in the background or for the length of one command."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, output
from reconciler.cli.declaration import argument, group, option
from reconciler.cli.option_groups import format_option
from reconciler.cli.results import Result
from reconciler.errors import UsageError
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_VERSIONS
from reconciler.model import display_name, escaped
from reconciler.render import Line, Style, line

if TYPE_CHECKING:
    from reconciler.features.sandbox import Sandbox, SandboxSpec, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """Which Kafka runs, and what it records."""

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
    chroot: str = option("--chroot", default="", metavar="/PATH", help="with --zookeeper: put all nodes below this one")
    user: tuple[str, ...] = option("--user", metavar="NAME", help="create a user who can log in (SASL/PLAIN) (repeatable)")
    request_log: bool = option("--request-log", help="log every request, as backtest reads it")
    record: bool = option("--record", help="record each client's traffic by second with the recorder. Needs a JDK")
    groups: bool = option("--groups", help="run brokers with the plugin of groups. Needs a JDK")

    def spec(self) -> SandboxSpec:
        """The Kafka that these options describe; every user gets a random password. Raises ``UsageError``."""
        from reconciler.features.sandbox import Login, SandboxSpec, ZooKeeperSpec

        if self.chroot and not self.zookeeper:
            raise UsageError("--chroot goes with --zookeeper: it is the node below which everything is kept there")
        return SandboxSpec(
            kafka_version=self.kafka_version,
            nodes=self.nodes,
            users=tuple(Login(name=name, password=secrets.token_urlsafe(16)) for name in self.user),
            request_log=self.request_log,
            record=self.record,
            groups=self.groups,
            zookeeper=self.zookeeper,
            zookeeper_server=ZooKeeperSpec(chroot=self.chroot),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartArguments:
    """The command line of ``sandbox start``."""

    kafka: KafkaOptions = group(KafkaOptions)
    folder: Path | None = option("--folder", metavar="DIR", help="keep data and logs here [default: a temporary folder]")
    format: str = format_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusArguments:
    """The command line of ``sandbox status``."""

    format: str = format_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class StopArguments:
    """The command line of ``sandbox stop``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBesideArguments:
    """The command line of ``sandbox run``."""

    kafka: KafkaOptions = group(KafkaOptions)
    program: tuple[str, ...] = argument("COMMAND", nargs="+", help="the command and its arguments, after --")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoArguments:
    """The command line of ``sandbox demo``."""

    seconds: float = option("--seconds", default=20.0, metavar="S", help="let the clients send for this time [default: 20]")


def start(args: StartArguments) -> Result:
    """Start one in the background, unless it runs already."""
    from reconciler.features.sandbox import sandbox_status, start_sandbox

    _, started = start_sandbox(args.kafka.spec(), folder=args.folder, progress=output.StderrProgress())
    if not started and not output.is_quiet():
        output.tell("a sandbox of this kind is running already")
    return _result(sandbox_status(), exit_codes.DONE)


def status(args: StatusArguments) -> Result:
    """Where it runs; exit 1 when it does not."""
    from reconciler.features.sandbox import Condition, sandbox_status

    del args
    state = sandbox_status()
    return _result(state, exit_codes.DONE if state.condition is Condition.RUNNING else exit_codes.NOT_DONE)


def _result(status: Status, code: int) -> Result:
    from reconciler.features.sandbox.background import SANDBOX

    return Result(exit=code, view=lambda: status_lines(status), document=lambda: SANDBOX.write(status))


def stop(args: StopArguments) -> Result:
    """Stop it."""
    from reconciler.features.sandbox import stop_sandbox

    del args
    before = stop_sandbox()
    return Result(view=lambda: stopped_lines(before))


def run_beside(args: RunBesideArguments) -> Result:
    """Run a command beside one; the exit code is the command's."""
    from reconciler.features.sandbox.cluster import run_in_sandbox

    program = args.program[1:] if args.program[0] == "--" else args.program
    return Result(exit=run_in_sandbox(args.kafka.spec(), program, progress=output.StderrProgress()))


def demo(args: DemoArguments) -> Result:
    """Show every step with real clients."""
    from reconciler.features.sandbox.demo import Screen, run_demo

    def show(*lines: Line) -> None:
        output.print_lines(lines)

    run_demo(
        Screen(
            heading=lambda text: show(line(), line((text, Style.STRONG)), line()),
            say=lambda text: show(line(text)),
            quote=lambda text: show(*(line((f"    {row}", Style.FAINT)) for row in text.splitlines()), line()),
            command=lambda text: show(line(), line((f"$ {text}", Style.CREATE))),
        ),
        seconds=args.seconds,
        progress=output.StderrProgress(),
    )
    return Result()


def status_lines(status: Status) -> list[Line]:
    """Where it runs and how to use it, or that it does not run."""
    if status.sandbox is None:
        return [line("no sandbox is running. Start one with: kafka-quotas sandbox start")]
    return [_headline(status, status.sandbox), *_details(status.sandbox), line(), line("stop it with: kafka-quotas sandbox stop")]


def stopped_lines(before: Status) -> list[Line]:
    """What ``stop`` found and ended."""
    from reconciler.features.sandbox import Condition

    if before.sandbox is None:
        return [line("no sandbox was running")]
    if before.condition is Condition.BROKEN:
        gone = len(before.sandbox.processes) - len(before.alive) - before.zookeeper_alive
        return [
            line(f"stopped what was left of Kafka {before.sandbox.kafka_version} ({gone} of its processes had ended already)")
        ]
    done = "kept" if before.sandbox.keeps_folder else "removed"
    return [line(f"stopped Kafka {before.sandbox.kafka_version} and {done} {escaped(str(before.sandbox.folder))}")]


def _headline(status: Status, sandbox: Sandbox) -> Line:
    from reconciler.features.sandbox import Condition

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
        if node.recorded_folder:
            rows.append((f"recorded by node {node.id}", escaped(str(node.recorded_folder))))
    width = max(len(name) for name, _ in rows)
    return [line(f"  {name:<{width}}  {value}") for name, value in rows]
