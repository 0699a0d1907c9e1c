"""``kafka-quotas sandbox``: a real Kafka on this machine, in the background or for the length of one command."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.model import display_name, escaped
from reconciler.render import Line, Style, line

if TYPE_CHECKING:
    from reconciler.features.sandbox import Sandbox, SandboxSpec, Status

_ACTIONS: Final = {
    "start": (
        "Start a Kafka in the background",
        "Start a Kafka that runs in the background until 'sandbox stop'. Print its address when it runs already.",
    ),
    "status": ("Print addresses and log files", "Print where the Kafka runs. Exit 0 when it runs, else 1."),
    "stop": ("Stop the Kafka", "Stop the Kafka of 'sandbox start'. A temporary folder is deleted, one of --folder stays."),
    "run": (
        "Run a command beside a Kafka",
        "Start a Kafka, run COMMAND with BOOTSTRAP_SERVER set, stop the Kafka, and exit with COMMAND's exit code.",
    ),
    "demo": (
        "Run every step: validate, plan, backtest, apply",
        "Start a Kafka, show every step from manifests to drift with real clients, and stop the Kafka.",
    ),
}
"""Each action with its summary and its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxArguments(OutputArguments):
    """The command line of ``sandbox``."""

    action: str
    nodes: int = 1
    kafka_version: str = ""
    zookeeper: bool = False
    chroot: str = ""
    user: tuple[str, ...] = ()
    request_log: bool = False
    record: bool = False
    groups: bool = False
    folder: Path | None = None
    program: tuple[str, ...] = ()
    seconds: float = 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``start``, ``status``, ``stop``, ``run`` and ``demo``, with their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", prog=parser.prog, title="Actions")
    for name, (summary, description) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=description, add_help=False)
        if name in ("start", "run"):
            _add_spec_options(action)
        if name == "start":
            action.add_argument(
                "--folder", type=Path, metavar="DIR", help="keep data and logs here [default: a temporary folder]"
            )
        if name == "demo":
            action.add_argument(
                "--seconds",
                type=float,
                default=20.0,
                metavar="S",
                help="let the clients send for this time [default: %(default)g]",
            )
        options.add_output_options(action, formats=("text", "json") if name in ("start", "status") else ("text",))
        if name == "run":
            action.add_argument("program", nargs="+", metavar="COMMAND", help="the command and its arguments, after --")
    options.add_help_option(parser)


def _add_spec_options(parser: argparse.ArgumentParser) -> None:
    from reconciler.features.sandbox import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_VERSIONS

    parser.add_argument(
        "--nodes", type=int, default=1, choices=(1, 3), metavar="N", help="start 1 or 3 nodes [default: %(default)s]"
    )
    parser.add_argument(
        "--kafka-version",
        default="",
        choices=KAFKA_VERSIONS,
        metavar="V",
        help=f"run {', '.join(KAFKA_VERSIONS[:-1])} or {KAFKA_VERSIONS[-1]} [default: {DEFAULT_KAFKA_VERSION}, with --zookeeper "
        f"{ZOOKEEPER_VERSIONS[0]}]",
    )
    parser.add_argument(
        "--zookeeper",
        action="store_true",
        help=f"keep the metadata in ZooKeeper, as clusters up to 3.9 can, only with {' or '.join(ZOOKEEPER_VERSIONS)}",
    )
    parser.add_argument("--chroot", default="", metavar="/PATH", help="with --zookeeper: put all nodes below this one")
    parser.add_argument(
        "--user", action="append", default=[], metavar="NAME", help="create a user who can log in (SASL/PLAIN) (repeatable)"
    )
    parser.add_argument("--request-log", action="store_true", help="log every request, as backtest reads it")
    parser.add_argument(
        "--record", action="store_true", help="record each client's traffic by second with the recorder. Needs a JDK"
    )
    parser.add_argument("--groups", action="store_true", help="run brokers with the plugin of groups. Needs a JDK")


def parse(namespace: argparse.Namespace) -> SandboxArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(SandboxArguments, namespace)


def run(args: SandboxArguments) -> int:
    """Run one of the five actions. The exit code is 0; ``status`` and ``run`` document theirs."""
    actions = {"start": _start, "status": _status, "stop": _stop, "run": _run, "demo": _demo}
    return actions[args.action](args)


def _start(args: SandboxArguments) -> int:
    from reconciler.features.sandbox import sandbox_status, start_sandbox, status_to_json

    _, started = start_sandbox(_spec(args), folder=args.folder, progress=output.StderrProgress(args))
    status = sandbox_status()
    if not started and not args.quiet:
        output.tell("a sandbox of this kind is running already")
    output.print_result(args, document=lambda: status_to_json(status), lines=lambda: status_lines(status))
    return exit_codes.DONE


def _status(args: SandboxArguments) -> int:
    from reconciler.features.sandbox import Condition, sandbox_status, status_to_json

    status = sandbox_status()
    output.print_result(args, document=lambda: status_to_json(status), lines=lambda: status_lines(status))
    return exit_codes.DONE if status.condition is Condition.RUNNING else exit_codes.NOT_DONE


def _stop(args: SandboxArguments) -> int:
    from reconciler.features.sandbox import stop_sandbox

    output.print_lines(args, stopped_lines(stop_sandbox()))
    return exit_codes.DONE


def _run(args: SandboxArguments) -> int:
    from reconciler.features.sandbox.runs import run_in_sandbox

    command = args.program[1:] if args.program[0] == "--" else args.program
    return run_in_sandbox(_spec(args), command, progress=output.StderrProgress(args))


def _demo(args: SandboxArguments) -> int:
    from reconciler.features.sandbox.demo import Screen, run_demo

    def show(*lines: Line) -> None:
        output.print_lines(args, lines)

    run_demo(
        Screen(
            heading=lambda text: show(line(), line((text, Style.STRONG)), line()),
            say=lambda text: show(line(text)),
            quote=lambda text: show(*(line((f"    {row}", Style.FAINT)) for row in text.splitlines()), line()),
            command=lambda text: show(line(), line((f"$ {text}", Style.CREATE))),
        ),
        seconds=args.seconds,
        progress=output.StderrProgress(args),
    )
    return exit_codes.DONE


def _spec(args: SandboxArguments) -> SandboxSpec:
    from reconciler.features.sandbox.runs import sandbox_spec

    return sandbox_spec(
        kafka_version=args.kafka_version,
        nodes=args.nodes,
        users=args.user,
        request_log=args.request_log,
        record=args.record,
        groups=args.groups,
        zookeeper=args.zookeeper,
        chroot=args.chroot,
    )


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
