"""jikkou's ``KafkaClientQuota`` and ``KafkaClientQuotaList``, as its reference of the Kafka provider describes them."""

from __future__ import annotations

from typing import Final

from reconciler.features.importing.import_result import Gatherer, ImportResult
from reconciler.features.importing.resources import (
    RESOURCE_FIELDS,
    LeftOut,
    Resource,
    field_mapping,
    field_text,
    is_null,
    leave_out,
    metadata_quotas,
    read_fields,
    read_resources,
    refuse_unknown,
)
from reconciler.model import DEFAULT, Entity, EntityName, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode

_API: Final = "kafka.jikkou.io/v1beta2"
_QUOTA: Final = "KafkaClientQuota"
_KEYS: Final = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
}
_NAMED, _DEFAULT, _ABSENT = "named", "default", "absent"
_TYPES: Final = {
    "USERS_DEFAULT": (_DEFAULT, _ABSENT),
    "USER": (_NAMED, _ABSENT),
    "USER_CLIENT": (_NAMED, _NAMED),
    "USER_ALL_CLIENTS": (_NAMED, _DEFAULT),
    "CLIENT": (_ABSENT, _NAMED),
    "CLIENTS_DEFAULT": (_ABSENT, _DEFAULT),
}
"""Whether each type names or defaults the user and the client id."""

_FIELDS: Final = (("user", "user"), ("clientId", "client-id"))
_TEMPLATE: Final = "this is a Jinja template. Let jikkou render it (jikkou prepare, or jikkou get), and import what it prints"
_MARKS: Final = {
    "jikkou.io/delete": "this annotation marks the resource for deletion",
    "jikkou.io/ignore": "this annotation makes jikkou ignore it",
}


def read_jikkou(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; resources of other kinds are mentioned. Never raises."""
    out = Gatherer(file)
    left_out = LeftOut(out)
    for resource in read_resources(content, out, template=_TEMPLATE):
        if (resource.api, resource.kind) == (_API, _QUOTA):
            _quota(resource, out)
        else:
            leave_out(resource, left_out, out, known=f"{_QUOTA} of {_API}")
    left_out.mention()
    return out.found()


def _quota(resource: Resource, out: Gatherer) -> None:
    root, spec = resource.node, resource.spec
    if not isinstance(spec, YamlMapping):
        hint = ". The fields type, entity and configs stand beside it: indent them below spec" if "type" in root.items else ""
        out.refuse("import-syntax", f"a {_QUOTA} has a mapping as its spec{hint}", spec or root)
        return
    annotations = field_mapping(resource.metadata.get("annotations"))
    for mark, why in _MARKS.items():
        if (field_text(annotations.get(mark)) or "").lower() == "true":
            out.refuse("import-left-out", f"this quota is left out: {why} ({mark})", annotations[mark])
            return
    for name, line, column in metadata_quotas(resource):
        message = compose("{name} is not read here: a {kind} has its quotas in spec.configs", name=shown_part(name), kind=_QUOTA)
        out.refuse("import-unsupported", message, out.at(line, column))
        return
    unknown = refuse_unknown(root, RESOURCE_FIELDS, out, what=f"a {_QUOTA}")
    unknown = refuse_unknown(spec, ("type", "entity", "configs"), out, what=f"the spec of a {_QUOTA}") or unknown
    entity = _entity(spec, out)
    if entity is None or unknown:
        return
    configs = spec.items.get("configs")
    if not isinstance(configs, YamlMapping):
        out.refuse("import-syntax", "a quota has a mapping as its configs", configs or spec)
        return
    quotas = read_fields(configs, _KEYS, entity, out, tool="jikkou")
    if quotas is not None:
        out.add(entity, quotas, spec)


def _entity(spec: YamlMapping, out: Gatherer) -> Entity | None:
    type_node = spec.items.get("type")
    type_name = field_text(type_node)
    if type_node is None or type_name not in _TYPES:
        message = compose(
            "the type {type_name} is not known{hint}",
            type_name=shown_part(type_name or ""),
            hint=did_you_mean(type_name or "", _TYPES),
        )
        out.refuse("import-unsupported", message, type_node or spec)
        return None
    entity_node = spec.items.get("entity")
    if not _names_readable(entity_node, out):
        return None
    given = field_mapping(entity_node)
    names: dict[str, EntityName] = {}
    for (field, entity_type), wanted in zip(_FIELDS, _TYPES[type_name], strict=True):
        node = given.get(field)
        text = field_text(node)
        if wanted == _NAMED and text:
            names[entity_type] = text
        elif wanted == _NAMED:
            message = compose(
                "the type {type_name} needs {field}. For the default, use USERS_DEFAULT, CLIENTS_DEFAULT or USER_ALL_CLIENTS",
                type_name=type_name,
                field=field,
            )
            out.refuse("import-ambiguous", message, node or entity_node or spec)
            return None
        elif text:
            message = compose(
                "the type {type_name} has no named {field}, and here it is {text}. Correct one of the two",
                type_name=type_name,
                field=field,
                text=shown_part(text),
            )
            out.refuse("import-ambiguous", message, node or spec)
            return None
        elif wanted == _DEFAULT:
            names[entity_type] = DEFAULT
    return Entity.of(names)


def _names_readable(node: YamlNode | None, out: Gatherer) -> bool:
    """Whether an entity is absent, or a mapping of known fields to texts."""
    if is_null(node):
        return True
    if not isinstance(node, YamlMapping):
        out.refuse("import-syntax", "an entity is a mapping with user, clientId or both", node or out.at(1))
        return False
    if refuse_unknown(node, ("user", "clientId"), out, what="jikkou's entities"):
        return False
    wrong = [value for value in node.items.values() if not is_null(value) and field_text(value) is None]
    for value in wrong:
        out.refuse("import-syntax", "a name is a text, not a list or a mapping", value)
    return not wrong
