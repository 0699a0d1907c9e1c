"""Entry point: the parser, the dispatch table, and the one place where errors become exit codes."""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from reconciler import errors
from reconciler.cli import exit_codes, options
from reconciler.cli.parser import Parser
from reconciler.render import Sink

if TYPE_CHECKING:
    from reconciler.cli.diagnosis import Diagnosis

COMMAND_GROUPS: Final = {
    "Get started": {
        "demo": "Run every step on a local Kafka: validate, plan, backtest, apply",
        "init": "Create a repository of manifests and CI workflows",
        "import": "Convert the quota files of other tools into manifests",
        "export": "Write a live cluster's quotas as manifests or a snapshot",
        "sandbox": "Run a local Kafka",
    },
    "Check a change": {
        "validate": "Check manifests without a cluster",
        "plan": "Show the changes that apply would make",
        "backtest": "Replay recorded traffic against current and proposed quotas",
        "simulate": "Judge recorded traffic without a broker, or with more",
        "record": "Record traffic from brokers' metrics pages as a service",
        "compact": "Sum up recorded traffic by client and second",
        "traffic": "Check rows of a producer of recorded traffic",
        "render": "Print a saved plan in another format",
    },
    "Change a cluster": {
        "apply": "Change a cluster's quotas to match the manifests, and verify",
        "revert": "Restore the quotas from before a run, and verify",
        "alter": "Change the quotas of one entity by hand, and verify",
        "run": "Watch manifests and a cluster as a service",
    },
    "Inspect a cluster": {
        "describe": "Print quotas as a cluster has them",
        "resolve": "Show which limits apply to a client, and why",
        "why": "Explain an incident: who filled which quota, and who set it",
        "headroom": "Show how near clients are to their limits now",
        "drift": "Compare a cluster with the manifests and the last apply",
        "report": "Write one page about every cluster",
        "rules": "Write Prometheus rules and a Grafana dashboard of the limits",
        "doctor": "Check manifests, cluster and machine, or traffic",
    },
    "Pull requests and CI": {
        "comment": "Post and update the comment on a pull request or merge request",
        "clusters": "List clusters, and which of them a change affects",
        "verify-ref": "Ask GitHub which run stored a git reference",
    },
    "Reference": {
        "explain": "Explain a finding, a guard or a class of drift",
        "schema": "Print the JSON Schema of a document",
        "completion": "Print the completion script for a shell",
    },
}
"""Command names and their one-line help, so that ``--help`` imports no command."""

COMMANDS: Final = {name: summary for commands in COMMAND_GROUPS.values() for name, summary in commands.items()}

_MODULES: Final = {"import": "import_quotas", "verify-ref": "verify_ref"}
"""The modules of commands that cannot have the command's own name."""

_SHORT: Final = frozenset({"validate", "plan", "apply", "revert", "drift", "describe", "alter", "resolve", "report"})


_OF_OTHER_TOOLS: Final = frozenset({"--list", "list", "--describe", "--alter"})
"""Operations of KIP-546's tools, in the place of a command."""

_SERVICES: Final = frozenset({"run", "record"})
"""Commands that run until a signal, and write their own log."""

_NEED_A_READER: Final = frozenset({"apply", "revert", "alter", "demo"})
"""Commands that write to a cluster: these stop, or report it, when nothing reads the plan or the result."""

_CI: Final = (
    "CI", "GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS", "TF_BUILD", "GITLAB_CI", "TEAMCITY_VERSION", "TRAVIS",
    "BUILDKITE", "CIRCLECI", "JENKINS_URL", "APPVEYOR", "BITBUCKET_BUILD_NUMBER", "CODEBUILD_BUILD_ID", "DRONE", "WOODPECKER",
)  # fmt: skip
"""Variables that CI systems set for every step. Azure Pipelines, TeamCity and Jenkins do not set ``CI``."""


def build_parser(command: str | None, *, kind: type[argparse.ArgumentParser] = Parser) -> argparse.ArgumentParser:
    """The whole parser; only ``command`` (if any) gets its options, because only its module is imported.

    A ``Parser`` has no other command than this one, which saves the time to make them.
    """
    parser = kind(
        prog="kafka-quotas",
        description="Kafka client quotas as YAML in git: validate, plan, backtest, apply, verify.",
        add_help=False,
    )
    options.add_program_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog=parser.prog, parser_class=kind)
    known: Collection[str] = COMMANDS
    if isinstance(parser, Parser):
        parser.groups = COMMAND_GROUPS
        known = () if command is None else (command,)
    for name in known:
        summary = COMMANDS[name]
        sub = commands.add_parser(name, help=summary, description=f"{summary}.", add_help=False)
        if name == command:
            _module(name).add_arguments(sub)
    return parser


