"""Resources with an apiVersion and a kind, as Kubernetes and jikkou have them, and the quotas of jikkou among them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.importing.import_result import Gatherer, ImportResult, read_value
from reconciler.model import DEFAULT, Entity, EntityName, Span, compose
from reconciler.text import count_of, did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

RESOURCE_FIELDS: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_LIST_FIELDS: Final = ("apiVersion", "kind", "metadata", "items")
_NOT_OF_KAFKA: Final = frozenset({("v1", "ResourceQuota"), ("quota.openshift.io/v1", "ClusterResourceQuota")})
_DEFINITIONS: Final = "apiextensions.k8s.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource; ``spec`` as it is written, to be checked by the reader of the kind."""

    api: str
    kind: str
    metadata: Mapping[str, YamlNode]
    spec: YamlNode | None
    node: YamlMapping


class LeftOut:
    """Counts the resources of a file that declare no quota, and mentions each kind once."""

    def __init__(self, out: Gatherer) -> None:
        self._out = out
        self._counts: dict[tuple[str, str], int] = {}
        self._first: dict[tuple[str, str], YamlNode] = {}

    def add(self, singular: str, plural: str, node: YamlNode) -> None:
        """Note one more of a kind, with its name in the singular and in the plural."""
        kind = (singular, plural)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._first.setdefault(kind, node)

    def mention(self) -> None:
        """Report each kind at the place of its first resource."""
        for kind, count in self._counts.items():
            verb = "declares no client quota, and is left out" if count == 1 else "declare no client quota, and are left out"
            self._out.refuse("import-left-out", f"{count_of(count, *kind)} {verb}", self._first[kind])


def read_resources(content: bytes, out: Gatherer, *, template: str) -> Iterator[Resource]:
    """The resources of a file in their order, also those inside lists. A template or broken YAML leaves findings only."""
    if refuse_templates(content, out, template):
        return
    stream = read_yaml(content)
    if out.problems(stream.problems):
        return
    for document in stream.documents:
        # An empty document between two separators is common and declares nothing.
        if not is_null(document):
            yield from _resources(document, out)


def leave_out(resource: Resource, left_out: LeftOut, out: Gatherer, *, known: str) -> None:
    """Mention a resource of another kind; one that looks like a quota is an error. ``known``: what is read instead."""
    api, kind = shown_part(resource.api), shown_part(resource.kind)
    pair = (resource.api, resource.kind)
    harmless = pair in _NOT_OF_KAFKA or resource.api.startswith(_DEFINITIONS)
    if "quota" in resource.kind.lower() and not harmless:
        message = compose("{kind} of {api} is another kind of quota. Only {known} is read", kind=kind, api=api, known=known)
        out.refuse("import-unsupported", message, resource.node.items.get("kind", resource.node))
        return
    fields = [] if harmless else list(stray_quotas(resource))
    for name, line, column in fields:
        message = compose(
            "{kind} of {api} has {name}, and is not a kind that is read: only {known}. Nothing of it is converted",
            kind=kind,
            api=api,
            name=shown_part(name),
            known=known,
        )
        out.refuse("import-unsupported", message, out.at(line, column))
    if not fields:
        named = compose("of kind {kind} ({api})", kind=kind, api=api)
        left_out.add(f"resource {named}", f"resources {named}", resource.node)


def stray_quotas(resource: Resource) -> Iterator[tuple[str, int, int]]:
    """Fields anywhere in a resource that look like quotas; not in its status, and not in labels and annotations."""
    yield from metadata_quotas(resource)
    body = {name: value for name, value in resource.node.items.items() if name not in ("metadata", "status")}
    yield from quota_fields(resource.node._replace(items=body))


def metadata_quotas(resource: Resource) -> Iterator[tuple[str, int, int]]:
    """Yield the quota fields of the metadata, where they limit nothing."""
    metadata = resource.node.items.get("metadata")
    if isinstance(metadata, YamlMapping):
        own = {name: value for name, value in metadata.items.items() if name not in ("labels", "annotations", "managedFields")}
        yield from quota_fields(metadata._replace(items=own))


def _resources(node: YamlNode, out: Gatherer) -> Iterator[Resource]:
    fields = field_mapping(node)
    api, kind = field_text(fields.get("apiVersion")), field_text(fields.get("kind"))
    if not isinstance(node, YamlMapping) or api is None or kind is None:
        out.refuse("import-syntax", "this is not a resource: apiVersion or kind is missing", node)
    elif kind.endswith("List") and "spec" not in fields:
        yield from _items(node, api, kind, out)
    else:
        yield _resource(node, api, kind)


def _items(node: YamlMapping, api: str, kind: str, out: Gatherer) -> Iterator[Resource]:
    items = node.items.get("items")
    if not isinstance(items, YamlSequence):
        out.refuse("import-syntax", compose("a {kind} has a list of items", kind=kind), items or node)
        return
    refuse_unknown(node, _LIST_FIELDS, out, what=f"a {kind}")
    page = field_mapping(node.items.get("metadata")).get("continue")
    if field_text(page):
        out.refuse(
            "import-syntax", "this list is one page of several. Print all of it, without --chunk-size or --limit", page or node
        )
    for item in items.items:
        # kubectl and jikkou leave apiVersion and kind out of the items of a typed list.
        item_kind = kind.removesuffix("List")
        if isinstance(item, YamlMapping) and item_kind and not item.items.keys() & {"apiVersion", "kind"}:
            yield _resource(item, api, item_kind)
        else:
            yield from _resources(item, out)


def _resource(node: YamlMapping, api: str, kind: str) -> Resource:
    return Resource(
        api=api, kind=kind, metadata=field_mapping(node.items.get("metadata")), spec=node.items.get("spec"), node=node
    )


