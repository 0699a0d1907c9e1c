"""Fields of another tool's YAML: texts, mappings, quotas by the tool's own spelling, and templates, which are never evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from reconciler.importing.import_result import Gatherer, read_value
from reconciler.model import Entity, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

CAMEL_KEYS: Final = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
    "controllerMutationRate": "controller_mutation_rate",
    "connectionCreationRate": "connection_creation_rate",
}
"""Kafka's keys as resources of Kubernetes spell them."""

TEMPLATE: Final = re.compile(r"\{\{|\{%|\{#")


def field_text(node: YamlNode | None) -> str | None:
    """A scalar as written; ``None`` for null, nothing, lists and mappings."""
    return node.text if isinstance(node, YamlScalar) and node.data is not None else None


def field_mapping(node: YamlNode | None) -> dict[str, YamlNode]:
    """The fields of a mapping; empty for everything else."""
    return node.items if isinstance(node, YamlMapping) else {}


def is_null(node: YamlNode | None) -> bool:
    """True for a field that is absent or null."""
    return node is None or (isinstance(node, YamlScalar) and node.data is None)


def refuse_templates(content: bytes, out: Gatherer, message: str) -> bool:
    """Report each line with a template. The template decides which entries exist, so nothing of such a file is converted."""
    before = len(out.findings)
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=1):
        template = None if line.lstrip().startswith("#") else TEMPLATE.search(line)
        if template:
            out.refuse("import-template", message, out.at(number, template.start() + 1))
    return len(out.findings) > before


def read_fields(
    fields: YamlMapping, keys: Mapping[str, str], entity: Entity, out: Gatherer, *, tool: str
) -> dict[str, float] | None:
    """The quotas of a mapping from the tool's keys to values; ``None`` after a finding. A null is a key that is not set."""
    quotas: dict[str, float] = {}
    before = len(out.findings)
    for name, node in fields.items.items():
        if name not in keys:
            message = compose("{tool} has no quota {name}{hint}", tool=tool, name=shown_part(name), hint=did_you_mean(name, keys))
            out.refuse("import-unsupported", message, node, entity=entity)
        elif not is_null(node):
            value = read_value(out, entity, keys[name], field_text(node) or "", out.span(node))
            if value is not None:
                quotas[keys[name]] = value
    return quotas if len(out.findings) == before else None
