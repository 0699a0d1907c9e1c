"""The steps of limits that go down: which values are written one after the other, in which rounds, and the note about them.

A round has every entity at most once. The first has every change, with the large reductions taken only one step down; each later
round has the next steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import UsageError
from reconciler.model import KNOWN_KEYS, Action, Change, KeyChange, Message, QuotaKey, ValueType, compose, key_part
from reconciler.ports import StepWatcher
from reconciler.text import amount

WINDOW_SECONDS: Final = 11.0
"""The longest window of a rate with Kafka's default settings; after it, nothing of the old rate counts any more."""

LEAST_FACTOR: Final = 1.01
_SHOWN: Final = 10
"""Limits whose way down a note shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDown:
    """How reductions go down. ``factor``: above 1, the most that one step divides by; ``wait_seconds``: between two steps."""

    factor: float
    wait_seconds: float = WINDOW_SECONDS
    watcher: StepWatcher | None = None
    """Looks at the clients of each step. ``None``: nothing does, and the last step is not waited for."""

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for a factor that lowers nothing, or too little for a run that ends."""
        if not LEAST_FACTOR <= self.factor < math.inf:
            raise UsageError(
                f"a step-down takes a factor from {LEAST_FACTOR} on (2 halves a limit per step), not {self.factor:g}"
            )


def way_down(key: KeyChange, factor: float) -> tuple[float, ...]:
    """The values to write one after the other, the planned one last; a single one for a change that is not a large reduction.

    The values between are whole for integer keys, and fall strictly. No step divides by more than ``factor``, except that one
    unit is always taken where whole numbers leave no smaller step.
    """
    if key.after is None:
        return ()
    way = [] if key.before is None or not is_stepped(key, factor) else [key.before]
    while way and way[-1] / factor > key.after:
        lower = way[-1] / factor
        if QuotaKey(key.key).value_type is not ValueType.DOUBLE:
            lower = min(float(math.ceil(lower)), way[-1] - 1)
        way.append(min(lower, math.nextafter(way[-1], 0.0)))
    return (*(value for value in way[1:] if value > key.after), key.after)


def is_stepped(key: KeyChange, factor: float) -> bool:
    """True when the key falls by more than the factor, from a limit to a lower one."""
    before, after = key.before, key.after
    if before is None or after is None or key.key not in KNOWN_KEYS:
        return False
    return math.isfinite(before) and 0 < after < before / factor


def rounds_of(changes: Sequence[Change], step_down: StepDown) -> tuple[tuple[Change, ...], ...]:
    """The changes of each round, in the plan's order. A single round when nothing goes down by more than the factor."""
    rounds: list[tuple[Change, ...]] = []
    pending = [(change, {key.key: way_down(key, step_down.factor) for key in change.keys}) for change in changes]
    number = 0
    while here := [(change, ways) for change, ways in pending if number == 0 or any(len(way) > number for way in ways.values())]:
        rounds.append(tuple(_in_round(change, ways, number) for change, ways in here))
        number += 1
    return tuple(rounds)


def _in_round(change: Change, ways: dict[str, tuple[float, ...]], number: int) -> Change:
    if number == 0:
        return replace(change, keys=tuple(replace(k, after=ways[k.key][0]) if ways[k.key] else k for k in change.keys))
    keys = tuple(
        replace(k, before=ways[k.key][number - 1], after=ways[k.key][number]) for k in change.keys if len(ways[k.key]) > number
    )
    return replace(change, action=Action.UPDATE, keys=keys)


def stepping_notes(changes: Sequence[Change], step_down: StepDown) -> Iterator[Message]:
    """Yield the facts to know before agreeing, with the values of the steps; nothing when nothing goes in steps."""
    stepped = [(change.entity, key) for change in changes for key in change.keys if is_stepped(key, step_down.factor)]
    if not stepped:
        return
    count = len(rounds_of(changes, step_down))
    seconds = (count - (step_down.watcher is None)) * step_down.wait_seconds
    yield compose(
        "{stepped} of {all} changes go down in steps of at most a factor of {factor}: {count} rounds with {wait} s between them, "
        "{seconds} s of waiting in all. The digest is that of the final values.",
        stepped=len({entity for entity, _ in stepped}),
        all=len(changes),
        factor=f"{step_down.factor:g}",
        count=count,
        wait=f"{step_down.wait_seconds:g}",
        seconds=f"{seconds:g}",
    )
    for entity, key in stepped[:_SHOWN]:
        way = [amount(key.key, value) for value in (key.before, *way_down(key, step_down.factor))]
        yield compose(
            "{key} of {entity} in {count} steps: {way}.",
            key=key_part(key.key),
            entity=entity,
            count=len(way) - 1,
            way=" → ".join(way if len(way) <= _SHOWN else (*way[:2], "…", *way[-2:])),
        )
