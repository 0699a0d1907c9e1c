"""Which clients move to other limits, for a terminal: one block for each client, one row for each key."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import DEFAULT, OTHER, Change, Direction, Effect, Entity, KnownAddress, Limit, PlanEffects
from reconciler.render.layout import Block, Column, Line, Style, labelled, line, table
from reconciler.text import amount, count_of

_DIRECTIONS: Final = {
    Direction.TIGHTENS: ("tightens", Style.WARN),
    Direction.LOOSENS: ("loosens", Style.FAINT),
    Direction.FIRST_LIMIT: ("first limit", Style.WARN),
    Direction.REMOVED: ("limit removed", Style.FAINT),
    Direction.OTHER_SOURCE: ("same value from another entity", Style.FAINT),
}
_COLUMNS: Final = (
    Column(title="key", least=12),
    Column(title="limit", least=12),
    Column(title="effect", least=8),
)


def effects_lines(effects: PlanEffects, *, changes: Sequence[Change]) -> tuple[Block, ...]:
    """The section of a plan: one row for each client and key, and how many are left out.

    An effect that only restates a created limit (a client that the entity names, without a limit before) is counted.
    """
    return tuple(_effects_lines(effects, changes))


def _effects_lines(effects: PlanEffects, changes: Sequence[Change]) -> Iterator[Block]:
    if effects.unknown is not None:
        yield labelled("Effects are unknown: ", Style.WARN, effects.unknown)
        return
    clients = len({effect.client for effect in effects.effects})
    changed = count_of(len(changes), "changed entity", "changed entities")
    if not clients and not effects.left_out:
        yield line((f"Effects: {changed}, no known client affected", Style.STRONG))
        return
    known = f"at least {clients:,}" if effects.left_out else f"{clients:,}"
    noun = "affected client" if clients == 1 and not effects.left_out else "affected clients"
    yield line((f"Effects: {changed}, {known} {noun}", Style.STRONG))
    created = frozenset((change.entity, key.key) for change in changes for key in change.keys if key.before is None)
    shown = [effect for effect in effects.effects if not _restates(effect, created)]
    yield effect_table(
        [(str(client), tuple(group)) for client, group in itertools.groupby(shown, key=lambda effect: effect.client)]
    )
    if folded := len(effects.effects) - len(shown):
        yield line((f"  {count_of(folded, 'effect')} not listed: a new limit above, for a client that it names", Style.FAINT))
    if effects.left_out:
        yield line((f"  and {count_of(effects.left_out, 'more effect')} not listed", Style.FAINT))
    if any(_is_any_other_client(effect) for effect in shown):
        yield line(("  (any other): clients that no quota names", Style.FAINT))


def effect_table(clients: Sequence[tuple[str, Sequence[Effect]]], *, unknown: Sequence[tuple[str, str]] = ()) -> Block:
    """A line for each client, below it a row for each effect; ``unknown``: keys of the last client, with the reason."""
    rows: list[tuple[Line | str | tuple[str, Style], ...] | Line] = []
    for client, effects in clients:
        rows.append(line(f"  {client}"))
        rows += [_row(effect) for effect in effects]
    rows += [(key, ("unknown", Style.WARN), reason) for key, reason in unknown]
    return table(_COLUMNS, rows, indent=6, titled=False)


def _row(effect: Effect) -> tuple[str | tuple[str, Style], ...]:
    before, after = (_limit(effect.key, limit) for limit in (effect.before, effect.after))
    return effect.key, f"{before} -> {after}", _DIRECTIONS[effect.direction]


def _limit(key: str, limit: Limit | None) -> str:
    if limit is None:
        return "unlimited"
    level = "" if "ip" in limit.entity.types else f", level {limit.level}"
    return f"{amount(key, limit.value)} from {limit.entity}{level}"


def _restates(effect: Effect, created: frozenset[tuple[Entity, str]]) -> bool:
    limit, client = effect.after, effect.client
    if effect.before is not None or limit is None or (limit.entity, effect.key) not in created:
        return False
    names = {"ip": client.ip} if isinstance(client, KnownAddress) else {"user": client.user, "client-id": client.client_id}
    return all(name is not DEFAULT and names.get(entity_type) == name for entity_type, name in limit.entity.parts)


def _is_any_other_client(effect: Effect) -> bool:
    client = effect.client
    return OTHER in ((client.ip,) if isinstance(client, KnownAddress) else (client.user, client.client_id))
