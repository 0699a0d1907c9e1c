"""Resources in Terraform's states, and which of them are client quotas.

From the providers' own documentation. ``kafka_quota`` and ``kafka_quota_composite`` (Mongey/kafka and its descendants): a missing
name is the default entity. ``aiven_kafka_quota``: the name ``default`` is the default entity.
``huaweicloud_dms_kafka_user_client_quota``: a flag states it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.importing.import_result import Gatherer
from reconciler.features.importing.resources import LeftOut
from reconciler.features.importing.yaml_fields import field_text, is_null, quota_fields, read_fields
from reconciler.model import DEFAULT, Entity, EntityName, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

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
_CLOUD_ONLY: Final = {
    "confluent_kafka_client_quota": (
        "Confluent Cloud limits service accounts over a whole cluster, and Kafka's quotas limit users on each broker. "
        "If you move to brokers of your own, decide on a limit for each broker, and write a manifest"
    ),
    "ibm_event_streams_quota": "IBM Event Streams keeps these itself, by IAM id, and not among Kafka's own quotas",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TerraformResource:
    """One instance of a resource with its values; ``address`` as Terraform calls it, escaped."""

    type: str
    address: str
    mode: str
    body: YamlMapping
    alias: str | None = None
    """Of the provider; a printed state does not have it."""
    deposed: bool = False
    secret: YamlNode | None = None
    """What marks some of its values as sensitive."""


class _RefusedError(Exception):
    def __init__(self, rule_id: str, message: str, place: YamlNode) -> None:
        super().__init__(message)
        self.rule_id = rule_id
        self.place = place


def is_quota_type(kind: str) -> bool:
    """True for the kinds that can be converted."""
    return kind in _READERS


def cluster_names(resources: Sequence[TerraformResource]) -> Mapping[TerraformResource, str | None]:
    """Name the cluster of each quota by its provider's alias or its service; ``None`` for a single cluster without a name."""
    quotas = [resource for resource in resources if is_quota_type(resource.type)]
    services = ("project", "service_name", "region", "instance_id")
    several = len({(quota.alias, *(field_text(quota.body.items.get(name)) for name in services)) for quota in quotas}) > 1
    return {resource: _cluster(resource, several=several) for resource in resources}


def _cluster(resource: TerraformResource, *, several: bool) -> str | None:
    service = field_text(resource.body.items.get("service_name")) or field_text(resource.body.items.get("instance_id"))
    return resource.alias or service or (resource.type.partition("_")[0] if several else None)


def read_resource(resource: TerraformResource, left_out: LeftOut, out: Gatherer, *, cluster: str | None) -> None:
    """Convert one resource when it is a quota, or state why not; resources of other types are mentioned."""
    if resource.mode not in ("managed", "data"):
        message = compose(
            "{address} has the mode {mode}: managed, data", address=resource.address, mode=shown_part(resource.mode)
        )
        out.refuse("import-unsupported", message, resource.body)
    elif resource.mode == "data":
        named = compose("of type {type}", type=shown_part(resource.type))
        left_out.add(f"data source {named}", f"data sources {named}", resource.body)
    elif not is_quota_type(resource.type):
        _leave_out(resource, left_out, out)
    elif resource.deposed:
        out.refuse("import-left-out", f"{resource.address} is left out: Terraform will delete this instance", resource.body)
    elif resource.secret is not None:
        out.refuse("import-unsupported", f"{resource.address} {_SENSITIVE}", resource.secret)
    else:
        _convert(resource, out, cluster=cluster)


def _leave_out(resource: TerraformResource, left_out: LeftOut, out: Gatherer) -> None:
    kind = resource.type
    if kind in _CLOUD_ONLY:
        out.refuse("import-unsupported", f"{resource.address}: {_CLOUD_ONLY[kind]}", resource.body)
    elif "quota" in kind and not _NOT_OF_KAFKA.fullmatch(kind):
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


def _convert(resource: TerraformResource, out: Gatherer, *, cluster: str | None) -> None:
    try:
        entity, fields = _READERS[resource.type](resource)
    except _RefusedError as refused:
        out.refuse(refused.rule_id, str(refused), refused.place)
        return
    quotas = read_fields(fields, _KEYS, entity, out, tool=resource.type)
    if quotas is not None:
        out.add(entity, quotas, resource.body, cluster=cluster)


