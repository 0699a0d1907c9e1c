"""Printing the answers of ``resolve``: one, many without holding them all, or what differs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from reconciler.cli import output
from reconciler.cli.arguments import OutputArguments
from reconciler.errors import OutputError

if TYPE_CHECKING:
    from reconciler.model import Entity
    from reconciler.render import Line
    from reconciler.resolution import EffectiveQuotas, QuotaView, Resolution, ResolveOptions, ViewComparison
    from reconciler.workflows import AskedClient

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

    def lines() -> Iterator[Line]:
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
    """Whether anything is known, of all answers that may hold something unknown."""

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
            lines = [one for resolution in part for one in (line(), *resolution_lines(resolution, every_key=False))]
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
