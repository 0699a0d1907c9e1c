"""The plan as a versioned JSON document (``schemas/plan.v1.schema.json``), and the little of a saved plan that is read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from reconciler.errors import FileAccessError
from reconciler.formats.canonical import FORMAT_VERSION, Json, cluster_to_json, entity_from_json, entity_to_json, value_to_json
from reconciler.formats.finding_json import finding_to_json, span_to_json
from reconciler.model.change import Change, KeyChange
from reconciler.model.entity import Entity
from reconciler.model.plan import GuardResult, Plan
from reconciler.planning.effects_document import effects_to_json

JsonValue: TypeAlias = "int | float | str | None"

_MAJOR: Final = FORMAT_VERSION.partition(".")[0]


def plan_to_json(plan: Plan) -> dict[str, Json]:
    """The whole plan; ``observed.at`` is the only thing in it that differs between two runs on equal inputs."""
    summary = plan.summary
    effects: dict[str, Json] = {} if plan.effects is None else {"effects": effects_to_json(plan.effects)}
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(plan.cluster),
        "source": {"commit": plan.source.commit, "dirty": plan.source.dirty},
        "observed": {"at": plan.observed.at.isoformat(), "from": plan.observed.origin.value},
        "complete": plan.complete,
        "applyable": plan.applyable,
        "errored": plan.errored,
        "summary": {
            "create": summary.create,
            "update": summary.update,
            "delete": summary.delete,
            "unchanged": summary.unchanged,
            "unmanaged": summary.unmanaged,
        },
        "changes": [change_to_json(change) for change in plan.changes],
        "guards": [guard_to_json(guard) for guard in plan.guards],
        "notes": list(plan.notes),
        "findings": [finding_to_json(finding) for finding in plan.findings],
        **effects,
        "digest": plan.digest,
    }


def change_to_json(change: Change) -> dict[str, Json]:
    """One entity and all its keys."""
    document: dict[str, Json] = {
        "entity": entity_to_json(change.entity),
        "action": change.action.value,
        "keys": {key.key: _key_to_json(key) for key in change.keys},
    }
    if change.note is not None:
        document["note"] = change.note
    return document


def _key_to_json(key: KeyChange) -> dict[str, Json]:
    return {
        "before": value_to_json(key.before),
        "after": value_to_json(key.after),
        "reason": key.reason.value,
        "source": span_to_json(key.source) if key.source else None,
    }


def guard_to_json(guard: GuardResult) -> dict[str, Json]:
    """``{id, status, measured, limit, set_in, message}``."""
    return {
        "id": guard.id,
        "status": guard.status.value,
        "measured": guard.measured,
        "limit": guard.limit,
        "set_in": guard.set_in,
        "message": guard.message,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """What is read of a saved plan: its digest, which is compared, and its values, which only explain a difference."""

    digest: str
    values: Mapping[tuple[Entity, str], tuple[JsonValue, JsonValue]]


def read_saved_plan(text: str, *, name: str) -> SavedPlan:
    """Parse a plan document. Raises ``FileAccessError`` for anything that is not one of this format's major version."""
    try:
        document = json.loads(text)
        version = document["format_version"]
        if str(version).partition(".")[0] != _MAJOR:
            msg = f"{name} is a plan of format {version}; this version reads format {_MAJOR}"
            raise FileAccessError(msg)
        values = {
            (entity_from_json(change["entity"]), key): (pair["before"], pair["after"])
            for change in document["changes"]
            for key, pair in change["keys"].items()
        }
        return SavedPlan(digest=str(document["digest"]), values=values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{name} is not a plan written by 'plan --format json': {error}"
        raise FileAccessError(msg) from error


def differences(saved: SavedPlan, plan: Plan) -> tuple[str, ...]:
    """One line for every key that the saved plan and this plan treat differently, in this plan's order."""
    now = {
        (change.entity, key.key): (value_to_json(key.before), value_to_json(key.after))
        for change in plan.changes
        for key in change.keys
    }
    lines = [
        f"{entity} {key}: reviewed {_arrow(saved.values.get((entity, key)))}, now {_arrow(pair)}"
        for (entity, key), pair in now.items()
        if saved.values.get((entity, key)) != pair
    ]
    gone = [(place, pair) for place, pair in saved.values.items() if place not in now]
    lines += [f"{entity} {key}: reviewed {_arrow(pair)}, now no change" for (entity, key), pair in gone]
    return tuple(lines)


def _arrow(pair: tuple[JsonValue, JsonValue] | None) -> str:
    if pair is None:
        return "no change"
    before, after = ("not set" if value is None else str(value) for value in pair)
    return f"{before} -> {after}"
