"""Strimzi's ``KafkaUser`` and the default quotas of its ``Kafka``, as its operators apply them.

The User Operator sets the quotas of the user ``CN=NAME`` for ``tls`` and ``tls-external``, and of ``NAME`` otherwise. The Cluster
Operator sets the default user's when ``spec.kafka.quotas`` has the type ``kafka``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.importing.import_result import Gatherer, ImportResult, plain_number
from reconciler.importing.kubernetes import KubernetesResource, read_resources
from reconciler.importing.yaml_fields import CAMEL_KEYS, field_mapping, field_text, is_null, read_fields
from reconciler.model import DEFAULT, INT_MAX, LONG_MAX, Entity, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode

_API: Final = "kafka.strimzi.io/"
_CLUSTER_LABEL: Final = "strimzi.io/cluster"
_KEYS: Final = {name: key for name, key in CAMEL_KEYS.items() if name != "connectionCreationRate"}
_PREFIXES: Final[Mapping[str, str]] = {"tls": "CN=", "tls-external": "CN=", "scram-sha-512": ""}
"""What the User Operator puts before the resource's name, by type of authentication."""
_WHOLE: Final = ("producerByteRate", "consumerByteRate", "requestPercentage")
_PLUGIN: Final = (
    "the quota plugin strimzi limits all clients of a broker together, and Kafka's client quotas are off while it is configured. "
    "Choose the type kafka to limit each user, and write the values anew"
)
_CALLBACK: Final = "client.quota.callback.class"


def read_strimzi(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; resources of other kinds, and users without quotas, are passed over. Never raises."""
    out = Gatherer(file)
    for resource in read_resources(content, out):
        if resource.api.startswith(_API) and resource.kind == "KafkaUser":
            _user(resource, out)
        elif resource.api.startswith(_API) and resource.kind == "Kafka":
            _kafka(resource, out)
    return out.found()


def principal_of(resource: KubernetesResource) -> str | None:
    """The user whose quotas the User Operator sets for a KafkaUser; ``None`` for one that it refuses itself."""
    authentication = field_mapping(resource.spec).get("authentication")
    if not resource.name:
        return None
    if is_null(authentication):
        return resource.name
    prefix = _PREFIXES.get(field_text(field_mapping(authentication).get("type")) or "")
    return None if prefix is None else prefix + resource.name


def _user(resource: KubernetesResource, out: Gatherer) -> None:
    spec = resource.spec
    quotas = field_mapping(spec).get("quotas")
    if is_null(quotas) and (is_null(spec) or isinstance(spec, YamlMapping)):
        return
    if not isinstance(spec, YamlMapping) or not isinstance(quotas, YamlMapping):
        out.refuse("import-syntax", "the spec and the quotas of a KafkaUser are mappings", quotas or spec or resource.node)
        return
    if not resource.name:
        out.refuse("import-syntax", "this KafkaUser has no metadata.name", resource.node)
        return
    principal = principal_of(resource)
    if principal is None:
        authentication = spec.items["authentication"]
        kind = field_text(field_mapping(authentication).get("type")) or ""
        message = compose(
            "the authentication type {kind} is not known, so the user's principal is not either{hint}",
            kind=shown_part(kind),
            hint=did_you_mean(kind, _PREFIXES),
        )
        out.refuse("import-unsupported", message, field_mapping(authentication).get("type", authentication))
        return
    cluster = field_text(resource.labels.get(_CLUSTER_LABEL))
    entity = Entity.of({"user": principal})
    _add(quotas, entity, out, most=INT_MAX, cluster=cluster, namespace=resource.namespace)


def _kafka(resource: KubernetesResource, out: Gatherer) -> None:
    kafka = field_mapping(field_mapping(resource.spec).get("kafka"))
    config, quotas = field_mapping(kafka.get("config")), kafka.get("quotas")
    callback = config.get(_CALLBACK)
    if not is_null(callback) and callback is not None:
        message = compose(
            "{name} sets {callback}: this class decides the limits, and its settings are not client quotas",
            name=_CALLBACK,
            callback=shown_part(field_text(callback) or ""),
        )
        out.refuse("import-unsupported", message, callback)
    if quotas is None or is_null(quotas):
        return
    kind = field_text(field_mapping(quotas).get("type"))
    if not isinstance(quotas, YamlMapping) or kind is None:
        out.refuse("import-syntax", "spec.kafka.quotas is a mapping with a type: kafka or strimzi", quotas)
    elif kind == "strimzi":
        out.refuse("import-unsupported", _PLUGIN, quotas.items["type"])
    elif kind != "kafka":
        out.refuse(
            "import-unsupported",
            compose("the quota plugin {kind} is not known: kafka, strimzi", kind=shown_part(kind)),
            quotas.items["type"],
        )
    elif not resource.name:
        out.refuse("import-syntax", "this Kafka has no metadata.name", resource.node)
    else:
        fields = {name: node for name, node in quotas.items.items() if name != "type"}
        entity = Entity.of({"user": DEFAULT})
        limits = quotas._replace(items=fields)
        _add(limits, entity, out, most=LONG_MAX, cluster=resource.name, namespace=resource.namespace)


def _add(fields: YamlMapping, entity: Entity, out: Gatherer, *, most: float, cluster: str | None, namespace: str | None) -> None:
    if _refuse_fractions(fields, most, entity, out):
        return
    quotas = read_fields(fields, _KEYS, entity, out, tool="Strimzi")
    if quotas is not None:
        out.add(entity, quotas, fields, cluster=cluster, namespace=namespace)


def _refuse_fractions(fields: YamlMapping, most: float, entity: Entity, out: Gatherer) -> bool:
    """Values that the resource's own schema refuses, so that no operator ever applied them."""
    before = len(out.findings)
    for name in _WHOLE:
        node: YamlNode | None = fields.items.get(name)
        number = plain_number(field_text(node) or "")
        if node is not None and number is not None and (not number.is_integer() or number > most):
            message = compose(
                "{name} is {value}, and Strimzi takes whole numbers up to {most}. Correct the resource",
                name=name,
                value=shown_part(field_text(node) or ""),
                most=int(most),
            )
            out.refuse("import-ambiguous", message, node, entity=entity)
    return len(out.findings) > before
