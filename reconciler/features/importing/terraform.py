"""Raw states of version 4, as ``terraform state pull`` and ``tofu state pull`` print them, and the quotas among their resources.

By the documentation of the providers, a missing name of ``kafka_quota`` and ``kafka_quota_composite`` (Mongey/kafka and its
descendants) is the default entity, and so is the name ``default`` of ``aiven_kafka_quota``. A raw state has the provider of each
resource, and so distinguishes clusters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.importing.import_result import Gatherer, ImportResult
from reconciler.features.importing.resources import (
    LeftOut,
    field_mapping,
    field_text,
    is_null,
    items_of,
    quota_fields,
    read_fields,
)
from reconciler.model import DEFAULT, Entity, EntityName, compose, escaped
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

_CONFIGURATION_FILES: Final = (".tf", ".tf.json", ".tofu", ".tofu.json", ".tfvars", ".hcl")
_EVALUATE: Final = (
    "this is Terraform's configuration, which only Terraform can evaluate. Import the state: what 'terraform state pull' prints"
)
_NOT_A_STATE: Final = "this is not a raw state of version 4. Import what 'terraform state pull' or 'tofu state pull' prints"
_ALIAS: Final = re.compile(r'provider\["(?:[^"\\]|\\.)*"\]\.(?P<alias>[A-Za-z0-9_-]+)\Z')
_KEYS: Final = {
    name: name
    for name in (
        "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "connection_creation_rate",
    )
}  # fmt: skip
_META: Final = frozenset({"timeouts", "id"})
_NOT_OF_KAFKA: Final = re.compile(r"(?:aws_servicequotas|kubernetes_resource_quota|google|azurerm|openstack|vault)_(?!.*kafka).*")
"""Quotas of a cloud's projects, of namespaces and of storage."""
_KAFKA_FIELD: Final = re.compile(
    r"(?:producer|consumer|ingress|egress)_?byte_?rate|request_?percentage|mutation_?rate|connection_?creation_?rate",
    re.IGNORECASE,
)
_SENSITIVE: Final = (
    "has values that Terraform keeps as sensitive, and a manifest is text for everyone who reads the repository. "
    "Write this one by hand"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Resource:
    """One instance of a resource with its values; ``address`` as Terraform calls it, escaped."""

    type: str
    address: str
    mode: str
    body: YamlMapping
    alias: str | None
    deposed: bool
    sensitive: YamlNode | None


class _RefusedError(Exception):
    def __init__(self, rule_id: str, message: str, place: YamlNode) -> None:
        super().__init__(message)
        self.rule_id = rule_id
        self.place = place


def read_terraform(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; other resources are mentioned. Never raises."""
    out = Gatherer(file)
    if file.endswith(_CONFIGURATION_FILES):
        out.refuse("import-template", _EVALUATE, out.at(1))
        return out.found()
    left_out = LeftOut(out)
    resources = list(_resources(content, out))
    quotas = [each for each in resources if each.type in _READERS]
    several = (
        len({(each.alias, *(field_text(each.body.items.get(name)) for name in ("project", "service_name"))) for each in quotas})
        > 1
    )
    for resource in resources:
        _read(resource, left_out, out, several=several)
    left_out.mention()
    return out.found()


def _resources(content: bytes, out: Gatherer) -> Iterator[_Resource]:
    stream = read_yaml(content)  # every JSON that Terraform writes is YAML, and this reader has the places
    if out.problems(stream.problems) or not stream.documents:
        return
    root, *more = stream.documents
    if more or not isinstance(root, YamlMapping) or field_text(root.items.get("version")) != "4":
        out.refuse("import-syntax", _NOT_A_STATE, root)
        return
    for node in items_of(root, "resources", out):
        yield from _instances(node, out)


def _instances(node: YamlNode, out: Gatherer) -> Iterator[_Resource]:
    fields = field_mapping(node)
    kind, name, mode, module = (field_text(fields.get(field)) for field in ("type", "name", "mode", "module"))
    if not isinstance(node, YamlMapping) or not kind or not name or not mode:
        out.refuse("import-syntax", "a resource of a raw state has a type, a name and a mode", node)
        return
    alias = _ALIAS.search(field_text(fields.get("provider")) or "")
    address = f"{module}.{kind}.{name}" if module else f"{kind}.{name}"
    for instance in items_of(node, "instances", out):
        attributes = field_mapping(instance).get("attributes")
        if not isinstance(instance, YamlMapping) or not isinstance(attributes, YamlMapping):
            message = compose("an instance of {address} has no mapping as its attributes", address=escaped(address))
            out.refuse("import-syntax", message, instance)
            continue
        marks = instance.items.get("sensitive_attributes")
        yield _Resource(
            type=kind,
            address=escaped(address + _index(instance.items.get("index_key"))),
            mode=mode,
            body=attributes,
            alias=alias["alias"] if alias else None,
            deposed=not is_null(instance.items.get("deposed")),
            sensitive=None if is_null(marks) or (isinstance(marks, YamlSequence) and not marks.items) else marks,
        )


def _index(node: YamlNode | None) -> str:
    key = getattr(node, "data", None)
    return "" if key is None else f'["{key}"]' if isinstance(key, str) else f"[{key}]"


def _read(resource: _Resource, left_out: LeftOut, out: Gatherer, *, several: bool) -> None:
    """Convert one resource when it is a quota, or state why not; resources of other types are mentioned."""
    kind = shown_part(resource.type)
    if resource.mode != "managed":
        named = compose("of type {type}", type=kind)
        left_out.add(f"data source {named}", f"data sources {named}", resource.body)
    elif resource.type not in _READERS:
        _leave_out(resource, left_out, out)
    elif resource.deposed:
        out.refuse("import-left-out", f"{resource.address} is left out: Terraform will delete this instance", resource.body)
    elif resource.sensitive is not None:
        out.refuse("import-unsupported", f"{resource.address} {_SENSITIVE}", resource.sensitive)
    else:
        try:
            entity, fields = _READERS[resource.type](resource)
        except _RefusedError as refused:
            out.refuse(refused.rule_id, str(refused), refused.place)
            return
        quotas = read_fields(fields, _KEYS, entity, out, tool=resource.type)
        if quotas is not None:
            service = field_text(resource.body.items.get("service_name"))
            cluster = resource.alias or service or (resource.type.partition("_")[0] if several else None)
            out.add(entity, quotas, resource.body, cluster=cluster)


def _leave_out(resource: _Resource, left_out: LeftOut, out: Gatherer) -> None:
    kind = resource.type
    if "quota" in kind and not _NOT_OF_KAFKA.fullmatch(kind):
        out.refuse("import-unsupported", f"{resource.address}: this type of quota is not known here", resource.body)
    elif field := next(quota_fields(resource.body, _KAFKA_FIELD), None):
        name, line, column = field
        message = compose(
            "{address} has {name}, and this type of resource is not known here", address=resource.address, name=shown_part(name)
        )
        out.refuse("import-unsupported", message, out.at(line, column))
    else:
        named = compose("of type {type}", type=shown_part(kind))
        left_out.add(f"resource {named}", f"resources {named}", resource.body)


def _kafka_quota(resource: _Resource) -> tuple[Entity, YamlMapping]:
    _only(resource, {"entity_type", "entity_name", "config"})
    entity_type = _entity_type(resource.body, "entity_type", ("user", "client-id", "ip"))
    # The provider does not distinguish an empty name from a missing one.
    return Entity.of({entity_type: _text(resource.body, "entity_name") or DEFAULT}), _config(resource)


def _composite(resource: _Resource) -> tuple[Entity, YamlMapping]:
    _only(resource, {"entity", "config"})
    blocks = resource.body.items.get("entity")
    if not isinstance(blocks, YamlSequence):
        raise _RefusedError("import-syntax", f"{resource.address} has a list of entities", blocks or resource.body)
    names: dict[str, EntityName] = {}
    for block in blocks.items:
        if not isinstance(block, YamlMapping) or block.items.keys() - {"type", "name"}:
            raise _RefusedError("import-unsupported", "an entity has a type, and a name or none", block)
        entity_type = _entity_type(block, "type", ("user", "client-id"))
        if entity_type in names:
            raise _RefusedError("import-ambiguous", f"{resource.address} has two entities of type {entity_type}", block)
        names[entity_type] = _text(block, "name") or DEFAULT
    if len(names) < 2:
        raise _RefusedError("import-syntax", f"{resource.address} has two entities, a user and a client-id", resource.body)
    return Entity.of(names), _config(resource)


def _aiven(resource: _Resource) -> tuple[Entity, YamlMapping]:
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    _only(resource, {"project", "service_name", "user", "client_id", *keys})
    names: dict[str, EntityName] = {}
    for argument, entity_type in (("user", "user"), ("client_id", "client-id")):
        if name := _text(resource.body, argument):
            names[entity_type] = DEFAULT if name == "default" else name
    if not names:
        raise _RefusedError("import-ambiguous", f"{resource.address} names neither a user nor a client", resource.body)
    # A state has every argument, and null for those that are not set.
    fields = resource.body.items
    return Entity.of(names), resource.body._replace(items={key: fields[key] for key in keys if not is_null(fields.get(key))})


_READERS: Final[Mapping[str, Callable[[_Resource], tuple[Entity, YamlMapping]]]] = {
    "kafka_quota": _kafka_quota,
    "kafka_quota_composite": _composite,
    "aiven_kafka_quota": _aiven,
}


def _only(resource: _Resource, known: set[str]) -> None:
    for name in resource.body.items:
        if name not in known and name not in _META:
            message = compose(
                "{address} has no argument {name}{hint}",
                address=resource.address,
                name=shown_part(name),
                hint=did_you_mean(name, known),
            )
            raise _RefusedError("import-unsupported", str(message), resource.body.items[name])


def _entity_type(fields: YamlMapping, name: str, known: Sequence[str]) -> str:
    text = _text(fields, name)
    if text is None or text not in known:
        message = compose("{text} is not an entity type{hint}", text=shown_part(text or ""), hint=did_you_mean(text or "", known))
        raise _RefusedError("unknown-entity-type", str(message), fields.items.get(name, fields))
    return text


def _config(resource: _Resource) -> YamlMapping:
    config = resource.body.items.get("config")
    if config is None or is_null(config):
        return resource.body._replace(items={})
    if not isinstance(config, YamlMapping):
        raise _RefusedError("import-syntax", f"the config of {resource.address} is not a mapping", config)
    return config


def _text(fields: YamlMapping, name: str) -> str | None:
    """An argument as written; ``None`` for null and for one that is not there."""
    node = fields.items.get(name)
    if node is None or is_null(node):
        return None
    if not isinstance(node, YamlScalar):
        raise _RefusedError("import-syntax", f"{name} is a list or a mapping, where a text belongs", node)
    return node.text
