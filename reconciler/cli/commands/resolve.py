"""``kafka-quotas resolve``: which limits apply to a client, where they come from, and which clients share them."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import entity_options, exit_codes, options, output
from reconciler.cli.arguments import ClusterArguments, OutputArguments, typed
from reconciler.errors import FileAccessError, ManifestError, OutputError, UsageError

if TYPE_CHECKING:
    from reconciler.model import Entity
    from reconciler.render import Block
    from reconciler.resolution import EffectiveQuotas, QuotaView, Resolution, ResolveOptions, ViewComparison
    from reconciler.workflows import AskedClient, Sources

_STATES: Final = "current (the cluster, or the snapshot of --current), cluster, manifests, planned, or the file of a snapshot"
_MEMBERS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveArguments(ClusterArguments):
    """The command line of ``resolve``."""

    entity_name: tuple[str, ...]
    entity_names: tuple[str, ...]
    entity_defaults: tuple[str, ...]
    from_file: str | None
    all: bool
    current: str | None
    state: str
    diff: str | None
    include_overrides: bool
    explain: bool
    members: int | None
    detailed_exitcode: bool
    trusted_ref: str | None
    fail_on: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``resolve``."""
    options.add_connection_path_argument(parser, also=", and the planned quotas")
    parser.add_argument("--state", default="current", metavar="STATE", help=f"ask {_STATES} [default: %(default)s]")
    parser.add_argument("--diff", metavar="STATE", help="show only the differences of this state from --state")
    parser.add_argument(
        "--include-overrides", action="store_true", help="show also the quotas that a limit overrides, the strongest first"
    )
    parser.add_argument("--explain", action="store_true", help="draw the precedence levels as a ladder, and mark the hit")
    parser.add_argument(
        "--members",
        type=_count,
        metavar="N",
        help=f"list at most N other known clients of each quota group [default: {_MEMBERS}, for lists 0]",
    )
    entity_options.add_entity_options(parser)
    clients = options.section(parser, "Clients", "instead of one entity")
    clients.add_argument("--from", dest="from_file", metavar="FILE", help="read entities as JSON lines, or - for standard input")
    clients.add_argument("--all", action="store_true", help="resolve every entity that the state names")
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_current_option(parser, "read this snapshot instead of the live cluster")
    options.add_detailed_exitcode_option(parser, "with --diff: exit 2 on differences")
    options.add_output_options(parser, formats=("text", "json", "jsonl"))


def parse(namespace: argparse.Namespace) -> ResolveArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(ResolveArguments, namespace)


def run(args: ResolveArguments) -> int:
    """Read the states, answer, print; 1 when nothing of the answer is known, 2 for differences with ``--detailed-exitcode``."""
    from reconciler.model import Severity
    from reconciler.workflows import Sources, Where, check_names

    single = entity_options.entity_of(args, may_be_empty=("client-id",))
    _check(args, single)
    for warning in entity_options.literal_default_warnings(args):
        output.tell(f"warning: {warning}")
    check_names([args.state, *([] if args.diff is None else [args.diff])])
    clients = _asked(args, single)
    where = Where(
        paths=tuple(args.paths),
        cluster=args.cluster,
        access=options.access(args, current=args.current),
        trusted_ref=args.trusted_ref,
        fail_on=Severity(args.fail_on),
    )
    try:
        return _answer(args, Sources(where), clients)
    except ManifestError as error:
        if error.findings:
            output.print_findings(args, error.findings, to_stdout=args.format != "jsonl")
        raise


def _answer(args: ResolveArguments, sources: Sources, clients: list[AskedClient] | None) -> int:
    from reconciler.workflows import difference_between

    view = sources.view(args.state)
    other = sources.view(args.diff) if args.diff is not None else None
    output.print_findings(args, sources.findings, to_stdout=False)
    if other is not None:
        compared = difference_between(view, other, None if clients is None else [entity for entity, _ in clients])
        print_comparison(args, compared)
        if compared.comparison.unknown is not None:
            return exit_codes.NOT_DONE
        return exit_codes.DIFFERENCES if args.detailed_exitcode and compared.comparison.clients else exit_codes.DONE
    wanted = _wanted(args)
    if clients is not None and args.from_file is None:
        known = print_one(args, view, clients[0][0], wanted)
    else:
        known = print_many(args, view, clients, wanted)
    return exit_codes.DONE if known else exit_codes.NOT_DONE


def _check(args: ResolveArguments, single: Entity | None) -> None:
    given = [name for name, is_there in (
        ("an entity", single is not None), ("--from", args.from_file is not None), ("--all", args.all)
    ) if is_there]  # fmt: skip
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} exclude each other")
    if not given:
        raise UsageError(
            "name a client: --name user=NAME --name client-id=NAME (or ip=ADDRESS), --from FILE with JSON lines, or --all"
        )
    if "cluster" not in (args.state, args.diff):
        options.check_one_state(args, args.current)
    if args.diff is None:
        if args.detailed_exitcode:
            raise UsageError("--detailed-exitcode needs --diff")
        return
    for option in ("include_overrides", "explain", "members"):
        if getattr(args, option):
            raise UsageError(f"--diff and --{option.replace('_', '-')} exclude each other")
    if args.format == "jsonl":
        raise UsageError("--diff prints text or json")


