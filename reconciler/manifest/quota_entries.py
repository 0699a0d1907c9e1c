"""ClientQuotas documents: entries into entities and values. What the schema refused is skipped here, never reported twice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

from reconciler.formats import ValueRefusedError, no_limit_advice, parse_value
from reconciler.manifest.collector import Collector, mapping, scalar, text
from reconciler.manifest.documents import ClientQuotasDocument, ClusterChoice, Override, QuotaEntry, QuotaGroup
from reconciler.manifest.expiry import FIELDS, expiring_quota
from reconciler.manifest.names import name_problems
from reconciler.manifest.unit_syntax import unit_quota
from reconciler.model import (
    DEFAULT,
    DesiredEntity,
    DesiredQuota,
    Entity,
    EntityName,
    EntityType,
    ExpiringQuota,
    ProfileChoice,
    QuotaKey,
    Span,
    UnitQuota,
    WrittenQuota,
    compose,
    key_part,
    legal_keys,
)
from reconciler.resolution import GroupLimit, MemberKind, reserved_entity
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

MOST_ENTITIES: Final = 10_000
"""Of one entry: a list of users and a list of client-ids name a product."""
_KEYS: Final = {key.value: key for key in QuotaKey}
_TYPES: Final = frozenset(entity_type.value for entity_type in EntityType)
_IP: Final = EntityType.IP.value
_IP_KEYS: Final = frozenset(legal_keys((_IP,)))
_CLIENT_KEYS: Final = frozenset(legal_keys((EntityType.USER.value,)))


def client_quotas(root: YamlMapping, out: Collector) -> ClientQuotasDocument:
    """A ClientQuotas document, as far as it can be understood."""
    metadata = mapping(root, "metadata")
    spec = mapping(root, "spec")
    written = scalar(metadata, "owner")
    owner = written.text if written is not None else None
    entries = spec.items.get("quotas") if spec else None
    # The schema reports an empty spec.
    if spec is not None and spec.items and not spec.items.keys() & {"quotas", "groups"}:
        out.add("missing-field", "spec has neither quotas nor groups. Write spec.quotas", spec)
    items = entries.items if isinstance(entries, YamlSequence) else []
    return ClientQuotasDocument(
        file=out.file,
        span=out.span(root),
        name=text(metadata, "name"),
        owner=owner,
        owner_span=out.span(written) if written is not None else None,
        clusters=cluster_choice(spec.items["clusters"], out) if spec and "clusters" in spec.items else None,
        entries=tuple(entry for node in items for entry in _entries(node, owner, out)),
        groups=tuple(_groups(spec.items["groups"], owner, out)) if spec and "groups" in spec.items else (),
    )


def cluster_choice(node: YamlNode | None, out: Collector) -> ClusterChoice | None:
    """``clusters:`` of a document or an override."""
    if isinstance(node, YamlSequence):
        names = tuple((item.text, out.span(item)) for item in node.items if isinstance(item, YamlScalar))
        return ClusterChoice(names=names, span=out.span(node))
    labels = mapping(node, "labels") if isinstance(node, YamlMapping) else None
    if labels is None or node is None:
        return None
    wanted = {label: value.text for label, value in labels.items.items() if isinstance(value, YamlScalar)}
    return ClusterChoice(labels=wanted, span=out.span(node))


def _entries(node: YamlNode, owner: str | None, out: Collector) -> Iterator[QuotaEntry]:
    """An entry for each entity that ``match`` names, all with the same values."""
    if not isinstance(node, YamlMapping):
        return
    items = node.items
    match = items.get("match")
    if not isinstance(match, YamlMapping):
        return
    entities = _entities(match, out)
    first = entities[0][0] if entities else None
    values = _entry_values(items.get("quotas"), first, out)
    overrides = tuple(_overrides(items["overrides"], first, out)) if "overrides" in items else ()
    profile = profile_choice(node, out) if "profile" in items else None
    note = text(node, "note") if "note" in items else None
    if profile is None and "quotas" not in items:
        _require_values(node, "this entry", out)
    for entity, source in entities:
        declared = DesiredEntity(entity=entity, source=source, owner=owner, note=note, **values)
        yield QuotaEntry(declared=declared, profile=profile, overrides=overrides)


def _entry_values(node: YamlNode | None, entity: Entity | None, out: Collector) -> dict[str, Any]:
    """The values of an entry or a group, by the field of ``DesiredEntity`` that has values of their kind."""
    written = dict(parse_quotas(node, entity, out, nullable=False))
    if all(value.__class__ is DesiredQuota for value in written.values()):
        return {"quotas": written}
    kinds = {"quotas": DesiredQuota, "units": UnitQuota, "expiring": ExpiringQuota}
    return {field: {key: value for key, value in written.items() if isinstance(value, kind)} for field, kind in kinds.items()}


def _entities(match: YamlMapping, out: Collector) -> list[tuple[Entity, Span]]:
    """The entities with their places: one, or with lists of names one a combination. None when Kafka has no such entity."""
    names = {entity_type: _listed_names(entity_type, node, out) for entity_type, node in match.items.items()}
    if len(match.items) > 1 and _IP in match.items:
        out.add("illegal-entity", "an ip cannot be combined with a user or a client-id. Make two entries of it", match)
        return []
    if not names or not all(names.values()):
        return []
    lists = [number for number, node in enumerate(match.items.values()) if isinstance(node, YamlSequence)]
    if not lists:
        return [(Entity.of({entity_type: listed[0][0] for entity_type, listed in names.items()}), out.span(match))]
    count = math.prod(map(len, names.values()))
    if count > MOST_ENTITIES:
        message = f"this entry names {count:,} entities, more than {MOST_ENTITIES:,}. Make several entries of it"
        out.add("too-many-entities", message, match)
        return []
    return [
        (
            Entity.of({entity_type: name for entity_type, (name, _) in zip(names, combination, strict=True)}),
            out.span(combination[lists[-1]][1]),
        )
        for combination in itertools.product(*names.values())
    ]


def _groups(node: YamlNode, owner: str | None, out: Collector) -> Iterator[QuotaGroup]:
    for name, group in node.items.items() if isinstance(node, YamlMapping) else ():
        if not isinstance(node, YamlMapping) or not isinstance(group, YamlMapping):
            continue
        line, column = node.keys[name]
        source = Span(file=out.file, line=line, column=column)
        prefix = text(group, "match") == "prefix"
        members = {
            (kind, member.text): out.span(member)
            for field, kind in _MEMBERS[prefix].items()
            for member in _members(group.items.get(field), kind, out)
        }
        if not members:
            out.add("missing-field", "this group has neither users nor client-ids", source)
            continue
        entity = reserved_entity(GroupLimit(group=name))
        note = text(group, "note")
        values = _entry_values(group.items.get("quotas"), None, out)
        limits = DesiredEntity(entity=entity, source=source, owner=owner, note=note, **values)
        yield QuotaGroup(name=name, members=members, limits=limits)


def _members(node: YamlNode | None, kind: MemberKind, out: Collector) -> Iterator[YamlScalar]:
    for item in node.items if isinstance(node, YamlSequence) else ():
        if isinstance(item, YamlScalar) and item.data is not None:
            if kind in (MemberKind.USER, MemberKind.CLIENT_ID):
                for rule_id, message in name_problems(kind.value, item.text):
                    out.add(rule_id, message, item)
            yield item


_MEMBERS: Final = {
    False: {"users": MemberKind.USER, "client-ids": MemberKind.CLIENT_ID},
    True: {"users": MemberKind.USER_PREFIX, "client-ids": MemberKind.CLIENT_ID_PREFIX},
}


def _listed_names(entity_type: str, node: YamlNode, out: Collector) -> list[tuple[EntityName, YamlNode]]:
    """The names of one type, all of them checked. None when the schema refused one, and reports it."""
    listed = node.items if isinstance(node, YamlSequence) else [node]
    names: list[tuple[EntityName, YamlNode]] = []
    for item in listed if entity_type in _TYPES else ():
        if isinstance(item, YamlScalar) and item.data is not None and item.text:
            names.append((item.text, item))
            for rule_id, message in name_problems(entity_type, item.text):
                out.add(rule_id, message, item)
        elif isinstance(item, YamlMapping) and item.data == {"default": True}:
            names.append((DEFAULT, item))
    return names if len(names) == len(listed) else []


def profile_choice(node: YamlMapping, out: Collector) -> ProfileChoice | None:
    """``profile:`` of an entry, an override or a profile."""
    name = scalar(node, "profile")
    return None if name is None else ProfileChoice(name=name.text, source=out.span(name))


def _require_values(node: YamlMapping, what: str, out: Collector) -> None:
    if "quotas" not in node.items and "profile" not in node.items:
        out.add("missing-field", f"{what} has neither quotas nor a profile", node)


def parse_quotas(
    node: YamlNode | None, entity: Entity | None, out: Collector, *, nullable: bool = True
) -> Iterator[tuple[QuotaKey, WrittenQuota | None]]:
    """The keys of one ``quotas:``; ``None`` for a null, which only overrides and profiles may have (``nullable``)."""
    if not isinstance(node, YamlMapping):
        return
    legal = _IP_KEYS if entity is not None and entity.parts[0][0] == _IP else _CLIENT_KEYS
    for name, value in node.items.items():
        key = _KEYS.get(name)
        if key is None or not isinstance(value, YamlScalar | YamlMapping):
            continue
        if entity is not None and key not in legal:
            line, column = node.keys[name]
            message = compose(
                "{key} cannot be set for {entity}. It takes {legal}",
                key=key_part(name),
                entity=entity,
                legal=", ".join(sorted(legal)),
            )
            out.add("key-not-for-entity", message, Span(file=out.file, line=line, column=column), entity=entity, key=name)
        elif isinstance(value, YamlScalar) and value.data is None:
            if not nullable:
                missing = f"{key} has no value, and null drops a key only in overrides and profiles. {no_limit_advice(key)}"
                out.add("value-missing", missing, value, entity=entity, key=name)
            yield key, None
        elif isinstance(value, YamlScalar):
            if (quota := quota_value(key, value, entity, out)) is not None:
                yield key, quota
        elif (written := _written(key, value, entity, out)) is not None:
            yield key, written


def _written(key: QuotaKey, node: YamlMapping, entity: Entity | None, out: Collector) -> WrittenQuota | None:
    if node.items.keys().isdisjoint(FIELDS):
        return unit_quota(key, node, entity, out)
    return expiring_quota(key, node, entity, out, lambda side: _settled(key, side, entity, out))


def _settled(key: QuotaKey, node: YamlNode, entity: Entity | None, out: Collector) -> DesiredQuota | UnitQuota | None:
    if isinstance(node, YamlMapping):
        return unit_quota(key, node, entity, out)
    return quota_value(key, node, entity, out) if isinstance(node, YamlScalar) else None


def quota_value(key: QuotaKey, node: YamlScalar, entity: Entity | None, out: Collector) -> DesiredQuota | None:
    """One value with its unit; ``None``, and a finding, for what is none."""
    try:
        written = parse_value(key, node.text)
    except ValueRefusedError as refused:
        out.add(refused.id, str(refused), node, entity=entity, key=key.value)
        return None
    return DesiredQuota(value=written.number, source=out.span(node), text=written.text)


def _overrides(node: YamlNode | None, entity: Entity | None, out: Collector) -> Iterator[Override]:
    for item in node.items if isinstance(node, YamlSequence) else ():
        if not isinstance(item, YamlMapping):
            continue
        choice = cluster_choice(item.items.get("clusters"), out)
        quotas = dict(parse_quotas(item.items.get("quotas"), entity, out))
        if choice is not None:
            _require_values(item, "this override", out)
            yield Override(clusters=choice, quotas=quotas, profile=profile_choice(item, out), span=out.span(item))
