"""Plans with their effects as JSON documents (``schemas/plan.v1.schema.json``), and the digest of the changes in one.

Effects are ``{unknown, left_out, moves: [{client, key, before, after, direction}], groups?}``. A client is ``{user,
client-id}`` or ``{ip}``, where ``{"other": true}`` is any that no quota names and an empty client id is a client that sends none.
A limit is ``null`` (unlimited) or ``{value, entity, level}``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from reconciler.documents.expiry import expiry_from_json, expiry_to_json
from reconciler.documents.findings import (
    finding_from_json,
    finding_to_json,
    message_from_json,
    message_to_json,
    span_from_json,
    span_to_json,
)
from reconciler.documents.reading import (
    FieldError,
    checked,
    cluster_from_json,
    items_from_json,
    number_from_json,
    observed_from_json,
    read_document,
    source_from_json,
    value_from_json,
    within,
)
from reconciler.documents.units import brokers_to_json, leaders_from_json, unit_from_json, unit_to_json
from reconciler.errors import AlteredDocumentError
from reconciler.formats import (
    FORMAT_VERSION,
    Json,
    canonical_bytes,
    cluster_to_json,
    entity_from_json,
    entity_to_json,
    field_path,
    moment_to_json,
    value_to_json,
)
from reconciler.model import (
    OTHER,
    Action,
    Change,
    ClientName,
    Direction,
    Effect,
    EffectGroup,
    GuardResult,
    GuardStatus,
    KeptEntity,
    KeyChange,
    Known,
    KnownAddress,
    KnownClient,
    Limit,
    Plan,
    PlanEffects,
    Reason,
    Summary,
    WithheldOwner,
    same_value,
)
from reconciler.text import number_text

SCHEMA: Final = "plan"
_FORMAT_VERSION: Final = "1.3"


def plan_to_json(plan: Plan) -> dict[str, Json]:
    """The whole plan; ``observed.at`` is the only thing in it that differs between two runs on equal inputs."""
    summary = plan.summary
    effects: dict[str, Json] = {} if plan.effects is None else {"effects": effects_to_json(plan.effects)}
    unmanaged: dict[str, Json] = {}
    if plan.unmanaged is not None:
        unmanaged["unmanaged"] = [entity_to_json(entity) for entity in plan.unmanaged]
    return {
        "format_version": _FORMAT_VERSION,
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
        "changes": [_change_to_json(change) for change in plan.changes],
        "guards": [_guard_to_json(guard) for guard in plan.guards],
        "notes": list(plan.notes),
        "findings": [finding_to_json(finding) for finding in plan.findings],
        **effects,
        **unmanaged,
        **({} if not plan.kept else {"kept": [_kept_to_json(each) for each in plan.kept]}),
        **({} if not plan.withheld else {"withheld": [_withheld_to_json(each) for each in plan.withheld]}),
        **brokers_to_json(plan.brokers, plan.leaders),
        "digest": plan.digest,
    }


def _withheld_to_json(withheld: WithheldOwner) -> dict[str, Json]:
    return {
        "owner": withheld.owner,
        "changes": [_change_to_json(change) for change in withheld.changes],
        "guards": [_guard_to_json(guard) for guard in withheld.guards],
        "findings": [finding_to_json(finding) for finding in withheld.findings],
        "waits_for": list(withheld.waits_for),
    }


def _kept_to_json(kept: KeptEntity) -> dict[str, Json]:
    return {
        "entity": entity_to_json(kept.entity),
        "quotas": {key: value_to_json(value) for key, value in sorted(kept.quotas.items())},
        "declared_at": kept.since,
    }


def _change_to_json(change: Change) -> dict[str, Json]:
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
        **({} if key.profile is None else {"profile": key.profile}),
        **({} if key.unit is None else {"declared": unit_to_json(key.unit)}),
        **({} if key.brokers_before is None else {"brokers_before": key.brokers_before}),
        **expiry_to_json(key.expiry),
    }


def _guard_to_json(guard: GuardResult) -> dict[str, Json]:
    """``{id, status, measured, limit, set_in, message, parts?, advice?, owner?, entities?}``."""
    return {
        "id": guard.id,
        "status": guard.status.value,
        "measured": guard.measured,
        "limit": guard.limit,
        "set_in": guard.set_in,
        **message_to_json(guard.message),
        **({} if guard.advice is None else {"advice": str.__str__(guard.advice)}),
        **({} if guard.owner is None else {"owner": guard.owner}),
        **({} if not guard.entities else {"entities": [entity_to_json(entity) for entity in guard.entities]}),
    }


def read_plan(text: str, *, name: str) -> Plan:
    """The plan of a document; ``name`` is the file's.

    Raises ``FileAccessError`` for text that is not such a document, ``DocumentVersionError`` for one of another major version,
    and ``AlteredDocumentError`` for one whose digest is not that of its own changes.
    """
    plan = read_document(text, plan_from_json, name=name, kind="a plan", written_by="plan --format json")
    require_digest(plan.digest, plan.cluster.id, plan.changes, name=name)
    return plan


def plan_from_json(data: object) -> Plan:
    """The inverse of ``plan_to_json``. Raises ``ForeignVersionError``, and ``FieldError`` that names the field."""
    document = checked(data, SCHEMA)
    plan = Plan(
        cluster=cluster_from_json(document["cluster"]),
        source=source_from_json(document["source"]),
        observed=observed_from_json(document["observed"]),
        complete=document["complete"],
        summary=Summary(**{key: document["summary"][key] for key in ("create", "update", "delete", "unchanged", "unmanaged")}),
        changes=items_from_json(document["changes"], _change_from_json, "changes"),
        guards=items_from_json(document["guards"], _guard_from_json, "guards"),
        digest=document["digest"],
        notes=tuple(document["notes"]),
        findings=items_from_json(document["findings"], finding_from_json, "findings"),
        effects=effects_from_json(document["effects"]) if "effects" in document else None,
        unmanaged=tuple(entity_from_json(row) for row in document["unmanaged"]) if "unmanaged" in document else None,
        brokers=tuple(sorted(document.get("brokers", ()))),
        leaders=leaders_from_json(document),
        withheld=items_from_json(document.get("withheld", []), _withheld_from_json, "withheld"),
        kept=items_from_json(document.get("kept", []), _kept_from_json, "kept"),
    )
    for field, derived in (("applyable", plan.applyable), ("errored", plan.errored)):
        if document[field] is not derived:
            raise FieldError(field, f"must be {str(derived).lower()}, by its guards and findings")
    return plan


def require_digest(recorded: str | None, cluster_id: str | None, changes: Iterable[Change], *, name: str) -> None:
    """Raise ``AlteredDocumentError`` unless the digest that the document ``name`` records is that of its changes."""
    actual = plan_digest(cluster_id, changes)
    if recorded != actual:
        msg = f"{name} was changed after it was written: its digest is {recorded}, but that of its changes is {actual}"
        raise AlteredDocumentError(msg)


def key_change_from_json(row: Mapping[str, Any], key: str, **described: Any) -> KeyChange:
    """``{before, after}`` of one key, which must differ."""
    before, after = value_from_json(row["before"], "before"), value_from_json(row["after"], "after")
    if same_value(before, after):
        raise FieldError("", "must be two different values in 'before' and 'after'")
    return KeyChange(key=key, before=before, after=after, **described)


def _change_from_json(row: Mapping[str, Any]) -> Change:
    return Change(
        entity=entity_from_json(row["entity"]),
        action=Action(row["action"]),
        keys=keys_from_json(row["keys"], _key_from_json),
        note=row.get("note"),
    )


def keys_from_json(rows: Mapping[str, Any], read: Callable[[Mapping[str, Any], str], KeyChange]) -> tuple[KeyChange, ...]:
    """The keys of a change, sorted."""
    keys = []
    key = ""
    try:
        for key in sorted(rows):
            keys.append(read(rows[key], key))
    except FieldError as error:
        raise error.below(field_path(("keys", key))) from error.__cause__
    return tuple(keys)


def _key_from_json(row: Mapping[str, Any], key: str) -> KeyChange:
    source = row["source"]
    if source is not None:
        with within("source"):
            source = span_from_json(source)
    unit = None
    if "declared" in row:
        with within("declared"):
            unit = unit_from_json(row["declared"])
    return key_change_from_json(
        row,
        key,
        reason=Reason(row["reason"]),
        source=source,
        profile=row.get("profile"),
        unit=unit,
        brokers_before=row.get("brokers_before"),
        expiry=expiry_from_json(row),
    )


def _guard_from_json(row: Mapping[str, Any]) -> GuardResult:
    texts = {field: row[field] for field in ("id", "measured", "limit", "set_in")}
    return GuardResult(
        status=GuardStatus(row["status"]),
        message=message_from_json(row),
        advice=row.get("advice"),
        owner=row.get("owner"),
        entities=tuple(entity_from_json(entity) for entity in row.get("entities", ())),
        **texts,
    )


def _withheld_from_json(row: Mapping[str, Any]) -> WithheldOwner:
    return WithheldOwner(
        owner=row["owner"],
        changes=items_from_json(row["changes"], _change_from_json, "changes"),
        guards=items_from_json(row["guards"], _guard_from_json, "guards"),
        findings=items_from_json(row["findings"], finding_from_json, "findings"),
        waits_for=tuple(row["waits_for"]),
    )


def _kept_from_json(row: Mapping[str, Any]) -> KeptEntity:
    quotas = {key: number_from_json(value, field_path(("quotas", key))) for key, value in row["quotas"].items()}
    return KeptEntity(entity=entity_from_json(row["entity"]), quotas=quotas, since=row["declared_at"])


def plan_digest(cluster_id: str | None, changes: Iterable[Change]) -> str:
    """``sha256:<hex>`` over the format's major version, the cluster id, and the changes sorted by entity and key.

    Time, tool version, source lines, notes, findings and withheld changes are left out on purpose: what is approved is what is
    written.
    """
    rows: list[Json] = [
        [entity_to_json(change.entity), key.key, _number_text(key.before), _number_text(key.after)]
        for change in sorted(changes, key=lambda c: c.entity.sort_key)
        for key in sorted(change.keys, key=lambda k: k.key)
    ]
    canonical: Json = {"format": FORMAT_VERSION.partition(".")[0], "cluster": cluster_id, "changes": rows}
    return "sha256:" + hashlib.sha256(canonical_bytes(canonical)).hexdigest()


def _number_text(value: float | None) -> str | None:
    return None if value is None else number_text(value)


def effects_to_json(effects: PlanEffects) -> dict[str, Json]:
    """``unknown`` is null, or why nothing can be known."""
    return {
        "unknown": effects.unknown,
        "left_out": effects.left_out,
        "moves": [_effect_to_json(effect) for effect in effects.effects],
        **({} if not effects.groups else {"groups": [_group_to_json(group) for group in effects.groups]}),
    }


def _group_to_json(group: EffectGroup) -> dict[str, Json]:
    before: Json = None
    if group.before is not None:
        lowest, highest = group.before
        entity = None if group.before_entity is None else entity_to_json(group.before_entity)
        before = {"lowest": value_to_json(lowest), "highest": value_to_json(highest), "entity": entity}
    return {
        "key": group.key,
        "direction": group.direction.value,
        "clients": group.clients,
        "examples": [_known_to_json(client) for client in group.examples],
        "before": before,
        "after": _limit_to_json(group.after),
    }


def _group_from_json(row: Mapping[str, Any]) -> EffectGroup:
    before = row["before"]
    entity = None if before is None or before["entity"] is None else entity_from_json(before["entity"])
    return EffectGroup(
        key=row["key"],
        direction=Direction(row["direction"]),
        clients=row["clients"],
        examples=tuple(map(_client_from_json, row["examples"])),
        before=None if before is None else (_end(before, "lowest"), _end(before, "highest")),
        before_entity=entity,
        after=_limit_from_json(row["after"], "after"),
    )


def _end(before: Mapping[str, Any], end: str) -> float:
    return number_from_json(before[end], f"before.{end}")


def effects_from_json(row: Mapping[str, Any]) -> PlanEffects:
    """The inverse. Raises ``FieldError``."""
    return PlanEffects(
        unknown=row["unknown"],
        left_out=row["left_out"],
        effects=items_from_json(row["moves"], _effect_from_json, "effects.moves"),
        groups=items_from_json(row.get("groups", []), _group_from_json, "effects.groups"),
    )


def _effect_to_json(effect: Effect) -> dict[str, Json]:
    return {
        "client": _known_to_json(effect.client),
        "key": effect.key,
        "before": _limit_to_json(effect.before),
        "after": _limit_to_json(effect.after),
        "direction": effect.direction.value,
    }


def _known_to_json(client: Known) -> dict[str, Json]:
    if isinstance(client, KnownAddress):
        return {"ip": _name_to_json(client.ip)}
    return {"user": _name_to_json(client.user), "client-id": _name_to_json(client.client_id)}


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
        raise FieldError("direction", f"must be {effect.direction} by the two limits, not {row['direction']}")
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
