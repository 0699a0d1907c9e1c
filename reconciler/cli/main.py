"""Entry point: the parser, the dispatch table, and the one place where errors become exit codes."""

from __future__ import annotations

import argparse
import contextvars
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import reconciler
from reconciler import errors
from reconciler.cli import declaration, exit_codes
from reconciler.cli.parser import Parser
from reconciler.cli.registry import actions_of, command_groups, commands, find_command
from reconciler.hooks import Command, added, load
from reconciler.render import Sink

if TYPE_CHECKING:
    from reconciler.cli.results import Result

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
    parser.add_argument("--version", action="version", version=f"kafka-quotas {reconciler.__version__}", help="print the version")
    declaration.add_common_options(parser, before_command=True)
    commands_of = parser.add_subparsers(dest="command", metavar="COMMAND", prog=parser.prog, parser_class=kind)
    if isinstance(parser, Parser):
        parser.listed = command_groups
        known: Collection[str] = () if command is None else (command,)
    else:
        known = commands()
    for name in known:
        _add_command(commands_of, name, name, loads=name == command)
    return parser


def _add_command(place: Any, word: str, name: str, *, loads: bool) -> None:
    """Add a command, or an action of one. ``loads``: whether it gets its options, too."""
    entry = find_command(name)
    assert entry is not None  # a name of this registry
    text = entry.description or f"{entry.summary}."
    parser = place.add_parser(word, help=entry.summary, description=text, add_help=False)
    if not loads:
        return
    if not entry.module:
        actions = actions_of(name)
        below = parser.add_subparsers(dest="action", metavar="ACTION", prog=parser.prog, title="Actions")
        for action in actions:
            _add_command(below, action, f"{name} {action}", loads=True)
    else:
        declaration.add_options(parser, work_of(entry)[1])
    declaration.add_common_options(parser)


def work_of(command: Command) -> tuple[Callable[[Any], Result], type]:
    """The function of a command, and the dataclass of its options, which is the type of the function's argument."""
    name, _, function_name = command.module.partition(":")
    module = importlib.import_module(name)
    function = getattr(module, function_name or "run")
    return function, getattr(module, function.__annotations__["args"])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; usage errors and ``--help`` leave through ``SystemExit``."""
    if sys.stdout is None:  # Python's way of saying that file descriptor 1 is closed
        _tell("standard output is closed: there is nowhere to print a result. Nothing was done")
        return exit_codes.NOT_DONE
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or pipe that cannot spell a name shows its escape; it is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    # Everything that is printed, tracebacks and usage errors too, passes through a sink.
    out, err, breaks = sys.stdout, sys.stderr, ci_reads(os.environ)
    sinks = (Sink(out, breaks=breaks), Sink(err, breaks=breaks))
    sys.stdout, sys.stderr = (cast("TextIO", sink) for sink in sinks)
    try:
        return _run(list(sys.argv[1:] if argv is None else argv), sinks)
    finally:
        sys.stdout, sys.stderr = out, err


def ci_reads(environ: Mapping[str, str]) -> bool:
    """Whether a CI system reads the output and obeys commands in it."""
    return any(environ.get(name, "").lower() not in {"", "0", "false"} for name in _CI)


def _run(arguments: list[str], sinks: Sequence[Sink]) -> int:
    command = command_of(arguments)
    try:
        args = build_parser(command).parse_args(arguments)
    except errors.UsageError as error:
        _tell(str(error))
        return exit_codes.USAGE
    action = getattr(args, "action", None)
    entry = find_command(args.command if action is None or not actions_of(args.command) else f"{args.command} {action}")
    assert entry is not None  # argparse let it through
    for sink in sinks:
        sink.needs_reader = entry.needs_reader
    from reconciler.cli import diagnosis, output

    verbosity = args.verbose_before + getattr(args, "verbose", 0)
    console = output.console(color=args.color, quiet=args.quiet, log_format=args.log_format)
    with diagnosis.diagnosed(verbosity, as_json=args.log_format == "json", is_service=entry.is_service), console:
        return contextvars.copy_context().run(_run_command, entry, args, verbosity)


def command_of(arguments: Sequence[str]) -> str | None:
    """The command that these arguments name, if any; options may stand before it."""
    return next((argument for argument in arguments if not argument.startswith("-") and find_command(argument)), None)


def _run_command(entry: Command, args: argparse.Namespace, verbosity: int) -> int:
    """Run the command, and print its result or, in its place, the findings that stopped it."""
    from reconciler.cli import results

    form, files = getattr(args, "format", "text"), getattr(args, "out", ())
    try:
        run, kind = work_of(entry)
        try:
            result = run(declaration.read(kind, args))
        except errors.ManifestError as error:
            if error.findings and not entry.is_service:
                results.show_findings(error.findings, form, () if entry.keeps_files else files)
            raise
        return results.show(result, form, files)
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except Exception as error:  # noqa: BLE001 - the last resort: one line for the user, the traceback only on request
        # It may only have come up while cleaning up after Ctrl-C; a library may, for instance, not have begun what it ends.
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        return _report(error, entry, verbosity) if cause is None else _interrupted(cause)


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    """Print which step an interrupt ended, and then what the step leaves behind."""
    notes = sorted(getattr(interrupt, "__notes__", ()), key=lambda note: not note.startswith("interrupted"))
    _tell(". ".join(notes if notes and notes[0].startswith("interrupted") else ["interrupted", *notes]))
    return exit_codes.INTERRUPTED


def _report(error: Exception, entry: Command, verbosity: int) -> int:
    """Print what ended a command before anything was written, and return its exit code."""
    from reconciler.cli.diagnosis import print_error

    # A package that an extra brings, and that nothing asked for before.
    missing = errors.MissingPackageError.of(f"kafka-quotas {entry.name} needs", error) if isinstance(error, ImportError) else None
    if missing is not None:
        missing.__cause__ = error
        error = missing
    message = f"internal error: {type(error).__name__}: {error}. Run again with -vv for the traceback, and please report it"
    if isinstance(error, errors.ReconcilerError):
        message = str(error)
    if isinstance(error, errors.ManifestError) and not entry.is_service:  # its findings are printed
        message = error.brief
    print_error(message, error, verbosity)
    if isinstance(error, errors.UsageError):
        return exit_codes.USAGE
    return exit_codes.REFUSED if isinstance(error, errors.RefusedError) else exit_codes.NOT_DONE


def _tell(message: str) -> None:
    from reconciler.cli import output

    output.tell(message)


def entry_point() -> None:
    """The console script."""
    if {"_ARGCOMPLETE", "COMP_LINE", "COMP_POINT"} <= os.environ.keys():
        for place in added("COMPLETERS"):
            load(place)()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.stderr is None:  # closed; what is for people must not end up in the result then
        sys.stderr = io.StringIO()
    entry = find_command(command_of(sys.argv[1:]) or "")
    is_short = entry is not None and entry.is_short
    if is_short:
        # These read, compare, write and end. Nothing of theirs has cycles, and looking for some takes a fifth of the time.
        gc.disable()
    try:
        sys.exit(main())
    finally:
        # Python flushes at exit, too: a reader that went away or a full disk must not take the exit code's place then.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if is_short:
            # Python searches for cycles when it ends, too.
            gc.freeze()
