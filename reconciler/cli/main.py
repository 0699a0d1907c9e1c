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
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO, cast

import reconciler
from reconciler import errors
from reconciler.cli import exit_codes, options
from reconciler.render import Sink

if TYPE_CHECKING:
    from reconciler.cli.diagnosis import Diagnosis

COMMANDS: Final = {
    "validate": "check manifests without a cluster",
    "plan": "show what apply would change on the cluster",
    "apply": "change the cluster's quotas to what the manifests say, and verify",
    "revert": "put back what an apply report says was there before, and verify",
    "render": "show a saved plan in another form: text, JSON, Markdown, annotations, SARIF, HTML",
    "comment": "keep one comment on a GitHub pull request true, from the plan to the end of apply",
    "clusters": "list the clusters of the manifests, and which of them a change is about",
    "verify-ref": "ask GitHub whether a run of the default branch stored what a git reference has",
    "drift": "tell what is live from what was merged, applied, changed or removed",
    "report": "one page to look at: every cluster, what differs, who gets what, last runs, traffic against limits",
    "run": "watch manifests and a cluster, report drift, and apply when told to; for a service manager",
    "init": "make a repository for quotas: manifests, owners, workflows; from nothing or from a cluster",
    "export": "write manifests, or a snapshot, from a live cluster",
    "import": "turn the quota files of jikkou, Terraform, helmsman or kafka-configs into manifests",
    "describe": "show the quotas of some entities or of all, as the cluster has them",
    "resolve": "tell which limits hold for a client, where they come from, and whom they are shared with",
    "alter": "change the quotas of one entity by hand, and verify",
    "backtest": "replay recorded traffic against current and proposed quotas (Spark)",
    "compact": "make recorded traffic small: sums of what each client did in each second (Spark)",
    "sandbox": "run a real local Kafka for trying things out",
    "explain": "say what the id of a finding, guard or class of drift means, with an example",
    "schema": "print the JSON Schema of a document kind",
    "completion": "print a completion script for bash, zsh or fish",
    "demo": "the whole road on a local Kafka: validate, plan, backtest, apply, verify",
}
"""Command names and their one-line help, so that ``--help`` imports no command."""


_MODULES: Final = {"import": "import_quotas", "verify-ref": "verify_ref"}
"""The modules of commands that cannot have the command's own name."""

_SHORT: Final = frozenset({"validate", "plan", "apply", "revert", "drift", "describe", "alter", "resolve", "report"})


_NEED_A_READER: Final = frozenset({"apply", "revert", "alter", "demo"})
"""Commands that write to a cluster: these stop, or report it, when nothing reads the plan or the result."""

_CI: Final = (
    "CI", "GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS", "TF_BUILD", "GITLAB_CI", "TEAMCITY_VERSION", "TRAVIS",
    "BUILDKITE", "CIRCLECI", "JENKINS_URL", "APPVEYOR", "BITBUCKET_BUILD_NUMBER", "CODEBUILD_BUILD_ID", "DRONE", "WOODPECKER",
)  # fmt: skip
"""Variables that CI systems set for every step. Azure Pipelines, TeamCity and Jenkins do not set ``CI``."""


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors exit with 64 (2 means differences here), and that takes options between arguments, too."""

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse ``REPORT --cluster X PATH`` as ``--cluster X REPORT PATH``, wherever a command has no commands of its own."""
        given = sys.argv[1:] if args is None else list(args)
        has_commands = self._subparsers is not None
        if self._mixing or has_commands or {"-h", "--help", "--"} & set(given):
            return super().parse_known_args(given, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(given, namespace)
        finally:
            self._mixing = False

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message to stderr; exit 64."""
        from reconciler.model import escaped

        self.print_usage(sys.stderr)
        self.exit(exit_codes.USAGE, f"{self.prog}: error: {escaped(message)}\n")


def build_parser(command: str | None, *, kind: type[argparse.ArgumentParser] = Parser) -> argparse.ArgumentParser:
    """The whole parser; only ``command`` (if any) gets its options, because only its module is imported."""
    parser = kind(prog="kafka-quotas", description="Kafka client quotas as YAML in git: validate, plan, backtest, apply, verify.")
    options.add_diagnosis_options(parser, before_command=True)
    parser.add_argument("--version", action="version", version=f"kafka-quotas {reconciler.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=kind)
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == command:
            _module(name).add_arguments(sub)
    return parser


def _module(command: str) -> Any:
    return importlib.import_module(f"reconciler.cli.commands.{_MODULES.get(command, command)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; usage errors and ``--help`` leave through ``SystemExit``."""
    if sys.stdout is None:  # Python's way of saying that file descriptor 1 is closed
        _say("standard output is closed: there is nowhere to print a result; nothing was done")
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
    args = build_parser(command_of(arguments)).parse_args(arguments)
    for sink in sinks:
        sink.needs_reader = args.command in _NEED_A_READER
    from reconciler.cli import diagnosis

    wanted = diagnosis.diagnosis_of(args)
    with diagnosis.diagnosed(wanted, is_service=args.command == "run"):
        return contextvars.copy_context().run(_run_command, args, wanted)


def command_of(arguments: Sequence[str]) -> str | None:
    """The command that these arguments name, if any; options may stand before it."""
    return next((argument for argument in arguments if argument in COMMANDS), None)


def _run_command(args: argparse.Namespace, wanted: Diagnosis) -> int:
    try:
        module = _module(args.command)
        code: int = module.run(module.parse(args))
    except KeyboardInterrupt:
        _say("interrupted")
        return exit_codes.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: one line for the user, the traceback only on request
        if _began_with_an_interrupt(error):
            _say("interrupted")
            return exit_codes.INTERRUPTED
        return _report(error, wanted)
    return code


def _began_with_an_interrupt(error: BaseException | None) -> bool:
    """Whether it only came up while cleaning up after Ctrl-C; a library may, for instance, not have begun what it ends."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _report(error: Exception, wanted: Diagnosis) -> int:
    from reconciler.cli import output
    from reconciler.cli.diagnosis import print_error

    message = f"internal error: {type(error).__name__}: {error}; run again with -vv for the traceback, and please report it"
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
