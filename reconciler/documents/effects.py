"""The effects of a plan as part of its document, and back.

``{unknown, left_out, moves: [{client, key, before, after, direction}]}``; a client is ``{user, client-id}`` or ``{ip}``, where
``{"other": true}`` is any that no quota names and an empty client id is a client that sends none; a limit is ``null`` (unlimited)
or ``{value, entity, level}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.documents.reading import FieldError, items_from_json, number_from_json
from reconciler.formats import Json, entity_from_json, entity_to_json, value_to_json
from reconciler.model import OTHER, ClientName, Effect, Known, KnownAddress, KnownClient, Limit, PlanEffects


def effects_to_json(effects: PlanEffects) -> dict[str, Json]:
    """``unknown`` is null, or why nothing can be said."""
    return {
        "unknown": effects.unknown,
        "left_out": effects.left_out,
        "moves": [_effect_to_json(effect) for effect in effects.effects],
    }


def effects_from_json(row: Mapping[str, Any]) -> PlanEffects:
    """The inverse. Raises ``FieldError``."""
    return PlanEffects(
        unknown=row["unknown"],
        left_out=row["left_out"],
        effects=items_from_json(row["moves"], _effect_from_json, "effects.moves"),
    )


def _effect_to_json(effect: Effect) -> dict[str, Json]:
    client = effect.client
    names: dict[str, Json]
    if isinstance(client, KnownAddress):
        names = {"ip": _name_to_json(client.ip)}
    else:
        names = {"user": _name_to_json(client.user), "client-id": _name_to_json(client.client_id)}
    return {
        "client": names,
        "key": effect.key,
        "before": _limit_to_json(effect.before),
        "after": _limit_to_json(effect.after),
        "direction": effect.direction.value,
    }


def _name_to_json(name: ClientName) -> Json:
    return {"other": True} if name is OTHER else name


def _limit_to_json(limit: Limit | None) -> Json:
    if limit is None:
        return None
    return {"value": value_to_json(limit.value), "entity": entity_to_json(limit.entity), "level": limit.level}


def _effect_from_json(row: Mapping[str, Any]) -> Effect:
    effect = Effect(
        client=_client_from_json(row["client"]),
        key=row["key"],
        before=_limit_from_json(row["before"], "before"),
        after=_limit_from_json(row["after"], "after"),
    )
    if row["direction"] != effect.direction:
        raise FieldError("direction", f"must be {effect.direction}, as the two limits say, not {row['direction']}")
    return effect


def _client_from_json(row: Mapping[str, Any]) -> Known:
    if "ip" in row:
        return KnownAddress(ip=_name_from_json(row["ip"]))
    return KnownClient(user=_name_from_json(row["user"]), client_id=_name_from_json(row["client-id"]))


def _name_from_json(name: str | Mapping[str, Any]) -> ClientName:
    return name if isinstance(name, str) else OTHER


def _limit_from_json(row: Mapping[str, Any] | None, path: str) -> Limit | None:
    if row is None:
        return None
    value = number_from_json(row["value"], f"{path}.value")
    return Limit(value=value, entity=entity_from_json(row["entity"]), level=row["level"])
