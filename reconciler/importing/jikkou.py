"""jikkou's ``KafkaClientQuota`` and ``KafkaClientQuotaList``, as its reference of the Kafka provider describes them."""

from __future__ import annotations

import re
from typing import Final

from reconciler.importing.import_result import Gatherer, ImportResult, read_value
from reconciler.model import DEFAULT, Entity, EntityName, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

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
_TEMPLATE: Final = re.compile(r"\{\{|\{%|\{#")
_MARKS: Final = {
    "jikkou.io/delete": "this annotation marks the resource for deletion",
    "jikkou.io/ignore": "this annotation makes jikkou ignore it",
}


def read_jikkou(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; resources of other kinds are passed over. Never raises."""
    out = Gatherer(file)
    if _templates(content, out):
        return out.found()
    stream = read_yaml(content)
    if not out.problems(stream.problems):
        for document in stream.documents:
            _document(document, out)
    return out.found()


def _templates(content: bytes, out: Gatherer) -> bool:
    """A template decides by itself which resources there are, so nothing of such a file is converted."""
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=1):
        template = None if line.lstrip().startswith("#") else _TEMPLATE.search(line)
        if template:
            message = "this is a Jinja template. Let jikkou render it (jikkou prepare, or jikkou get), and import what it prints"
            out.refuse("import-template", message, out.at(number, template.start() + 1))
    return bool(out.findings)


def _document(root: YamlNode, out: Gatherer) -> None:
    if not isinstance(root, YamlMapping):
        out.refuse("import-syntax", "this YAML document is not a jikkou resource: it is not a mapping", root)
        return
    api, kind = _text(root.items.get("apiVersion")), _text(root.items.get("kind"))
    if api is None or kind is None:
        out.refuse("import-syntax", "this YAML document is not a jikkou resource: it has no apiVersion or no kind", root)
    elif not api.startswith(_API):
        if "quota" in kind.lower():
            message = compose(
                "{kind} of {api} is another kind of quota; only {api_2}... is read",
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
        hint = "; type, entity and configs stand beside it: indent them below spec" if beside else ""
        out.refuse("import-syntax", f"a {_QUOTA} has a mapping as its spec{hint}", spec or root)
        return
    annotations = _mapping(_mapping(root.items.get("metadata")).get("annotations"))
    for mark, why in _MARKS.items():
        if (_text(annotations.get(mark)) or "").lower() == "true":
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
    quotas = _quotas(configs, entity, out)
    if quotas is not None:
        out.add(entity, quotas, spec)


def _entity(spec: YamlMapping, out: Gatherer) -> Entity | None:
    type_node = spec.items.get("type")
    type_name = _text(type_node)
    if type_node is None or type_name not in _TYPES:
        message = compose(
            "the type {type_name} is not known{hint}",
            type_name=shown_part(type_name or ""),
            hint=did_you_mean(type_name or "", _TYPES),
        )
        out.refuse("import-unsupported", message, type_node or spec)
        return None
    entity_node = spec.items.get("entity")
    given = _mapping(entity_node)
    names: dict[str, EntityName] = {}
    for (field, entity_type), wanted in zip(_FIELDS, _TYPES[type_name], strict=True):
        node = given.get(field)
        text = _text(node)
        if wanted == _NAMED and text:
            names[entity_type] = text
        elif wanted == _NAMED:
            message = compose(
                "the type {type_name} needs {field}; for the default, use USERS_DEFAULT, CLIENTS_DEFAULT or USER_ALL_CLIENTS",
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


def _quotas(configs: YamlMapping, entity: Entity, out: Gatherer) -> dict[str, float] | None:
    quotas: dict[str, float] = {}
    before = len(out.findings)
    for name, node in configs.items.items():
        if name not in _KEYS:
            out.refuse(
                "import-unsupported",
                compose(
                    "jikkou has no quota {name}{hint}",
                    name=shown_part(name),
                    hint=did_you_mean(name, _KEYS),
                ),
                node,
                entity=entity,
            )
        elif isinstance(node, YamlScalar) and node.data is None:
            continue  # a null is a key that is not set
        else:
            value = read_value(out, entity, _KEYS[name], _text(node) or "", out.span(node))
            if value is not None:
                quotas[_KEYS[name]] = value
    return quotas if len(out.findings) == before else None


def _text(node: YamlNode | None) -> str | None:
    """A scalar as written; ``None`` for null, nothing, lists and mappings."""
    return node.text if isinstance(node, YamlScalar) and node.data is not None else None


def _mapping(node: YamlNode | None) -> dict[str, YamlNode]:
    return node.items if isinstance(node, YamlMapping) else {}
