"""Fields of a mapping by name; what is absent, or of another type than the schema wants, is ``None``."""

from __future__ import annotations

from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence


def mapping(node: YamlNode | None, name: str) -> YamlMapping | None:
    """A field that is a mapping."""
    value = node.items.get(name) if isinstance(node, YamlMapping) else None
    return value if isinstance(value, YamlMapping) else None


def scalar(node: YamlNode | None, name: str) -> YamlScalar | None:
    """A field that is a scalar and not null."""
    value = node.items.get(name) if isinstance(node, YamlMapping) else None
    return value if isinstance(value, YamlScalar) and value.data is not None else None


def text(node: YamlNode | None, name: str) -> str | None:
    """A field's text, as written."""
    value = scalar(node, name)
    return value.text if value is not None else None


def items(node: YamlNode | None, name: str) -> tuple[YamlNode, ...]:
    """The items of a field that is a list; none when it is not there."""
    value = node.items.get(name) if isinstance(node, YamlMapping) else None
    return tuple(value.items) if isinstance(value, YamlSequence) else ()


def texts(node: YamlNode | None, name: str) -> tuple[str, ...]:
    """The texts of a list field."""
    return tuple(item.text for item in items(node, name) if isinstance(item, YamlScalar) and item.data is not None)
