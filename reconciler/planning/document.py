"""The plan as a versioned JSON document (``schemas/plan.v1.schema.json``)."""

from __future__ import annotations

from reconciler.formats import (
    FORMAT_VERSION,
    Json,
    cluster_to_json,
    entity_to_json,
    finding_to_json,
    moment_to_json,
    span_to_json,
    value_to_json,
)
from reconciler.model import Change, GuardResult, KeyChange, Plan
from reconciler.planning.effects_document import effects_to_json


def plan_to_json(plan: Plan) -> dict[str, Json]:
    """The whole plan; ``observed.at`` is the only thing in it that differs between two runs on equal inputs."""
    summary = plan.summary
    effects: dict[str, Json] = {} if plan.effects is None else {"effects": effects_to_json(plan.effects)}
    unmanaged: dict[str, Json] = {}
    if plan.unmanaged is not None:
        unmanaged["unmanaged"] = [entity_to_json(entity) for entity in plan.unmanaged]
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(plan.cluster),
        "source": {"commit": plan.source.commit, "dirty": plan.source.dirty},
        "observed": {"at": moment_to_json(plan.observed.at), "from": plan.observed.origin.value},
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
        **unmanaged,
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
