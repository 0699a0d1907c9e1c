"""The effects of a plan for a terminal: who moves to another limit, from which entity to which."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from reconciler.model import OTHER, Direction, Effect, KnownAddress, Limit, PlanEffects
from reconciler.render.amounts import amount
from reconciler.render.styled import Line, Style, line

_WORDS: Final = {
    Direction.TIGHTENS: ("tightens", Style.WARN),
    Direction.LOOSENS: ("loosens", Style.FAINT),
    Direction.FIRST_LIMIT: ("first limit", Style.WARN),
    Direction.REMOVED: ("limit removed", Style.FAINT),
    Direction.OTHER_SOURCE: ("same value from another entity", Style.FAINT),
}


def effects_lines(effects: PlanEffects, *, changed: int) -> tuple[Line, ...]:
    """The section of a plan with ``changed`` changed entities: one row a client and key, and how many are left out."""
    return tuple(_lines(effects, changed))


def _lines(effects: PlanEffects, changed: int) -> Iterator[Line]:
    if effects.unknown is not None:
        yield line(("Effects are unknown: ", Style.WARN), effects.unknown)
        return
    clients = len({effect.client for effect in effects.effects})
    if not clients and not effects.left_out:
        yield line((f"Effects: {_count(changed, 'changed entity', 'changed entities')}, no known client affected", Style.STRONG))
        return
    known = f"at least {clients}" if effects.left_out else str(clients)
    noun = "affected client" if clients == 1 and not effects.left_out else "affected clients"
    yield line((f"Effects: {_count(changed, 'changed entity', 'changed entities')}, {known} {noun}", Style.STRONG))
    for client, group in itertools.groupby(effects.effects, key=lambda effect: effect.client):
        moves = tuple(group)
        yield line(f"  {client}")
        width = max(len(move.key) for move in moves)
        yield from (_move(move, width) for move in moves)
    if effects.left_out:
        yield line((f"  and {_count(effects.left_out, 'more effect', 'more effects')} not listed", Style.FAINT))
    if any(_is_anybody(effect) for effect in effects.effects):
        yield line(("  (any other): whom no quota names", Style.FAINT))


def _move(effect: Effect, width: int) -> Line:
    words, style = _WORDS[effect.direction]
    before, after = (_limit(effect.key, limit) for limit in (effect.before, effect.after))
    return line(f"      {effect.key:<{width}}  {before} -> {after}   ", (words, style))


def _limit(key: str, limit: Limit | None) -> str:
    if limit is None:
        return "unlimited"
    level = "" if "ip" in limit.entity.types else f", level {limit.level}"
    return f"{amount(key, limit.value)} from {limit.entity}{level}"


def _is_anybody(effect: Effect) -> bool:
    client = effect.client
    return OTHER in ((client.ip,) if isinstance(client, KnownAddress) else (client.user, client.client_id))


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
