"""The effects of a plan as part of its document, and back.

``{unknown, left_out, moves: [{client, key, before, after, direction}]}``; a client is ``{user, client-id}`` or ``{ip}``, where
``{"other": true}`` is any that no quota names and an empty client id is a client that sends none; a limit is ``null`` (unlimited)
or ``{value, entity, level}``.
"""

from __future__ import annotations

from typing import Final

from reconciler.formats import Json, entity_to_json, value_to_json
from reconciler.model import OTHER, ClientName, Direction, Effect, Known, KnownAddress, KnownClient, Limit, PlanEffects
from reconciler.planning.place import Place

_LEAST_LEVEL: Final = 1


def effects_to_json(effects: PlanEffects) -> dict[str, Json]:
    """``unknown`` is null, or why nothing can be said."""
    return {
        "unknown": effects.unknown,
        "left_out": effects.left_out,
        "moves": [_effect_to_json(effect) for effect in effects.effects],
    }


def effects_from_json(place: Place) -> PlanEffects:
    """The inverse. Raises ``ValueError`` that names the field."""
    return PlanEffects(
        unknown=place["unknown"].optional(Place.text),
        left_out=place["left_out"].count(0),
        effects=tuple(_effect(one) for one in place["moves"].items()),
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


def _effect(place: Place) -> Effect:
    effect = Effect(
        client=_client(place["client"]),
        key=place["key"].text(),
        before=place["before"].optional(_limit),
        after=place["after"].optional(_limit),
    )
    direction = place["direction"]
    if direction.one_of(Direction) is not effect.direction:
        raise direction.wrong(f"{effect.direction}, as the two limits say")
    return effect


def _client(place: Place) -> Known:
    if (address := place.get("ip")) is not None:
        return KnownAddress(ip=_name(address))
    return KnownClient(user=_name(place["user"]), client_id=_name(place["client-id"]))


def _name(place: Place) -> ClientName:
    return OTHER if place.value == {"other": True} else place.text()


def _limit(place: Place) -> Limit:
    return Limit(value=place["value"].amount(), entity=place["entity"].entity(), level=place["level"].count(_LEAST_LEVEL))