def _kafka_quota(resource: TerraformResource) -> tuple[Entity, YamlMapping]:
    _only(resource, {"entity_type", "entity_name", "config"})
    entity_type = _entity_type(resource.body, "entity_type", ("user", "client-id", "ip"))
    # The provider does not distinguish an empty name from a missing one.
    return Entity.of({entity_type: _text(resource.body, "entity_name") or DEFAULT}), _config(resource)


def _composite(resource: TerraformResource) -> tuple[Entity, YamlMapping]:
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


def _aiven(resource: TerraformResource) -> tuple[Entity, YamlMapping]:
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    _only(resource, {"project", "service_name", "user", "client_id", *keys})
    names: dict[str, EntityName] = {}
    for argument, entity_type in (("user", "user"), ("client_id", "client-id")):
        name = _text(resource.body, argument)
        if name:
            names[entity_type] = DEFAULT if name == "default" else name
    return _require_entity(names, resource), _set_values(resource, keys)


def _huawei(resource: TerraformResource) -> tuple[Entity, YamlMapping]:
    keys = ("producer_byte_rate", "consumer_byte_rate")
    _only(resource, {"region", "instance_id", "user", "user_default", "client", "client_default", *keys})
    names: dict[str, EntityName] = {}
    for argument, entity_type in (("user", "user"), ("client", "client-id")):
        name, flag = _text(resource.body, argument), _text(resource.body, f"{argument}_default")
        if flag not in (None, "true", "false"):
            place = resource.body.items[f"{argument}_default"]
            raise _RefusedError("import-syntax", f"{argument}_default is true or false", place)
        if name and flag == "true":
            raise _RefusedError("import-ambiguous", f"{argument} and {argument}_default exclude each other", resource.body)
        if name or flag == "true":
            names[entity_type] = name or DEFAULT
    return _require_entity(names, resource), _set_values(resource, keys)


_READERS: Final[Mapping[str, Callable[[TerraformResource], tuple[Entity, YamlMapping]]]] = {
    "kafka_quota": _kafka_quota,
    "kafka_quota_composite": _composite,
    "aiven_kafka_quota": _aiven,
    "huaweicloud_dms_kafka_user_client_quota": _huawei,
}


def _only(resource: TerraformResource, known: set[str]) -> None:
    for name in resource.body.items:
        if name not in known and name not in _META:
            message = compose(
                "{address} has no argument {name}{hint}",
                address=resource.address,
                name=shown_part(name),
                hint=did_you_mean(name, known),
            )
            raise _RefusedError("import-unsupported", str(message), resource.body.items[name])


def _require_entity(names: Mapping[str, EntityName], resource: TerraformResource) -> Entity:
    if not names:
        raise _RefusedError("import-ambiguous", f"{resource.address} names neither a user nor a client", resource.body)
    return Entity.of(names)


def _entity_type(fields: YamlMapping, name: str, known: tuple[str, ...]) -> str:
    text = _text(fields, name)
    if text not in known:
        message = compose("{text} is not an entity type{hint}", text=shown_part(text or ""), hint=did_you_mean(text or "", known))
        raise _RefusedError("unknown-entity-type", str(message), fields.items.get(name, fields))
    return text


def _config(resource: TerraformResource) -> YamlMapping:
    config = resource.body.items.get("config")
    if config is None or is_null(config):
        return resource.body._replace(items={})
    if not isinstance(config, YamlMapping):
        raise _RefusedError("import-syntax", f"the config of {resource.address} is not a mapping", config)
    return config


def _set_values(resource: TerraformResource, keys: tuple[str, ...]) -> YamlMapping:
    """The arguments that are set: a state has every argument, and null for the others."""
    fields = resource.body.items
    return resource.body._replace(items={key: fields[key] for key in keys if not is_null(fields.get(key))})


def _text(fields: YamlMapping, name: str) -> str | None:
    """An argument as written; ``None`` for null and for one that is not there."""
    node = fields.items.get(name)
    if node is None or is_null(node):
        return None
    if not isinstance(node, YamlScalar):
        raise _RefusedError("import-syntax", f"{name} is a list or a mapping, where a text belongs", node)
    return node.text
