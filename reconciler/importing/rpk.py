"""What ``rpk cluster quotas describe --format json`` (or ``yaml``) prints, and ``rpk cluster quotas import`` reads."""

from __future__ import annotations

from typing import Final

from reconciler.importing.import_result import Gatherer, ImportResult, read_value
from reconciler.importing.yaml_fields import field_mapping, field_text
from reconciler.model import DEFAULT, Entity, EntityName, EntityType, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlNode, YamlSequence, read_yaml

_DEFAULT: Final = "<default>"
_TYPES: Final = tuple(kind.value for kind in EntityType)
_PREFIX: Final = "client-id-prefix"


def read_rpk(content: bytes, file: str) -> ImportResult:
    """The quotas of one file. Never raises."""
    out = Gatherer(file)
    stream = read_yaml(content)  # JSON is YAML, and this reader has the places
    if out.problems(stream.problems):
        return out.found()
    for document in stream.documents:
        quotas = field_mapping(document).get("quotas")
        if isinstance(quotas, YamlSequence):
            for item in quotas.items:
                _quota(item, out)
        else:
            message = "this is not what 'rpk cluster quotas describe --format json' prints: a mapping with a list of quotas"
            out.refuse("import-syntax", message, quotas or document)
    return out.found()


def _quota(item: YamlNode, out: Gatherer) -> None:
    entity_node, values = field_mapping(item).get("entity"), field_mapping(item).get("values")
    if not isinstance(entity_node, YamlSequence) or not isinstance(values, YamlSequence):
        out.refuse("import-syntax", "a quota has a list as its entity, and a list as its values", item)
        return
    entity = _entity(entity_node, out)
    if entity is None:
        return
    before = len(out.findings)
    quotas: dict[str, float] = {}
    for value in values.items:
        key, number = field_text(field_mapping(value).get("key")), field_mapping(value).get("value")
        if key is None or number is None:
            out.refuse("import-syntax", "a value has a key and a value", value, entity=entity)
        elif key in quotas:
            out.refuse("import-ambiguous", compose("the key {key} is given twice", key=shown_part(key)), value, entity=entity)
        else:
            read = read_value(out, entity, key, field_text(number) or "", out.span(number))
            if read is not None:
                quotas[key] = read
    if len(out.findings) == before:
        out.add(entity, quotas, item)


def _entity(parts: YamlSequence, out: Gatherer) -> Entity | None:
    names: dict[str, EntityName] = {}
    for part in parts.items:
        kind, name = (field_text(field_mapping(part).get(field)) for field in ("type", "name"))
        if kind == _PREFIX:
            message = "only Redpanda limits prefixes of client-ids. Kafka has no such quota: write one for each client-id"
            out.refuse("import-unsupported", message, part)
            return None
        if kind not in _TYPES or not name:
            message = compose(
                "{kind} with the name {name} is not a part of an entity{hint}",
                kind=shown_part(kind or ""),
                name=shown_part(name or ""),
                hint=did_you_mean(kind or "", _TYPES),
            )
            out.refuse("unknown-entity-type", message, part)
            return None
        if kind in names:
            out.refuse("import-ambiguous", f"the entity has two names for {kind}", part)
            return None
        # rpk prints the default as this word, and does not distinguish an entity of that literal name.
        names[kind] = DEFAULT if name == _DEFAULT else name
    entity = Entity.of(names) if names else None
    if entity is None or not entity.is_known:
        out.refuse("illegal-entity", "an entity is a user, a client-id, both of them, or an ip", parts)
        return None
    return entity
