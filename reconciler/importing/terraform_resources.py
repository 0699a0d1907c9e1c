"""Resources of Terraform as far as they can be known without running it, and which of them are client quotas.

From the providers' own documentation. ``kafka_quota`` and ``kafka_quota_composite`` (Mongey/kafka and its descendants): a missing
name is the default entity. ``aiven_kafka_quota``: the name ``default`` is the default entity.
``huaweicloud_dms_kafka_user_client_quota``: a flag states it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reconciler.importing.import_result import Gatherer, read_value
from reconciler.model import DEFAULT, Entity, EntityName, Span, compose
from reconciler.text import did_you_mean, shown_part

_META: Final = frozenset({"provider", "lifecycle", "depends_on", "timeouts", "id"})
_EVALUATE: Final = "only Terraform can evaluate it. Import what terraform show -json prints"
_LOOKS_LIKE_A_QUOTA: Final = re.compile(r"kafka\w*quota|event_streams_quota")
_CLOUD_ONLY: Final = {
    "confluent_kafka_client_quota": (
        "Confluent Cloud limits service accounts over a whole cluster, and Kafka's quotas limit users on each broker. "
        "If you move to brokers of your own, decide on a limit for each broker, and write a manifest"
    ),
    "ibm_event_streams_quota": "IBM Event Streams keeps these itself, by IAM id, and not among Kafka's own quotas",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A text, a number as its text, or a truth value; ``None`` is Terraform's null."""

    value: str | bool | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Something that only Terraform can evaluate; ``text`` is its source."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class MapValue:
    """A map or an object."""

    items: Mapping[str, Value]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ListValue:
    """A list, or the repeated blocks of one name."""

    items: tuple[Value, ...]
    span: Span


