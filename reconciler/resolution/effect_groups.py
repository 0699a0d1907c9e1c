"""Effects by their cause: clients that move for the same reason, from one limit (or from limits of their own) to another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from reconciler.model import Effect, EffectGroup, Entity, QuotaKey

MOST_EXAMPLES: Final = 3


def group_effects(effects: Iterable[Effect]) -> tuple[EffectGroup, ...]:
    """The groups of more than one client, in the order in which their first clients come."""
    by_cause: dict[tuple[object, ...], list[Effect]] = {}
    for effect in effects:
        by_cause.setdefault(effect.cause, []).append(effect)
    return tuple(_group(alike) for alike in by_cause.values() if len(alike) > 1)


def _group(effects: list[Effect]) -> EffectGroup:
    first = effects[0]
    values = [effect.before.value for effect in effects if effect.before is not None]
    entities: set[Entity | None] = {effect.before.entity if effect.before else None for effect in effects}
    return EffectGroup(
        key=first.key,
        direction=first.direction,
        clients=len(effects),
        examples=tuple(effect.client for effect in effects[:MOST_EXAMPLES]),
        before=(min(values, key=_strength), max(values, key=_strength)) if values else None,
        before_entity=entities.pop() if len(entities) == 1 else None,
        after=first.after,
    )


def _strength(value: float) -> float:
    return math.inf if math.isnan(value) else value


def limits_nobody(key: str, value: float | None) -> bool:
    """Whether clients have no limit by it: none is set, or it is above what any client reaches."""
    return value is None or value >= QuotaKey(key).unreachable