QUOTA_FIELD: Final = re.compile(r"quota|byte_?rate|request_?percentage|mutation_?rate|connection_?creation_?rate", re.IGNORECASE)
"""Names of fields that look as if they limited a client, in any spelling."""

_NAMES_OF_USERS: Final = ("labels", "annotations")
"""Fields whose keys are names of the user, and limit nothing."""
_JINJA: Final = re.compile(r"\{\{|\{%|\{#")


def field_text(node: YamlNode | None) -> str | None:
    """A scalar as written; ``None`` for null, nothing, lists and mappings."""
    return node.text if isinstance(node, YamlScalar) and node.data is not None else None


def field_mapping(node: YamlNode | None) -> dict[str, YamlNode]:
    """The fields of a mapping; empty for everything else."""
    return node.items if isinstance(node, YamlMapping) else {}


def is_null(node: YamlNode | None) -> bool:
    """True for a field that is absent or null."""
    return node is None or (isinstance(node, YamlScalar) and node.data is None)


def items_of(fields: YamlMapping, name: str, out: Gatherer) -> Sequence[YamlNode]:
    """The items of a list; empty when it is absent or null, and after a finding about another type."""
    node = fields.items.get(name)
    if node is not None and not is_null(node) and not isinstance(node, YamlSequence):
        out.refuse("import-syntax", f"{name} is a list here", node)
    return node.items if isinstance(node, YamlSequence) else ()


def key_span(fields: YamlMapping, name: str, out: Gatherer) -> Span:
    """The place of a key."""
    return out.at(*fields.keys[name])


def quota_fields(node: YamlNode, pattern: re.Pattern[str] = QUOTA_FIELD) -> Iterator[tuple[str, int, int]]:
    """The fields below a node, at any depth, that look like quotas: name, line and column. Not those inside such a field."""
    if isinstance(node, YamlSequence):
        for item in node.items:
            yield from quota_fields(item, pattern)
    elif isinstance(node, YamlMapping):
        for name, value in node.items.items():
            if pattern.search(name):
                yield name, *node.keys[name]
            elif name not in _NAMES_OF_USERS:
                yield from quota_fields(value, pattern)


def refuse_templates(content: bytes, out: Gatherer, message: str) -> bool:
    """Report each line with a template. The template decides which entries exist, so nothing of such a file is converted."""
    before = len(out.findings)
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=1):
        template = None if line.lstrip().startswith("#") else _JINJA.search(line)
        if template:
            out.refuse("import-template", message, out.at(number, template.start() + 1))
    return len(out.findings) > before


def refuse_unknown(node: YamlMapping, known: Collection[str], out: Gatherer, *, what: str) -> bool:
    """Report each field that the other tool does not have there."""
    unknown = [name for name in node.items if name not in known]
    for name in unknown:
        message = compose(
            "{name} is not a field of {what}, and what it limits is unknown. Known: {known}",
            name=shown_part(name),
            what=what,
            known=", ".join(known),
        )
        out.refuse("import-unsupported", message, key_span(node, name, out))
    return bool(unknown)


def read_fields(
    fields: YamlMapping, keys: Mapping[str, str], entity: Entity, out: Gatherer, *, tool: str
) -> dict[str, float] | None:
    """The quotas of a mapping from the tool's keys to values; ``None`` after an error. A null sets nothing, and is mentioned."""
    quotas: dict[str, float] = {}
    faultless = True
    for name, node in fields.items.items():
        if name not in keys:
            message = compose("{tool} has no quota {name}{hint}", tool=tool, name=shown_part(name), hint=did_you_mean(name, keys))
            out.refuse("import-unsupported", message, node, entity=entity)
            faultless = False
        elif is_null(node):
            out.refuse("import-left-out", f"{name} has no value, so it sets no limit", node, entity=entity)
        else:
            value = read_scalar(out, entity, keys[name], node)
            faultless = faultless and value is not None
            if value is not None:
                quotas[keys[name]] = value
    return quotas if faultless else None


def read_scalar(out: Gatherer, entity: Entity, key: str, node: YamlNode) -> float | None:
    """Read the value of one key; ``None`` after a finding, which a list or a mapping gets too."""
    if isinstance(node, YamlScalar):
        return read_value(out, entity, key, node.text, out.span(node))
    shape = "list" if isinstance(node, YamlSequence) else "mapping"
    out.refuse("value-syntax", f"the value of {key} is a {shape}. Write a plain number", node, entity=entity, key=key)
    return None


_API: Final = "kafka.jikkou.io/v1beta2"
_QUOTA: Final = "KafkaClientQuota"
_JIKKOU_KEYS: Final = {
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
_JINJA_TEMPLATE: Final = (
    "this is a Jinja template. Let jikkou render it (jikkou prepare, or jikkou get), and import what it prints"
)
_MARKS: Final = {
    "jikkou.io/delete": "this annotation marks the resource for deletion",
    "jikkou.io/ignore": "this annotation makes jikkou ignore it",
}


def read_jikkou(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; resources of other kinds are mentioned. Never raises."""
    out = Gatherer(file)
    left_out = LeftOut(out)
    for resource in read_resources(content, out, template=_JINJA_TEMPLATE):
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
    entity = _jikkou_entity(spec, out)
    if entity is None or unknown:
        return
    configs = spec.items.get("configs")
    if not isinstance(configs, YamlMapping):
        out.refuse("import-syntax", "a quota has a mapping as its configs", configs or spec)
        return
    quotas = read_fields(configs, _JIKKOU_KEYS, entity, out, tool="jikkou")
    if quotas is not None:
        out.add(entity, quotas, spec)


def _jikkou_entity(spec: YamlMapping, out: Gatherer) -> Entity | None:
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
