"""jikkou's ``KafkaClientQuota`` and ``KafkaClientQuotaList``, as its reference of the Kafka provider describes them."""

from __future__ import annotations

from typing import Final

from reconciler.importing.import_result import Gatherer, ImportResult
from reconciler.importing.yaml_fields import field_mapping, field_text, read_fields, refuse_templates
from reconciler.model import DEFAULT, Entity, EntityName, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlSequence, read_yaml

_API: Final = "kafka.jikkou.io/"
_QUOTA: Final = "KafkaClientQuota"
_LIST: Final = "KafkaClientQuotaList"
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
    """The quotas of one file; resources of other kinds are passed over. Never raises."""
    out = Gatherer(file)
    if refuse_templates(content, out, _TEMPLATE):
        return out.found()
    stream = read_yaml(content)
    if not out.problems(stream.problems):
        for document in stream.documents:
            _document(document, out)
    return out.found()


def _document(root: YamlNode, out: Gatherer) -> None:
    if not isinstance(root, YamlMapping):
        out.refuse("import-syntax", "this YAML document is not a jikkou resource: it is not a mapping", root)
        return
    api, kind = field_text(root.items.get("apiVersion")), field_text(root.items.get("kind"))
    if api is None or kind is None:
        out.refuse("import-syntax", "this YAML document is not a jikkou resource: it has no apiVersion or no kind", root)
    elif not api.startswith(_API):
        if "quota" in kind.lower():
            message = compose(
                "{kind} of {api} is another kind of quota. Only {api_2}... is read",
                kind=shown_part(kind),
                api=shown_part(api),
                api_2=_API,
            )
            out.refuse("import-unsupported", message, root.items["kind"])
    elif kind == _QUOTA:
        _resource(root, out)
    elif kind == _LIST:
        items = root.items.get("items")
        if not isinstance(items, YamlSequence):
            out.refuse("import-syntax", f"a {_LIST} has a list of items", items or root)
            return
        for item in items.items:
            _resource(item, out)
    elif "quota" in kind.lower():
        out.refuse(
            "import-unsupported",
            compose("{kind} is not a kind that is read: {quota}, {list}", kind=shown_part(kind), quota=_QUOTA, list=_LIST),
            root.items["kind"],
        )


def _resource(root: YamlNode, out: Gatherer) -> None:
    spec = root.items.get("spec") if isinstance(root, YamlMapping) else None
    if not isinstance(root, YamlMapping) or not isinstance(spec, YamlMapping):
        beside = isinstance(root, YamlMapping) and "type" in root.items
        hint = ". The fields type, entity and configs stand beside it: indent them below spec" if beside else ""
        out.refuse("import-syntax", f"a {_QUOTA} has a mapping as its spec{hint}", spec or root)
        return
    annotations = field_mapping(field_mapping(root.items.get("metadata")).get("annotations"))
    for mark, why in _MARKS.items():
        if (field_text(annotations.get(mark)) or "").lower() == "true":
            out.refuse("import-left-out", f"this quota is left out: {why} ({mark})", annotations[mark])
            return
    unknown = [name for name in spec.items if name not in ("type", "entity", "configs")]
    for name in unknown:
        out.refuse(
            "import-unsupported", compose("{name} is not a field of jikkou's quotas", name=shown_part(name)), spec.items[name]
        )
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
    for field in given:
        if field not in ("user", "clientId"):
            out.refuse(
                "import-unsupported", compose("{field} is not a part of jikkou's entities", field=shown_part(field)), given[field]
            )
            return None
    return Entity.of(names)
