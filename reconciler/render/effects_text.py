"""Which clients move to other limits, for a terminal: a sentence for each cause, and a block for each client that moves alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import (
    OTHER,
    Change,
    Direction,
    Effect,
    EffectGroup,
    Known,
    KnownAddress,
    Limit,
    PlanEffects,
    QuotaKey,
    key_part,
    name_part,
)
from reconciler.render.layout import Block, Column, Heading, Line, Style, heading, labelled, line, table
from reconciler.text import amount, count_of

_DIRECTIONS: Final = {
    Direction.TIGHTENS: ("tightens", Style.WARN),
    Direction.LOOSENS: ("loosens", Style.FAINT),
    Direction.FIRST_LIMIT: ("first limit", Style.WARN),
    Direction.REMOVED: ("limit removed", Style.FAINT),
    Direction.OTHER_SOURCE: ("same value from another entity", Style.FAINT),
}
_COLUMNS: Final = (
    Column(title="client", across=True),
    Column(title="key", least=12),
    Column(title="limit", least=12),
    Column(title="effect", least=8),
)


_NOUNS: Final = {
    QuotaKey.PRODUCER_BYTE_RATE.value: "producer limit",
    QuotaKey.CONSUMER_BYTE_RATE.value: "consumer limit",
    QuotaKey.REQUEST_PERCENTAGE.value: "request limit",
    QuotaKey.CONTROLLER_MUTATION_RATE.value: "mutation limit",
    QuotaKey.CONNECTION_CREATION_RATE.value: "connection limit",
}


def effects_lines(effects: PlanEffects, *, changes: Sequence[Change]) -> tuple[Block, ...]:
    """The section of a plan: one sentence for clients that move together, one row for each other client and key."""
    return tuple(_effects_lines(effects, changes))


def _effects_lines(effects: PlanEffects, changes: Sequence[Change]) -> Iterator[Block]:
    if effects.unknown is not None:
        yield heading("Effects")
        yield labelled("Effects are unknown: ", Style.WARN, effects.unknown)
        return
    earlier = sum(effect.as_before for effect in effects.effects)
    if earlier:
        effects = _new(effects)
    clients = len({effect.client for effect in effects.effects})
    changed = count_of(len(changes), "changed entity", "changed entities")
    if not clients and not effects.left_out and not earlier:
        yield _title(f"{changed}, no known client affected")
        yield line(pages=(f"{changed}, no known client affected.",))
        return
    known = f"at least {clients:,}" if effects.left_out else f"{clients:,}"
    noun = "affected client" if clients == 1 and not effects.left_out else "affected clients"
    yield _title(f"{changed}, {known} {noun}")
    yield line(pages=(f"{changed}, {known} {noun}.",))
    for group in effects.groups:
        yield line((f"  {group_sentence(group)}", _DIRECTIONS[group.direction][1]))
        more = group.clients - len(group.examples)
        yield line(f"      {', '.join(map(str, group.examples))}{f' and {more:,} more' if more else ''}", hang=6)
    causes = {group.cause for group in effects.groups}
    alone = [effect for effect in effects.effects if effect.cause not in causes]
    rows = ((line(f"  {effect.client}", pages=(name_part(str(effect.client)),)), *_row(effect)) for effect in alone)
    yield table(_COLUMNS, rows, indent=6, titled=False)
    total = len(effects.effects) + effects.left_out
    if left_out := total - sum(group.clients for group in effects.groups) - len(alone):
        yield line((f"  and {count_of(left_out, 'more effect')} not listed", Style.FAINT))
    names_anyone = [effect.client for effect in alone] + [client for group in effects.groups for client in group.examples]
    if earlier:
        yield line((f"  {count_of(earlier, 'effect')} as before: of limits that differ without this change", Style.FAINT))
    if any(map(_is_any_other_client, names_anyone)):
        yield line(("  (any other): clients that no quota names", Style.FAINT))


def _new(effects: PlanEffects) -> PlanEffects:
    """Return the groups without effects that are as before, and no group without another effect."""
    new = tuple(effect for effect in effects.effects if not effect.as_before)
    causes = {effect.cause for effect in new}
    groups = tuple(group for group in effects.groups if effects.left_out or group.cause in causes)
    return replace(effects, effects=new, groups=groups)


def _title(words: str) -> Heading:
    return heading("Effects", (f"Effects: {words}", Style.STRONG))


def group_sentence(group: EffectGroup) -> str:
    """``10 clients get their first consumer limit, 2 MiB/s, from user=<default>``."""
    clients, noun = f"{group.clients:,} clients", _NOUNS[group.key]
    before, after = _limit_before(group), group.after
    if after is None:
        return f"{clients} lose their {noun}, {before}"
    now = f"{amount(group.key, after.value)}, from {after.entity}"
    match group.direction:
        case Direction.FIRST_LIMIT:
            return f"{clients} get their first {noun}, {now}"
        case Direction.OTHER_SOURCE:
            return f"{clients} keep a {noun} of {now} (before {before})"
        case _:
            word = "lower" if group.direction is Direction.TIGHTENS else "higher"
            return f"{clients} get a {word} {noun}, {now} (before {before})"


def _limit_before(group: EffectGroup) -> str:
    if group.before is None:
        return "unlimited"
    lowest, highest = (amount(group.key, value) for value in (group.before.lowest, group.before.highest))
    values = lowest if lowest == highest else f"{lowest} to {highest}"
    return f"{values}, {'of their own' if group.before.entity is None else f'from {group.before.entity}'}"


def _row(effect: Effect) -> tuple[Line | str | tuple[str, Style], ...]:
    before, after = (_limit(effect.key, limit) for limit in (effect.before, effect.after))
    return line(key_part(effect.key), hang=0), f"{before} -> {after}", _DIRECTIONS[effect.direction]


def _limit(key: str, limit: Limit | None) -> str:
    if limit is None:
        return "unlimited"
    level = "" if "ip" in limit.entity.types else f", level {limit.level}"
    return f"{amount(key, limit.value)} from {limit.entity}{level}"


def _is_any_other_client(client: Known) -> bool:
    return OTHER in ((client.ip,) if isinstance(client, KnownAddress) else (client.user, client.client_id))
