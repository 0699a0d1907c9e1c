"""Resources with an apiVersion and a kind, as Kubernetes and jikkou have them: streams, lists of one kind or of several."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.importing.import_result import Gatherer, read_value
from reconciler.model import Entity, Span, compose
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
    """Those of its metadata, where they limit nothing."""
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