Value: TypeAlias = Constant | Expression | MapValue | ListValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One ``resource`` with its arguments and nested blocks; ``address`` as Terraform calls it."""

    type: str
    address: str
    span: Span
    body: Mapping[str, Value] = field(default_factory=dict)


class _RefusedError(Exception):
    def __init__(self, rule_id: str, message: str, span: Span) -> None:
        super().__init__(message)
        self.rule_id = rule_id
        self.span = span


def read_resource(resource: Resource, out: Gatherer, *, cluster: str | None) -> None:
    """Convert one resource when it is a quota, or state why not; other resources are passed over."""
    reader = _READERS.get(resource.type)
    if reader is None:
        if resource.type in _CLOUD_ONLY:
            out.refuse("import-unsupported", f"{resource.address}: {_CLOUD_ONLY[resource.type]}", resource.span)
        elif _LOOKS_LIKE_A_QUOTA.search(resource.type):
            out.refuse("import-unsupported", f"{resource.address}: this kind of resource is not known here", resource.span)
        return
    repeated = next((name for name in ("count", "for_each", "dynamic") if name in resource.body), None)
    if repeated is not None:
        message = f"{resource.address} is made by {repeated}: {_EVALUATE}"
        out.refuse("import-template", message, resource.body[repeated].span)
        return
    try:
        entity, values = reader(resource)
    except _RefusedError as refused:
        out.refuse(refused.rule_id, str(refused), refused.span)
        return
    before = len(out.findings)
    quotas: dict[str, float] = {}
    for key, value in values.items():
        number = read_value(out, entity, key, value.value if isinstance(value.value, str) else str(value.value), value.span)
        if number is not None:
            quotas[key] = number
    if len(out.findings) == before:
        out.add(entity, quotas, resource.span, cluster=cluster)


def is_quota(resource: Resource) -> bool:
    """True for the kinds that can be converted."""
    return resource.type in _READERS


def _kafka_quota(resource: Resource) -> tuple[Entity, Mapping[str, Constant]]:
    _only(resource, {"entity_type", "entity_name", "config"})
    entity_type = _entity_type(resource.body.get("entity_type"), resource.span, ("user", "client-id", "ip"))
    name = _text(resource.body.get("entity_name"))
    # The provider does not distinguish an empty name from a missing one.
    return Entity.of({entity_type: name or DEFAULT}), _config(resource)


def _composite(resource: Resource) -> tuple[Entity, Mapping[str, Constant]]:
    _only(resource, {"entity", "config"})
    blocks = resource.body.get("entity")
    names: dict[str, EntityName] = {}
    for block in blocks.items if isinstance(blocks, ListValue) else ():
        if not isinstance(block, MapValue) or block.items.keys() - {"type", "name"}:
            raise _RefusedError("import-unsupported", "an entity has a type, and a name or none", block.span)
        entity_type = _entity_type(block.items.get("type"), block.span, ("user", "client-id"))
        if entity_type in names:
            raise _RefusedError("import-ambiguous", f"{resource.address} has two entities of type {entity_type}", block.span)
        names[entity_type] = _text(block.items.get("name")) or DEFAULT
    if len(names) != 2:
        raise _RefusedError("import-syntax", f"{resource.address} needs two entity blocks", resource.span)
    return Entity.of(names), _config(resource)


def _aiven(resource: Resource) -> tuple[Entity, Mapping[str, Constant]]:
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    _only(resource, {"project", "service_name", "user", "client_id", *keys})
    names: dict[str, EntityName] = {}
    for argument, entity_type in (("user", "user"), ("client_id", "client-id")):
        name = _text(resource.body.get(argument))
        if name:
            names[entity_type] = DEFAULT if name == "default" else name
    return _require_entity(names, resource), _values(resource, keys)


def _huawei(resource: Resource) -> tuple[Entity, Mapping[str, Constant]]:
    keys = ("producer_byte_rate", "consumer_byte_rate")
    _only(resource, {"region", "instance_id", "user", "user_default", "client", "client_default", *keys})
    names: dict[str, EntityName] = {}
    for argument, entity_type in (("user", "user"), ("client", "client-id")):
        name = _text(resource.body.get(argument))
        flag = resource.body.get(f"{argument}_default")
        is_default = _constant(flag).value in (True, "true") if flag is not None else False
        if name and is_default:
            raise _RefusedError("import-ambiguous", f"{argument} and {argument}_default exclude each other", resource.span)
        if name or is_default:
            names[entity_type] = name or DEFAULT
    return _require_entity(names, resource), _values(resource, keys)


_READERS: Final[Mapping[str, Callable[[Resource], tuple[Entity, Mapping[str, Constant]]]]] = {
    "kafka_quota": _kafka_quota,
    "kafka_quota_composite": _composite,
    "aiven_kafka_quota": _aiven,
    "huaweicloud_dms_kafka_user_client_quota": _huawei,
}


def _only(resource: Resource, known: set[str]) -> None:
    for name, value in resource.body.items():
        if name not in known and name not in _META:
            message = compose(
                "{address} has no argument {name}{hint}",
                address=resource.address,
                name=shown_part(name),
                hint=did_you_mean(name, known),
            )
            raise _RefusedError("import-unsupported", message, value.span)


def _require_entity(names: Mapping[str, EntityName], resource: Resource) -> Entity:
    if not names:
        raise _RefusedError("import-ambiguous", f"{resource.address} names neither a user nor a client", resource.span)
    return Entity.of(names)


def _entity_type(value: Value | None, span: Span, known: tuple[str, ...]) -> str:
    text = _text(value)
    if text not in known:
        place = value.span if value is not None else span
        raise _RefusedError(
            "unknown-entity-type",
            compose(
                "{text} is not an entity type{hint}",
                text=shown_part(text or ""),
                hint=did_you_mean(text or "", known),
            ),
            place,
        )
    return text


def _config(resource: Resource) -> Mapping[str, Constant]:
    config = resource.body.get("config")
    if config is None or (isinstance(config, Constant) and config.value is None):
        return {}
    if isinstance(config, ListValue) and len(config.items) == 1:
        config = config.items[0]  # a block where a map belongs, as Terraform 0.11 took it
    if not isinstance(config, MapValue):
        raise _unknown(config, f"the config of {resource.address}")
    return {key: _constant(value) for key, value in config.items.items() if not _is_null(value)}


def _values(resource: Resource, keys: tuple[str, ...]) -> Mapping[str, Constant]:
    given = {key: resource.body[key] for key in keys if key in resource.body}
    return {key: _constant(value) for key, value in given.items() if not _is_null(value)}


def _is_null(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _text(value: Value | None) -> str | None:
    """A text; ``None`` for null and for an argument that is not there."""
    if value is None:
        return None
    constant = _constant(value)
    return None if constant.value is None else constant.value if isinstance(constant.value, str) else str(constant.value).lower()


def _constant(value: Value) -> Constant:
    if isinstance(value, Constant):
        return value
    raise _unknown(value, "this")


def _unknown(value: Value, what: str) -> _RefusedError:
    if isinstance(value, Expression):
        return _RefusedError(
            "import-template",
            compose("{what} is {value}: {evaluate}", what=what, value=shown_part(value.text), evaluate=_EVALUATE),
            value.span,
        )
    return _RefusedError("import-syntax", f"{what} is a list or a map, where a text or a number belongs", value.span)
