"""How near quota groups are to their limits, as a JSON document (``schemas/headroom.v1.schema.json``)."""

from __future__ import annotations

from typing import Final

from reconciler.documents import message_to_json
from reconciler.features.insight.headroom.loads import GroupLoad, Headroom, OwnerLoad, Throttling
from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json

SCHEMA: Final = "headroom"


def headroom_to_json(headroom: Headroom, owners: tuple[OwnerLoad, ...]) -> dict[str, Json]:
    """The document. ``groups`` are those that were asked for, the nearest to its limit first."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(headroom.cluster),
        **loads_to_json(headroom),
        "owners": [_owner_to_json(owner) for owner in owners],
    }


def loads_to_json(headroom: Headroom) -> dict[str, Json]:
    """The quota groups at their moment, for this document and for reports."""
    return {
        "at": None if headroom.at is None else moment_to_json(headroom.at),
        "groups": [_group_to_json(group) for group in headroom.groups],
        "muted": [{"broker": muted.broker, "key": muted.key.value, "connections": muted.connections} for muted in headroom.muted],
        "notes": [message_to_json(note) for note in headroom.notes],
    }


def _group_to_json(group: GroupLoad) -> dict[str, Json]:
    document: dict[str, Json] = {
        "broker": group.broker,
        "key": group.key.value,
        "bucket": {**group.tags},
        "rate": value_to_json(group.rate),
        "limit": value_to_json(group.limit),
        "percent": _percent(group),
        "trend": None,
        "throttled": None if group.throttling is None else _throttling_to_json(group.throttling),
        "source": None if group.source is None else entity_to_json(group.source),
        "level": group.level,
        "owner": group.owner,
    }
    if group.trend is not None:
        document["trend"] = {"change": value_to_json(group.trend.change), "seconds": value_to_json(group.trend.seconds)}
    if group.tokens is not None:
        document["tokens"] = value_to_json(group.tokens)
    return document


def _percent(group: GroupLoad) -> Json:
    return None if group.share is None else value_to_json(group.share * 100)


def _throttling_to_json(throttling: Throttling) -> dict[str, Json]:
    return {
        "since": None if throttling.since is None else moment_to_json(throttling.since),
        "or_earlier": throttling.or_earlier,
        "mean_ms": value_to_json(throttling.mean_ms),
    }


def _owner_to_json(load: OwnerLoad) -> dict[str, Json]:
    return {
        "owner": load.owner,
        "groups": load.groups,
        "above": load.above,
        "throttled": load.throttled,
        "percent": _percent(load.worst),
    }
