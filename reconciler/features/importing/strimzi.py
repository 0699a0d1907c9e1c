"""Strimzi's ``KafkaUser`` and the default quotas of its ``Kafka``, as its operators apply them.

The User Operator sets the quotas of the user ``CN=NAME`` for ``tls`` and ``tls-external``, and of ``NAME`` otherwise. The Cluster
Operator sets the default user's when ``spec.kafka.quotas`` has the type ``kafka``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from reconciler.features.importing.import_result import Gatherer, ImportResult, plain_number
from reconciler.features.importing.resources import (
    RESOURCE_FIELDS,
    LeftOut,
    Resource,
    field_mapping,
    field_text,
    is_null,
    leave_out,
    read_fields,
    read_resources,
    refuse_unknown,
    stray_quotas,
)
from reconciler.model import DEFAULT, INT_MAX, LONG_MAX, Entity, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

_APIS: Final = tuple(f"kafka.strimzi.io/{version}" for version in ("v1", "v1beta2", "v1beta1", "v1alpha1"))
_CLUSTER_LABEL: Final = "strimzi.io/cluster"
_KEYS: Final = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
    "controllerMutationRate": "controller_mutation_rate",
}
_USER_FIELDS: Final = ("authentication", "authorization", "quotas", "template")
_PREFIXES: Final[Mapping[str, str]] = {"tls": "CN=", "tls-external": "CN=", "scram-sha-512": ""}
"""What the User Operator puts before the resource's name, by type of authentication."""
_WHOLE: Final = ("producerByteRate", "consumerByteRate", "requestPercentage")
_PLUGIN: Final = (
    "the quota plugin strimzi limits all clients of a broker together, and Kafka's client quotas are off while it is configured. "
    "Choose the type kafka to limit each user, and write the values anew"
)
_CALLBACK: Final = "client.quota.callback.class"
_WINDOWS: Final = re.compile(
    r"(?:controller\.|replication\.|alter\.log\.dirs\.replication\.)?quota\.window\.(?:num|size\.seconds)"
)
"""Settings of a broker that have the word in their names, and limit no client."""
_HELM: Final = "this is a template. Let Helm render it (helm template), or print the resources with kubectl get -o yaml"


