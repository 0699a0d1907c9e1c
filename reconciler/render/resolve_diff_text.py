"""Two states compared, for a terminal: whose limits differ, from which entity to which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import Direction, Effect, Limit
from reconciler.render.amounts import amount
from reconciler.render.resolve_text import note_lines, view_title
from reconciler.render.styled import Line, Style, line
from reconciler.resolution import ClientDifference, ViewComparison

_WORDS: Final = {
    Direction.TIGHTENS: ("tightens", Style.WARN),
    Direction.LOOSENS: ("loosens", Style.FAINT),
    Direction.FIRST_LIMIT: ("first limit", Style.WARN),
    Direction.REMOVED: ("limit removed", Style.FAINT),
    Direction.OTHER_SOURCE: ("same value from another entity", Style.FAINT),
}


def comparison_lines(compared: ViewComparison) -> tuple[Line, ...]:
    """Both states, one block a client, the notes, and a last line that counts."""
    return tuple(_lines(compared))


def _lines(compared: ViewComparison) -> Iterator[Line]:
    found = compared.comparison
    yield line(("Before: ", Style.STRONG), view_title(compared.before))
    yield line(("After:  ", Style.STRONG), view_title(compared.after))
    yield line()
    for one in found.clients:
        yield from _client(one)
    if found.clients:
        yield line()
    if found.left_out:
        yield line((f"and {found.left_out} more differences that are not listed", Style.FAINT))
    yield from note_lines(compared.notes)
    if found.unknown is not None:
        yield line(("Users and client ids: unknown", Style.WARN))
    who = "all known clients" if compared.asked is None else f"{compared.asked} asked about"
    count = len(found.clients)
    differ = "none differs" if not count else "1 differs" if count == 1 else f"{count} differ"
    yield line((f"Of {who}, {differ}.", Style.STRONG))


def _client(one: ClientDifference) -> Iterator[Line]:
    yield line(f"  {one.client}")
    width = max((len(key) for key in (*(effect.key for effect in one.effects), *one.unknown)), default=0)
    for effect in one.effects:
        yield _move(effect, width)
    for key, reason in one.unknown.items():
        yield line(f"      {key:<{width}}  ", ("unknown", Style.WARN), f": {reason}")


def _move(effect: Effect, width: int) -> Line:
    words, style = _WORDS[effect.direction]
    before, after = (_limit(effect.key, limit) for limit in (effect.before, effect.after))
    return line(f"      {effect.key:<{width}}  {before} -> {after}   ", (words, style))


def _limit(key: str, limit: Limit | None) -> str:
    return "unlimited" if limit is None else f"{amount(key, limit.value)} from {limit.entity}, level {limit.level}"
