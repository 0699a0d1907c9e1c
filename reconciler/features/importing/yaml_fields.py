"""Fields of another tool's YAML or JSON: texts, mappings, quotas by the tool's own spelling, and what must not be passed over."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from reconciler.features.importing.import_result import Gatherer, read_value
from reconciler.model import Entity, Span, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

QUOTA_FIELD: Final = re.compile(r"quota|byte_?rate|request_?percentage|mutation_?rate|connection_?creation_?rate", re.IGNORECASE)
"""Names of fields that look as if they limited a client, in any spelling."""

_NAMES_OF_USERS: Final = ("labels", "annotations")
"""Fields whose keys are names of the user, and limit nothing."""
_TEMPLATE: Final = re.compile(r"\{\{|\{%|\{#")


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
        template = None if line.lstrip().startswith("#") else _TEMPLATE.search(line)
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