def _asked(args: ResolveArguments, single: Entity | None) -> list[AskedClient] | None:
    from reconciler.workflows import parse_clients, read_clients, require_client

    if single is not None:
        return [require_client(single)]
    if args.from_file is None:
        return None
    if args.from_file != "-":
        return read_clients(Path(args.from_file))
    if sys.stdin is None:
        raise FileAccessError("--from - reads standard input, and that is closed")
    return parse_clients(sys.stdin.buffer, "stdin")


def _wanted(args: ResolveArguments) -> ResolveOptions:
    from reconciler.resolution import ResolveOptions

    members = args.members
    if members is None:
        members = 0 if args.all or args.from_file is not None else _MEMBERS
    return ResolveOptions(include_overrides=args.include_overrides, explain=args.explain, members=members)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


_AT_ONCE: Final = 1_000
"""Clients whose text is written together."""


def print_one(args: OutputArguments, view: QuotaView, entity: Entity, wanted: ResolveOptions) -> bool:
    """Print the answer for one entity; false when nothing of it is known."""
    from reconciler.workflows import is_unknown, notes_about

    answers = view.answers()
    resolution = answers.answer(entity, wanted)
    notes = notes_about(resolution, answers)
    if args.format == "jsonl":
        _write(_json_lines(answers, [(entity, resolution.client)], wanted, _Seen()))
        _notes_aside(args, (*view.notes, *notes))
        return not is_unknown(resolution)

    def lines() -> Iterator[Block]:
        from reconciler.render import ladders_of, line, note_lines, resolution_lines, view_title

        yield line(f"In {view_title(view)}:")
        yield line()
        yield from resolution_lines(resolution, every_key=True)
        yield line()
        yield from ladders_of((resolution,))
        yield from note_lines((*view.notes, *notes))

    from reconciler.documents import resolution_to_json

    output.print_result(args, document=lambda: resolution_to_json(view, resolution, notes), lines=lambda: tuple(lines()))
    return not is_unknown(resolution)


def print_many(args: OutputArguments, view: QuotaView, asked: list[AskedClient] | None, wanted: ResolveOptions) -> bool:
    """Print the answers for these entities, or for every one that the state names; false when nothing of any is known."""
    answers = view.answers()
    seen = _Seen()
    questions = asked if asked is not None else answers.known_clients()
    if args.format == "text":
        _print_text(args, view, (answers.answer(entity, wanted) for entity, _ in questions), seen)
        return seen.anything_known
    lines = _json_lines(answers, questions, wanted, seen)
    if args.format == "json":
        from reconciler.documents import answer_list_chunks

        lines = answer_list_chunks(view, lines)
    _write(lines)
    if args.format == "jsonl":
        _notes_aside(args, view.notes)
    return seen.anything_known


def print_comparison(args: OutputArguments, compared: ViewComparison) -> None:
    """Print two states compared."""
    from reconciler.documents import comparison_to_json
    from reconciler.render import comparison_lines

    output.print_result(args, document=lambda: comparison_to_json(compared), lines=lambda: comparison_lines(compared))


class _Seen:
    """Whether anything is known, of all answers that may have something unknown."""

    def __init__(self) -> None:
        self._unknown = False
        self._known = False

    def __call__(self, resolution: Resolution) -> None:
        from reconciler.workflows import is_unknown

        unknown = is_unknown(resolution)
        self._unknown |= unknown
        self._known |= not unknown

    @property
    def anything_known(self) -> bool:
        return self._known or not self._unknown


def _json_lines(answers: EffectiveQuotas, asked: Iterable[AskedClient], wanted: ResolveOptions, seen: _Seen) -> Iterator[str]:
    from reconciler.documents import answer_json_lines

    return answer_json_lines(answers, asked, wanted, seen=seen)


def _print_text(args: OutputArguments, view: QuotaView, resolutions: Iterator[Resolution], seen: _Seen) -> None:
    from reconciler.render import line, note_lines, resolution_lines, view_title

    try:
        output.print_lines(args, [line(f"In {view_title(view)}:")])
        while part := tuple(itertools.islice(resolutions, _AT_ONCE)):
            for resolution in part:
                seen(resolution)
            lines = [text_line for resolution in part for text_line in (line(), *resolution_lines(resolution, every_key=False))]
            output.print_lines(args, lines)
        notes = tuple(note_lines(view.notes))
        output.print_lines(args, (line(), *notes) if notes else ())
    except OSError as error:
        raise OutputError(f"cannot print the result: {error.strerror}") from error


def _write(pieces: Iterable[str]) -> None:
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except OSError as error:
        raise OutputError(f"cannot print the result: {error.strerror}") from error


def _notes_aside(args: OutputArguments, notes: Iterable[str]) -> None:
    """What JSON lines have no place for."""
    if not args.quiet:
        for note in notes:
            output.tell(f"note: {note}")
