"""The way back from an apply report: its changes are reversed, and quotas that changed since stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.errors import ChangedSinceError, OutOfScopeError
from reconciler.model import (
    Action,
    ApplyReport,
    Change,
    ChangeOutcome,
    ChangeStatus,
    Entity,
    KeyChange,
    Quotas,
    Reason,
    Scope,
    same_value,
)
from reconciler.text import list_some, number_text

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """The changes, not yet in writing order, and how many entities are as they were before already."""

    changes: tuple[Change, ...]
    already_back: int


def plan_way_back(report: ApplyReport, live: Mapping[Entity, Quotas], *, scope: Scope) -> WayBack:
    """Plan every key that the report's run wrote, or may have written, back to its value before.

    A key that has its value from before again needs nothing. Raises ``ChangedSinceError`` when a key has neither that nor a
    value of the run, because another writer changed it since; and ``OutOfScopeError`` for entities outside of the scope.
    """
    touched = [outcome for outcome in report.outcomes if _may_be_written(outcome)]
    outside = [str(outcome.change.entity) for outcome in touched if not scope.contains(outcome.change.entity)]
    if outside:
        raise OutOfScopeError(f"the report changed what is outside the scope of the cluster: {list_some(outside, _SHOWN)}")
    foreign = [text for outcome in touched for text in _changed_since(outcome, live.get(outcome.change.entity, {}))]
    if foreign:
        raise ChangedSinceError(f"another writer changed it since: {list_some(foreign, _SHOWN, between='. ')}")
    changes = tuple(change for outcome in touched if (change := _back(outcome.change, live.get(outcome.change.entity, {}))))
    return WayBack(changes=changes, already_back=len(touched) - len(changes))


def _may_be_written(outcome: ChangeOutcome) -> bool:
    return outcome.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) or bool(outcome.reached)


def _changed_since(outcome: ChangeOutcome, live: Quotas) -> Iterator[str]:
    for key in outcome.change.keys:
        now = live.get(key.key)
        written: tuple[float | None, ...] = outcome.reached.get(key.key, (key.after,))
        if not any(same_value(now, value) for value in (*written, key.before)):
            left = " or ".join(_words(value) for value in written)
            place = f"{outcome.change.entity} {key.key} is {_words(now)}"
            yield f"{place}, the run left it at {left} (before it: {_words(key.before)})"


def _back(change: Change, live: Quotas) -> Change | None:
    keys = tuple(
        KeyChange(key=key.key, before=live.get(key.key), after=key.before, reason=Reason.WAY_BACK)
        for key in change.keys
        if not same_value(live.get(key.key), key.before)
    )
    if not keys:
        return None
    if not live:
        action = Action.CREATE
    elif all(key.after is None for key in keys) and len(keys) == len(live):
        action = Action.DELETE
    else:
        action = Action.UPDATE
    return Change(entity=change.entity, action=action, keys=keys)


def _words(value: float | None) -> str:
    return "not set" if value is None else number_text(value)
