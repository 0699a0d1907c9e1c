"""monedula's ``KafkaQuota``: one entity in one cluster, with limits that are complete for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.importing.import_result import Gatherer, ImportResult
from reconciler.importing.kubernetes import KubernetesResource, read_resources
from reconciler.importing.yaml_fields import CAMEL_KEYS, field_mapping, field_text, is_null, read_fields
from reconciler.model import DEFAULT, Entity, EntityName, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode

_API: Final = "gitops.monedula.dev/"
_TYPES: Final[Mapping[str, str]] = {"user": "user", "clientId": "client-id", "ip": "ip"}
_FIELDS: Final = frozenset({*_TYPES, *(f"{field}Default" for field in _TYPES)})
_PRINCIPAL: Final = "User:"


def read_monedula(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; resources of other kinds are passed over. Never raises."""
    out = Gatherer(file)
    for resource in read_resources(content, out):
        if resource.api.startswith(_API) and resource.kind == "KafkaQuota":
            _quota(resource, out)
    return out.found()


def _quota(resource: KubernetesResource, out: Gatherer) -> None:
    spec = field_mapping(resource.spec)
    entity_node, limits = spec.get("entity"), spec.get("limits")
    if not isinstance(entity_node, YamlMapping) or not isinstance(limits, YamlMapping):
        out.refuse(
            "import-syntax", "a KafkaQuota has an entity and limits, and both are mappings", resource.spec or resource.node
        )
        return
    entity = _entity(entity_node, out)
    if entity is None:
        return
    quotas = read_fields(limits, CAMEL_KEYS, entity, out, tool="monedula")
    if quotas is not None:
        cluster = field_text(field_mapping(spec.get("clusterRef")).get("name"))
        out.add(entity, quotas, resource.spec or resource.node, cluster=cluster, namespace=resource.namespace)


def _entity(fields: YamlMapping, out: Gatherer) -> Entity | None:
    for name, node in fields.items.items():
        if name not in _FIELDS:
            hint = did_you_mean(name, _FIELDS)
            out.refuse(
                "import-unsupported", compose("an entity has no field {name}{hint}", name=shown_part(name), hint=hint), node
            )
            return None
    names: dict[str, EntityName] = {}
    for field, entity_type in _TYPES.items():
        named, default = fields.items.get(field), fields.items.get(f"{field}Default")
        is_default = (field_text(default) or "").lower() == "true"
        text = field_text(named)
        if text and is_default:
            out.refuse("import-ambiguous", f"{field} and {field}Default exclude each other", default or fields)
            return None
        if not is_null(named) and not text:
            out.refuse(
                "import-ambiguous", f"the {field} has no name. For the default, write {field}Default: true", named or fields
            )
            return None
        if is_default:
            names[entity_type] = DEFAULT
        elif text:
            names[entity_type] = text.removeprefix(_PRINCIPAL) if entity_type == "user" else text
    return _checked(names, fields, out)


def _checked(names: Mapping[str, EntityName], fields: YamlNode, out: Gatherer) -> Entity | None:
    if not names:
        out.refuse("import-syntax", "the entity names no user, no clientId and no ip", fields)
        return None
    entity = Entity.of(dict(names))
    if not entity.is_known:
        out.refuse("illegal-entity", "an ip stands alone: it does not go together with a user or a clientId", fields)
        return None
    return entity
