"""ClientQuotas documents: entries into entities and values. What the schema refused is skipped here, never reported twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.formats import ValueRefusedError, parse_value
from reconciler.manifest.collector import Collector, mapping, scalar, text
from reconciler.manifest.documents import ClientQuotasDocument, ClusterChoice, Override, QuotaEntry
from reconciler.manifest.names import name_problems
from reconciler.model import (
    DEFAULT,
    DesiredEntity,
    DesiredQuota,
    Entity,
    EntityName,
    EntityType,
    QuotaKey,
    Span,
    compose,
    key_part,
    legal_keys,
)
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

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
    items = entries.items if isinstance(entries, YamlSequence) else []
    return ClientQuotasDocument(
        file=out.file,
        span=out.span(root),
        name=text(metadata, "name"),
        owner=owner,
        owner_span=out.span(written) if written is not None else None,
        clusters=cluster_choice(spec.items.get("clusters") if spec else None, out),
        entries=tuple(entry for node in items if (entry := _entry(node, owner, out)) is not None),
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


def _entry(node: YamlNode, owner: str | None, out: Collector) -> QuotaEntry | None:
    if not isinstance(node, YamlMapping):
        return None
    match = node.items.get("match")
    if not isinstance(match, YamlMapping):
        return None
    entity = _entity(match, out)
    quotas = dict(_quotas(node.items.get("quotas"), entity, out))
    overrides = tuple(_overrides(node.items.get("overrides"), entity, out))
    if entity is None:
        return None
    declared = DesiredEntity(
        entity=entity,
        quotas={key: value for key, value in quotas.items() if value is not None},
        source=out.span(match),
        owner=owner,
        note=text(node, "note"),
    )
    return QuotaEntry(declared=declared, overrides=overrides)


def _entity(match: YamlMapping, out: Collector) -> Entity | None:
    """The entity, or ``None`` when it is none that Kafka has; every name is checked all the same."""
    names: dict[str, EntityName] = {}
    for entity_type, node in match.items.items():
        name = _name(node) if entity_type in _TYPES else None
        if not name:
            # The schema has said what is wrong.
            continue
        names[entity_type] = name
        if name is not DEFAULT:
            for rule_id, message in name_problems(entity_type, name):
                out.add(rule_id, message, node)
    if len(match.items) > 1 and _IP in match.items:
        out.add("illegal-entity", "an ip cannot be combined with a user or a client-id; make two entries of it", match)
        return None
    if len(names) < len(match.items) or not names:
        return None
    return Entity.of(names)


def _name(node: YamlNode) -> EntityName | None:
    """The name, or ``None`` for what the schema has refused."""
    if isinstance(node, YamlScalar):
        return None if node.data is None else node.text
    if isinstance(node, YamlMapping) and node.data == {"default": True}:
        return DEFAULT
    return None


def _quotas(node: YamlNode | None, entity: Entity | None, out: Collector) -> Iterator[tuple[QuotaKey, DesiredQuota | None]]:
    """The keys of one ``quotas:``; ``None`` for a null, which only an override may have."""
    if not isinstance(node, YamlMapping):
        return
    legal = _IP_KEYS if entity is not None and entity.parts[0][0] == _IP else _CLIENT_KEYS
    for name, value in node.items.items():
        key = _KEYS.get(name)
        if key is None or not isinstance(value, YamlScalar):
            continue
        if entity is not None and key not in legal:
            line, column = node.keys[name]
            message = compose(
                "{key} cannot be set for {entity}; it takes {legal}",
                key=key_part(name),
                entity=entity,
                legal=", ".join(sorted(legal)),
            )
            out.add("key-not-for-entity", message, Span(file=out.file, line=line, column=column), entity=entity, key=name)
        elif value.data is None:
            yield key, None
        elif (quota := quota_value(key, value, entity, out)) is not None:
            yield key, quota


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
        quotas = dict(_quotas(item.items.get("quotas"), entity, out))
        if choice is not None:
            yield Override(clusters=choice, quotas=quotas, span=out.span(item))
