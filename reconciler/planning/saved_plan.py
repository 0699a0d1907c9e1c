"""The little of a saved plan that is read again: its digest, which is compared, and what explains why it differs now.

Nothing else of the file is believed. Guards, scope and changes come from the manifests and the cluster each time anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from reconciler.errors import FileAccessError, StalePlanError
from reconciler.formats import FORMAT_VERSION, entity_from_json, value_to_json
from reconciler.model import Action, Change, CurrentState, Entity, KeyChange, Plan, Reason, escaped
from reconciler.planning.digest import digest

JsonValue: TypeAlias = "int | float | str | None"

_MAJOR: Final = FORMAT_VERSION.partition(".")[0]
_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """What is read of a saved plan: its digest, the cluster it was made for, and its values, which only explain a difference."""

    digest: str
    values: Mapping[tuple[Entity, str], tuple[JsonValue, JsonValue]]
    cluster_id: str | None = None


def read_saved_plan(text: str, *, name: str) -> SavedPlan:
    """Parse a plan document.

    Raises ``FileAccessError`` for anything that is none, and ``StalePlanError`` for one of another major version, and for one
    whose changes do not give its digest: whoever reviewed that file saw something else than it stands for.
    """
    try:
        document = json.loads(text)
        version = str(document["format_version"])
        if version.partition(".")[0] != _MAJOR:
            msg = f"{name} is a plan of format {escaped(version)}, and this version reads format {_MAJOR}; plan again"
            raise StalePlanError(msg)
        saved = _saved(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"{name} is not a plan written by 'plan --format json': {escaped(f'{type(error).__name__}: {error}')}"
        raise FileAccessError(msg) from error
    if _digest_of(saved) != saved.digest:
        msg = f"{name} is not as it was planned: its changes do not give its digest; plan again"
        raise StalePlanError(msg)
    return saved


def _saved(document: Mapping[str, Any]) -> SavedPlan:
    values: dict[tuple[Entity, str], tuple[JsonValue, JsonValue]] = {}
    for change in document["changes"]:
        entity = entity_from_json(change["entity"])
        for key, pair in change["keys"].items():
            values[entity, key] = (_value(pair["before"]), _value(pair["after"]))
    cluster_id, plan_digest = document["cluster"]["id"], document["digest"]
    if not isinstance(plan_digest, str) or not isinstance(cluster_id, str | None):
        msg = "its digest or its cluster id is no text"
        raise TypeError(msg)
    return SavedPlan(digest=plan_digest, values=values, cluster_id=cluster_id)


def _value(value: object) -> JsonValue:
    if value is None or (isinstance(value, str) and value in _NOT_FINITE):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value_to_json(float(value))
    msg = "a value is no number"
    raise TypeError(msg)


def _digest_of(saved: SavedPlan) -> str:
    keys: dict[Entity, list[KeyChange]] = {}
    for (entity, key), (before, after) in saved.values.items():
        change = KeyChange(key=key, before=_number(before), after=_number(after), reason=Reason.VALUE_DIFFERS)
        keys.setdefault(entity, []).append(change)
    return digest(saved.cluster_id, (Change(entity=e, action=Action.UPDATE, keys=tuple(k)) for e, k in keys.items()))


def _number(value: JsonValue) -> float | None:
    return _NOT_FINITE[value] if isinstance(value, str) else None if value is None else float(value)


def require_current(saved: SavedPlan, plan: Plan) -> None:
    """Raise ``StalePlanError``, explaining all, unless this plan would do exactly what the saved one says."""
    if saved.cluster_id != plan.cluster.id:
        of, answers = (escaped(one or "unknown") for one in (saved.cluster_id, plan.cluster.id))
        msg = f"the saved plan is of cluster {of}, and {answers} answers; plan again"
        raise StalePlanError(msg)
    if saved.digest != plan.digest:
        lines = tuple(differences(saved, plan))
        more = f" (and {len(lines) - _SHOWN} more)" if len(lines) > _SHOWN else ""
        msg = f"the saved plan is stale: {'; '.join(lines[:_SHOWN])}{more}; plan again"
        raise StalePlanError(msg)


def is_applied(saved: SavedPlan, current: CurrentState) -> bool:
    """True when its cluster has every value that the saved plan would write, so that there is nothing left of it to do."""
    if saved.cluster_id != current.cluster.id or not saved.values:
        return False
    live = current.entities
    return all(value_to_json(live.get(entity, {}).get(key)) == after for (entity, key), (_, after) in saved.values.items())


_SHOWN: Final = 10


def differences(saved: SavedPlan, plan: Plan) -> tuple[str, ...]:
    """One line for every key that the saved plan and this plan treat differently, in this plan's order."""
    return tuple(_differences(saved, plan))


def _differences(saved: SavedPlan, plan: Plan) -> Iterator[str]:
    now = {
        (change.entity, key.key): (value_to_json(key.before), value_to_json(key.after))
        for change in plan.changes
        for key in change.keys
    }
    for (entity, key), pair in now.items():
        if saved.values.get((entity, key)) != pair:
            yield f"{entity} {escaped(key)}: reviewed {_arrow(saved.values.get((entity, key)))}, now {_arrow(pair)}"
    for (entity, key), pair in saved.values.items():
        if (entity, key) not in now:
            yield f"{entity} {escaped(key)}: reviewed {_arrow(pair)}, now no change"


def _arrow(pair: tuple[JsonValue, JsonValue] | None) -> str:
    if pair is None:
        return "no change"
    before, after = ("not set" if value is None else str(value) for value in pair)
    return f"{before} -> {after}"
