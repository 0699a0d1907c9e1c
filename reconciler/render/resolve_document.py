"""Effective quotas as JSON: one answer, the head of a list of answers, and two states compared.

An answer is ``{entity, quotas: {key: {value, source, level, bucket, overridden?, shared_with?}}, unknown?: {key: reason},
ladder?}``; a key that is in neither is unlimited. In a bucket, and in an entity that is asked about, ``null`` is any name that no
quota names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json
from reconciler.model import Effect, KnownAddress, Limit
from reconciler.resolution import (
    ClientDifference,
    KeyAnswer,
    QuotaView,
    Resolution,
    Rung,
    Tags,
    ViewComparison,
    tags_of,
    tags_of_address,
)


def resolution_document(view: QuotaView, resolution: Resolution, notes: Sequence[str]) -> dict[str, Json]:
    """The document of a single question; ``notes`` beside those of the state."""
    answer = resolution_to_json(resolution)
    return {
        "format_version": FORMAT_VERSION,
        **_view_to_json(view),
        "entity": answer.pop("entity"),
        "quotas": answer.pop("quotas"),
        "unknown": answer.pop("unknown", {}),
        **answer,
        "notes": [*view.notes, *notes],
    }


def list_head(view: QuotaView) -> dict[str, Json]:
    """A list's document without its last field, ``resolutions``."""
    return {"format_version": FORMAT_VERSION, **_view_to_json(view), "notes": list(view.notes)}


def resolution_to_json(resolution: Resolution) -> dict[str, Json]:
    """One answer; ``unknown`` only when there is something in it, ``ladder`` only when it was asked for."""
    found: dict[str, Json] = {
        "entity": entity_to_json(resolution.entity),
        "quotas": {key: _key_to_json(answer) for key, answer in resolution.quotas.items()},
    }
    if resolution.unknown:
        found["unknown"] = dict(resolution.unknown)
    if resolution.ladder is not None:
        found["ladder"] = {key: [_rung_to_json(rung) for rung in rungs] for key, rungs in resolution.ladder.items()}
    return found


def comparison_document(compared: ViewComparison) -> dict[str, Json]:
    """Two states, and whose limits differ."""
    found = compared.comparison
    return {
        "format_version": FORMAT_VERSION,
        "before": _view_to_json(compared.before),
        "after": _view_to_json(compared.after),
        "unknown": found.unknown,
        "differences": [_compared_to_json(one) for one in found.clients],
        "summary": {"asked": compared.asked, "differing": len(found.clients), "left_out": found.left_out},
        "notes": list(compared.notes),
    }


def _view_to_json(view: QuotaView) -> dict[str, Json]:
    observed = view.observed
    return {
        "state": view.kind.value,
        "cluster": cluster_to_json(view.cluster),
        "observed": None if observed is None else {"at": moment_to_json(observed.at), "from": observed.origin.value},
    }


def _key_to_json(answer: KeyAnswer) -> dict[str, Json]:
    found: dict[str, Json] = {
        "value": value_to_json(answer.value),
        "source": entity_to_json(answer.source),
        "level": answer.level,
        "bucket": _bucket(answer.bucket),
    }
    if answer.overridden is not None:
        found["overridden"] = [
            {"entity": entity_to_json(one.entity), "value": value_to_json(one.value), "level": one.level}
            for one in answer.overridden
        ]
    if answer.shared_with is not None:
        clients: Iterable[Json] = (entity_to_json(entity) for entity in answer.shared_with.clients)
        found["shared_with"] = {"clients": list(clients), "more": answer.shared_with.more}
    return found


def _rung_to_json(rung: Rung) -> dict[str, Json]:
    entity = None if rung.entity is None else entity_to_json(rung.entity)
    value = None if rung.value is None else value_to_json(rung.value)
    return {"level": rung.level, "entity": entity, "value": value, "status": rung.status.value}


def _compared_to_json(compared: ClientDifference) -> dict[str, Json]:
    found: dict[str, Json] = {
        "entity": entity_to_json(compared.entity),
        "keys": {
            effect.key: {
                "before": _limit_to_json(effect, effect.before),
                "after": _limit_to_json(effect, effect.after),
                "direction": effect.direction.value,
            }
            for effect in compared.effects
        },
    }
    if compared.unknown:
        found["unknown"] = dict(compared.unknown)
    return found


def _limit_to_json(effect: Effect, limit: Limit | None) -> Json:
    if limit is None:
        return None
    client = effect.client
    tags = tags_of_address(client) if isinstance(client, KnownAddress) else tags_of(client, limit.level)
    return {
        "value": value_to_json(limit.value),
        "source": entity_to_json(limit.entity),
        "level": limit.level,
        "bucket": _bucket(tags),
    }


def _bucket(tags: Tags) -> dict[str, Json]:
    return {**tags}
