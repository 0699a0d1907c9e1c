"""Writes quotas as files of other tools, in the formats that their documentation gives; independent of what reads them."""

from __future__ import annotations

import json
import shlex
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
CONFIG_TYPES = {"user": "users", "client-id": "clients", "ip": "ips"}
DESCRIBED_TYPES = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}


def _kind(entity: Entity, entity_type: str) -> str | None:
    name = entity.name(entity_type)
    return None if name is None else "default" if name is DEFAULT else "named"


def _quoted(text: str) -> str:
    """In double quotes for YAML and for Terraform's language: everything unusual as an escape of eight digits."""
    return '"' + "".join(c if c.isascii() and (c.isalnum() or c in " _.:@/-") else f"\\U{ord(c):08x}" for c in text) + '"'


def _java(number: float) -> str:
    """A double as Java prints it, near enough: ``1024.0``, ``1.0E16``."""
    return repr(number).replace("e+", "E").replace("e", "E")


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


def helmsman_has(entity: Entity, quotas: Mapping[str, float]) -> bool:
    whole = all(value.is_integer() and value < 2**31 for value in quotas.values())
    literal = any(name == "<default>" for _, name in entity.parts)
    return "ip" not in entity.types and whole and not literal and set(quotas) <= set(JIKKOU_KEYS)


def helmsman(state: State) -> str:
    lines = ["kafka: {bootstrap.servers: 'b1:9092'}", "quotas:"]
    for entity, quotas in state.items():
        fields = {"principal": entity.name("user"), "client": entity.name("client-id")}
        parts = [f"{f}: {'<default>' if n is DEFAULT else _quoted(str(n))}" for f, n in fields.items() if n is not None]
        parts += [f"{key.replace('_', '-')}: {int(value)}" for key, value in quotas.items()]
        lines.append(f"  - {{{', '.join(parts)}}}")
    return "\n".join([*lines, ""])


def terraform(state: State) -> str:
    """Every entity as ``kafka_quota`` or ``kafka_quota_composite``."""
    blocks = []
    for number, (entity, quotas) in enumerate(state.items()):
        config = "".join(f'    "{key}" = "{value!r}"\n' for key, value in quotas.items())
        if len(entity.parts) == 1:
            ((entity_type, name),) = entity.parts
            named = "" if name is DEFAULT else f"  entity_name = {_quoted(name)}\n"
            body = f'  entity_type = "{entity_type}"\n{named}'
        else:
            body = "".join(
                f'  entity {{\n    type = "{t}"\n{"" if n is DEFAULT else f"    name = {_quoted(n)}{chr(10)}"}  }}\n'
                for t, n in entity.parts
            )
        kind = "kafka_quota" if len(entity.parts) == 1 else "kafka_quota_composite"
        blocks.append(f'resource "{kind}" "q{number}" {{\n{body}  config = {{\n{config}  }}\n}}\n')
    return "\n".join(blocks)


def terraform_state(state: State) -> str:
    """What ``terraform show -json`` prints of it, on one line."""
    resources = []
    for number, (entity, quotas) in enumerate(state.items()):
        parts = [{"type": t, "name": None if n is DEFAULT else n} for t, n in entity.parts]
        single = {"entity_type": parts[0]["type"], "entity_name": parts[0]["name"]}
        kind = "kafka_quota" if len(parts) == 1 else "kafka_quota_composite"
        values = {**(single if len(parts) == 1 else {"entity": parts}), "config": quotas, "id": "x"}
        resources.append({"address": f"{kind}.q{number}", "mode": "managed", "type": kind, "name": "q", "values": values})
    document = {"format_version": "1.0", "values": {"root_module": {"resources": resources}}}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return "".join(c if c.isprintable() or c == "\u2028" else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text)


def script_has(entity: Entity) -> bool:
    return not any(name == "<default>" or "\0" in str(name) for _, name in entity.parts)


def script(state: State) -> str:
    """A script of ``kafka-configs`` commands."""
    lines = ["#!/bin/sh", "set -e"]
    for entity, quotas in state.items():
        named = " ".join(
            f"--entity-type {CONFIG_TYPES[t]} " + ("--entity-default" if n is DEFAULT else f"--entity-name {shlex.quote(n)}")
            for t, n in entity.parts
        )
        added = ",".join(f"{key}={_java(value)}" for key, value in quotas.items())
        lines.append(f'"$KAFKA"/kafka-configs.sh --bootstrap-server "$B" --alter {named} \\\n  --add-config \'{added}\'')
    return "\n".join([*lines, ""])


def described_has(entity: Entity) -> bool:
    return not any("\n" in str(name) or "', " in str(name) for _, name in entity.parts)


def described(state: State) -> str:
    """What ``kafka-configs --describe`` prints, all four views one after the other."""
    lines = []
    for entity, quotas in state.items():
        parts = (f"the default {DESCRIBED_TYPES[t]}" if n is DEFAULT else f"{DESCRIBED_TYPES[t]} '{n}'" for t, n in entity.parts)
        keys = ", ".join(f"{key}={_java(value)}" for key, value in quotas.items())
        lines.append(f"Quota configs for {', '.join(parts)} are {keys}")
    return "\n".join([*lines, ""])