def read_strimzi(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; resources of other kinds, and users without quotas, are mentioned. Never raises."""
    out = Gatherer(file)
    left_out = LeftOut(out)
    for resource in read_resources(content, out, template=_HELM):
        if resource.api in _APIS and resource.kind == "KafkaUser":
            _user(resource, left_out, out)
        elif resource.api in _APIS and resource.kind == "Kafka":
            _kafka(resource, left_out, out)
        else:
            leave_out(resource, left_out, out, known=f"KafkaUser and Kafka of {_APIS[0]} or {_APIS[1]}")
    left_out.mention()
    return out.found()


def _user(resource: Resource, left_out: LeftOut, out: Gatherer) -> None:
    spec = resource.spec
    if not is_null(spec) and not isinstance(spec, YamlMapping):
        out.refuse("import-syntax", "the spec of a KafkaUser is a mapping", spec or resource.node)
        return
    unknown = refuse_unknown(resource.node, RESOURCE_FIELDS, out, what="a KafkaUser")
    if isinstance(spec, YamlMapping):
        unknown = refuse_unknown(spec, _USER_FIELDS, out, what="the spec of a KafkaUser") or unknown
    if unknown or _misplaced(resource, spec, out, place="spec.quotas"):
        return
    quotas = field_mapping(spec).get("quotas")
    if quotas is None or is_null(quotas):
        left_out.add("KafkaUser without quotas", "KafkaUsers without quotas", resource.node)
    elif not isinstance(quotas, YamlMapping):
        out.refuse("import-syntax", "the quotas of a KafkaUser are a mapping", quotas)
    elif not is_null(resource.metadata.get("deletionTimestamp")):
        out.refuse("import-left-out", "this KafkaUser is left out: it is being deleted", resource.node)
    else:
        principal = _principal(resource, out)
        if principal is not None:
            cluster = field_mapping(resource.metadata.get("labels")).get(_CLUSTER_LABEL)
            _add(quotas, Entity.of({"user": principal}), resource, out, most=INT_MAX, cluster=cluster)


def _misplaced(resource: Resource, parent: YamlNode | None, out: Gatherer, *, place: str) -> bool:
    """Report fields that look like quotas, and are not the field ``quotas`` of ``parent``."""
    own = parent.keys.get("quotas") if isinstance(parent, YamlMapping) else None
    fields = [(name, at) for name, *at in stray_quotas(resource) if tuple(at) != own and not _WINDOWS.fullmatch(name)]
    for name, at in fields:
        message = compose(
            "{name} is not read here: a {kind} has its quotas in {place}",
            name=shown_part(name),
            kind=resource.kind,
            place=place,
        )
        out.refuse("import-unsupported", message, out.at(*at))
    return bool(fields)


def _principal(resource: Resource, out: Gatherer) -> str | None:
    """The user whose quotas the User Operator sets for a KafkaUser; ``None`` after a finding."""
    name = _name(resource, out)
    authentication = field_mapping(resource.spec).get("authentication")
    if name is None or authentication is None or is_null(authentication):
        return name
    kind_node = field_mapping(authentication).get("type")
    kind = field_text(kind_node) or ""
    if kind in _PREFIXES:
        return _PREFIXES[kind] + name
    message = compose(
        "the authentication type {kind} is not known, so the user's principal is not either{hint}",
        kind=shown_part(kind),
        hint=did_you_mean(kind, _PREFIXES),
    )
    out.refuse("import-unsupported", message, kind_node or authentication)
    return None


def _name(resource: Resource, out: Gatherer) -> str | None:
    node = resource.metadata.get("name")
    if isinstance(node, YamlScalar) and isinstance(node.data, str) and node.data:
        return node.data
    message = f"the metadata.name of a {resource.kind} is a text, and this one has none"
    out.refuse("import-syntax", message, resource.node if node is None else node)
    return None


def _kafka(resource: Resource, left_out: LeftOut, out: Gatherer) -> None:
    kafka = field_mapping(resource.spec).get("kafka")
    callback = field_mapping(field_mapping(kafka).get("config")).get(_CALLBACK)
    if callback is not None and not is_null(callback):
        message = compose(
            "{name} sets {callback}: this class decides the limits, and its settings are not client quotas",
            name=_CALLBACK,
            callback=shown_part(field_text(callback) or ""),
        )
        out.refuse("import-unsupported", message, callback)
        return
    unknown = refuse_unknown(resource.node, RESOURCE_FIELDS, out, what="a Kafka")
    if unknown or _misplaced(resource, kafka, out, place="spec.kafka.quotas"):
        return
    quotas = field_mapping(kafka).get("quotas")
    kind = field_mapping(quotas).get("type")
    if quotas is None or is_null(quotas):
        left_out.add("Kafka without quotas", "Kafkas without quotas", resource.node)
    elif not isinstance(quotas, YamlMapping) or kind is None or field_text(kind) is None:
        out.refuse("import-syntax", "spec.kafka.quotas is a mapping with a type: kafka or strimzi", quotas)
    elif field_text(kind) == "strimzi":
        out.refuse("import-unsupported", _PLUGIN, kind)
    elif field_text(kind) != "kafka":
        message = compose("the quota plugin {kind} is not known: kafka, strimzi", kind=shown_part(field_text(kind) or ""))
        out.refuse("import-unsupported", message, kind)
    elif _name(resource, out) is not None:
        limits = quotas._replace(items={name: node for name, node in quotas.items.items() if name != "type"})
        _add(limits, Entity.of({"user": DEFAULT}), resource, out, most=LONG_MAX, cluster=resource.metadata["name"])


def _add(
    fields: YamlMapping, entity: Entity, resource: Resource, out: Gatherer, *, most: float, cluster: YamlNode | None
) -> None:
    namespace = resource.metadata.get("namespace")
    for node, what in ((cluster, f"the label {_CLUSTER_LABEL}"), (namespace, "the namespace")):
        if node is not None and field_text(node) is None:
            out.refuse("import-syntax", f"{what} is a text, and this one has no value", node, entity=entity)
            return
    if _refused_by_schema(fields, most, entity, out):
        return
    quotas = read_fields(fields, _KEYS, entity, out, tool="Strimzi")
    if quotas is not None:
        out.add(entity, quotas, fields, cluster=field_text(cluster), namespace=field_text(namespace))


def _refused_by_schema(fields: YamlMapping, most: float, entity: Entity, out: Gatherer) -> bool:
    """Report values that the resource's own schema refuses, so that no operator ever applied them."""
    before = len(out.findings)
    for name, node in fields.items.items():
        number = plain_number(field_text(node) or "") if name in _KEYS else None
        if number is None or math.isinf(number):
            continue
        takes = "a number" if name not in _WHOLE else f"a whole number up to {most:.0f}"
        quoted = isinstance(node.data, str)
        if quoted or (name in _WHOLE and (not number.is_integer() or number > most)):
            message = compose(
                "{name} is {value}{quoted}, and Strimzi takes {takes}. Correct the resource",
                name=name,
                value=shown_part(field_text(node) or ""),
                quoted=", a text in quotes" if quoted else "",
                takes=takes,
            )
            out.refuse("import-ambiguous", message, node, entity=entity)
    return len(out.findings) > before