def _module(command: str) -> Any:
    return importlib.import_module(f"reconciler.cli.commands.{_MODULES.get(command, command)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; usage errors and ``--help`` leave through ``SystemExit``."""
    if sys.stdout is None:  # Python's way of saying that file descriptor 1 is closed
        _say("standard output is closed: there is nowhere to print a result. Nothing was done")
        return exit_codes.NOT_DONE
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or pipe that cannot spell a name shows its escape; it is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    with _through_sinks() as sinks:
        return _run(list(sys.argv[1:] if argv is None else argv), sinks)


@contextlib.contextmanager
def _through_sinks() -> Iterator[Sequence[Sink]]:
    """Let everything that is printed inside, tracebacks and usage errors too, pass through a ``Sink``."""
    breaks = ci_reads(os.environ)
    out, err = sys.stdout, sys.stderr
    sinks = (Sink(out, breaks=breaks), Sink(err, breaks=breaks))
    sys.stdout, sys.stderr = (cast("TextIO", sink) for sink in sinks)
    try:
        yield sinks
    finally:
        sys.stdout, sys.stderr = out, err


def ci_reads(environ: Mapping[str, str]) -> bool:
    """Whether a CI system reads the output and obeys commands in it."""
    return any(environ.get(name, "").lower() not in {"", "0", "false"} for name in _CI)


def _run(arguments: list[str], sinks: Sequence[Sink]) -> int:
    command = command_of(arguments)
    if command is None and _OF_OTHER_TOOLS & set(arguments):
        from reconciler.cli.kip_lines import right_command

        build_parser(None).error(right_command(arguments))
    args = build_parser(command).parse_args(arguments)
    for sink in sinks:
        sink.needs_reader = args.command in _NEED_A_READER
    from reconciler.cli import diagnosis

    wanted = diagnosis.diagnosis_of(args)
    with diagnosis.diagnosed(wanted, is_service=args.command in _SERVICES):
        return contextvars.copy_context().run(_run_command, args, wanted)


def command_of(arguments: Sequence[str]) -> str | None:
    """The command that these arguments name, if any; options may stand before it."""
    return next((argument for argument in arguments if argument in COMMANDS), None)


def _run_command(args: argparse.Namespace, wanted: Diagnosis) -> int:
    try:
        if (renamed := getattr(args, "renamed", None)) is not None:
            _say(f"warning: {renamed}. The old name works until the next major version")
        module = _module(args.command)
        code: int = module.run(module.parse(args))
    except KeyboardInterrupt:
        _say("interrupted")
        return exit_codes.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: one line for the user, the traceback only on request
        if _began_with_an_interrupt(error):
            _say("interrupted")
            return exit_codes.INTERRUPTED
        return _report(_named(error, args.command), wanted)
    return code


def _began_with_an_interrupt(error: BaseException | None) -> bool:
    """Whether it only came up while cleaning up after Ctrl-C; a library may, for instance, not have begun what it ends."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _named(error: Exception, command: str) -> Exception:
    """A package that an extra brings and that nothing asked for before, as the error that names the extra."""
    if isinstance(error, ImportError) and (missing := errors.MissingPackageError.of(f"kafka-quotas {command} needs", error)):
        missing.__cause__ = error
        return missing
    return error


def _report(error: Exception, wanted: Diagnosis) -> int:
    from reconciler.cli import output
    from reconciler.cli.diagnosis import print_error

    message = f"internal error: {type(error).__name__}: {error}. Run again with -vv for the traceback, and please report it"
    if isinstance(error, errors.ReconcilerError):
        message = str(error)
    if isinstance(error, errors.ManifestError) and output.findings_are_printed():
        message = error.brief
    print_error(message, error, wanted)
    return exit_code(error)


def exit_code(error: Exception) -> int:
    """The exit code for an error that ended a command before anything was written."""
    if isinstance(error, errors.UsageError):
        return exit_codes.USAGE
    if isinstance(error, errors.RefusedError):
        return exit_codes.REFUSED
    return exit_codes.NOT_DONE


def _say(message: str) -> None:
    from reconciler.model import escaped

    # Where stderr takes nothing (a log on a full disk), the exit code still reports the failure.
    with contextlib.suppress(OSError):
        print(f"kafka-quotas: {escaped(message)}", file=sys.stderr)


def entry_point() -> None:
    """The console script."""
    if {"_ARGCOMPLETE", "COMP_LINE", "COMP_POINT"} <= os.environ.keys():
        from reconciler.cli.completion import complete

        complete()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.stderr is None:  # closed; what is for people must not end up in the result then
        sys.stderr = io.StringIO()
    if command_of(sys.argv[1:]) in _SHORT:
        # These read, compare, write and end. Nothing of theirs has cycles, and looking for some takes a fifth of the time.
        gc.disable()
    try:
        sys.exit(main())
    finally:
        for stream in (sys.stdout, sys.stderr):
            _detach_if_broken(stream)


def _detach_if_broken(stream: TextIO | None) -> None:
    """Python flushes at exit, too: a reader that went away or a full disk must not take the exit code's place then."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
