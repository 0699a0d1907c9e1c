"""JSON that Terraform writes, as nodes with their places, into values of resources."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.importing.import_result import Gatherer
from reconciler.importing.terraform_resources import Constant, ListValue, MapValue, Value
from reconciler.importing.yaml_fields import field_text
from reconciler.yaml import YamlMapping, YamlNode, YamlSequence


def constant_value(node: YamlNode, out: Gatherer) -> Value:
    """A value that is known; a number as its text."""
    span = out.span(node)
    if isinstance(node, YamlMapping):
        return MapValue(items={name: constant_value(value, out) for name, value in node.items.items()}, span=span)
    if isinstance(node, YamlSequence):
        return ListValue(items=tuple(constant_value(item, out) for item in node.items), span=span)
    return Constant(value=node.data if node.data is None or isinstance(node.data, bool) else node.text, span=span)


def items_of(node: YamlNode | None) -> Sequence[YamlNode]:
    """The items of a list; none of everything else."""
    return node.items if isinstance(node, YamlSequence) else ()


def text_of(node: YamlNode | None, name: str) -> str | None:
    """A field of a mapping as its text; ``None`` also for null."""
    return field_text(node.items.get(name)) if isinstance(node, YamlMapping) else None
