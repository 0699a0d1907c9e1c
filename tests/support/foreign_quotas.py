"""Writes quotas as files of other tools, in the formats that their documentation gives; independent of what reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from reconciler.model.entity import DEFAULT, Entity

State = Mapping[Entity, Mapping[str, float]]

JIKKOU_KEYS = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
}
JIKKOU_TYPES = {
    ("default", None): "USERS_DEFAULT",
    ("named", None): "USER",
    ("named", "named"): "USER_CLIENT",
    ("named", "default"): "USER_ALL_CLIENTS",
    (None, "named"): "CLIENT",
    (None, "default"): "CLIENTS_DEFAULT",
}


def _kind(entity: Entity, entity_type: str) -> str | None:
    name = entity.name(entity_type)
    return None if name is None else "default" if name is DEFAULT else "named"


def _quoted(text: str) -> str:
    """In double quotes for YAML: everything unusual as an escape of eight digits."""
    return '"' + "".join(c if c.isascii() and (c.isalnum() or c in " _.:@/-") else f"\\U{ord(c):08x}" for c in text) + '"'


def jikkou_has(entity: Entity, quotas: Mapping[str, float]) -> bool:
    shape = (_kind(entity, "user"), _kind(entity, "client-id"))
    return "ip" not in entity.types and shape in JIKKOU_TYPES and set(quotas) <= set(JIKKOU_KEYS)


def jikkou(state: State) -> str:
    documents = []
    for entity, quotas in state.items():
        names = {"user": entity.name("user"), "clientId": entity.name("client-id")}
        named = ", ".join(f"{field}: {_quoted(name)}" for field, name in names.items() if isinstance(name, str))
        configs = ", ".join(f"{JIKKOU_KEYS[key]}: {value!r}" for key, value in quotas.items())
        kind = JIKKOU_TYPES[_kind(entity, "user"), _kind(entity, "client-id")]
        documents.append(
            "apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuota\nmetadata: {labels: {}, annotations: {}}\nspec:\n"
            f"  type: {kind}\n  entity: {{{named}}}\n  configs: {{{configs}}}\n"
        )
    return "---\n".join(documents)


def terraform_state(state: State) -> str:
    """A raw state of it, as ``terraform state pull`` prints it, on one line."""
    rows = []
    for entity, quotas in state.items():
        parts = [{"type": t, "name": None if n is DEFAULT else n} for t, n in entity.parts]
        single = {"entity_type": parts[0]["type"], "entity_name": parts[0]["name"]}
        kind = "kafka_quota" if len(parts) == 1 else "kafka_quota_composite"
        values = {**(single if len(parts) == 1 else {"entity": parts}), "config": quotas, "id": "x"}
        instance = {"schema_version": 0, "attributes": values, "sensitive_attributes": []}
        rows.append({"mode": "managed", "type": kind, "name": "q", "provider": "p", "instances": [instance]})
    document = {"version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "x", "outputs": {}, "resources": rows}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return "".join(c if c.isprintable() or c == "\u2028" else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text)


def strimzi_has(entity: Entity, quotas: Mapping[str, float]) -> bool:
    whole = all(value.is_integer() and value < 2**31 for key, value in quotas.items() if key != "controller_mutation_rate")
    plain = quotas.get("controller_mutation_rate", 1.0) < 2**63  # more digits than a YAML number has are a text
    return (
        entity.types == ("user",)
        and entity.name("user") is not DEFAULT
        and whole
        and plain
        and "connection_creation_rate" not in quotas
    )


def strimzi(state: State) -> str:
    """Users without authentication, whose quotas are those of the resource's name."""
    documents = []
    for entity, quotas in state.items():
        camel = {re.sub("_(.)", lambda m: m[1].upper(), key): value for key, value in quotas.items()}
        fields = ", ".join(f"{key}: {value if value % 1 else int(value)!r}" for key, value in camel.items())
        documents.append(
            "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\n"
            f"metadata: {{name: {_quoted(str(entity.name('user')))}}}\nspec:\n  quotas: {{{fields}}}\n"
        )
    return "---\n".join(documents)
