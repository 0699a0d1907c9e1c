"""Shapes of YAML documents: each field is declared once, for the JSON Schema and for the reader.

Keywords of JSON Schema are given as they are. The reader keeps to them: what the schema refuses is ``None``, as if not written.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

API_VERSION: Final = "kafka-quotas/v1"
_KINDS_OF_TEXT: Final = ("string", "number", "boolean")

Reader: TypeAlias = Callable[[Any, Any], Any]
"""From a node, and the collector of findings that the caller of the outermost reader gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a node must be. ``schema`` may have shapes in place of schemas, and ``$of`` a shape that it narrows.

    ``name``: of a definition that others refer to.
    """

    schema: Mapping[str, Any]
    nodes: tuple[type[YamlNode], ...]
    read: Reader
    name: str | None = None
    refused: Any = None
    """The value of a node of another kind."""

    def about(self, description: str, **keywords: Any) -> Shape:
        """The same with another description."""
        of = {"$of": self} if self.name else self.schema
        return replace(self, name=None, schema={**of, "description": description, **keywords})

    def reading(self, read: Reader) -> Shape:
        """The same with another reader."""
        return replace(self, read=read)


def _described(about: str) -> dict[str, str]:
    return {"description": about} if about else {}


def text(about: str = "", **keywords: Any) -> Shape:
    """Text as it is written, with or without quotes. With a ``pattern``, only what YAML reads as text."""
    pattern = keywords.get("pattern")

    def read(node: YamlScalar, _: Any) -> str | None:
        return node.text if node.data is not None and (pattern is None or re.search(pattern, node.text)) else None

    kind = _KINDS_OF_TEXT if pattern is None else "string"
    return Shape(schema={"type": kind, "minLength": 1, **_described(about), **keywords}, nodes=(YamlScalar,), read=read)


TEXT: Final = replace(text("Text, taken exactly as it is written. Quotes are optional."), name="text")


def number(about: str, *, whole: bool = False, **keywords: Any) -> Shape:
    """A number within ``minimum``, ``exclusiveMinimum`` and ``maximum``. To JSON Schema 11.0 is whole, too."""
    least, most = keywords.get("minimum", -math.inf), keywords.get("maximum", math.inf)
    above = keywords.get("exclusiveMinimum", -math.inf)

    def read(node: YamlScalar, _: Any) -> float | None:
        data = node.data
        if isinstance(data, bool) or not isinstance(data, int | float) or not (least <= data <= most and data > above):
            return None
        return float(data) if not whole else int(data) if data == int(data) else None

    schema = {"type": "integer" if whole else "number", "description": about, **keywords}
    return Shape(schema=schema, nodes=(YamlScalar,), read=read)


def flag(about: str, **keywords: Any) -> Shape:
    """True or false."""
    schema = {"type": "boolean", "description": about, **keywords}
    return Shape(schema=schema, nodes=(YamlScalar,), read=lambda node, _: node.data if isinstance(node.data, bool) else None)


def choice(values: type[enum.StrEnum] | Mapping[str, Any], about: str = "", **keywords: Any) -> Shape:
    """One of some words, each for a value."""
    known = values if isinstance(values, Mapping) else {each.value: each for each in values}
    schema = {"enum": list(known), **_described(about), **keywords}
    return Shape(schema=schema, nodes=(YamlScalar,), read=lambda node, _: known.get(node.data))


def listing(item: Shape, about: str, *, refused: Any = None, **keywords: Any) -> Shape:
    """A list, as a tuple of the items that can be used."""

    def read(node: YamlSequence, out: Any) -> tuple[Any, ...]:
        values = (item.read(each, out) for each in node.items if isinstance(each, item.nodes))
        return tuple(value for value in values if value is not None)

    schema = {"type": "array", "items": item, "description": about, **keywords}
    return Shape(schema=schema, nodes=(YamlSequence,), read=read, refused=refused)


def labels(about: str, **keywords: Any) -> Shape:
    """Texts by name."""
    schema = {"type": "object", "description": about, "additionalProperties": TEXT, **keywords}

    def read(node: YamlMapping, _: Any) -> dict[str, str]:
        return {name: each.text for name, each in node.items.items() if isinstance(each, YamlScalar) and each.data is not None}

    return Shape(schema=schema, nodes=(YamlMapping,), read=read)


class Fields:
    """The fields of a mapping by name, each with the name of the attribute that has its value. ``schema`` takes no others."""

    def __init__(
        self,
        about: str,
        shapes: Mapping[str, Shape],
        *,
        needs: Sequence[str] = (),
        attributes: Mapping[str, str] | None = None,
        **keywords: Any,
    ) -> None:
        """``attributes``: those that are not the name of the field in small letters with ``_``. ``needs``: required fields."""
        required = {"required": needs} if needs else {}
        self.schema: Mapping[str, Any] = {
            "type": "object", "description": about, **required, **keywords, "additionalProperties": False, "properties": shapes
        }  # fmt: skip
        self.needs = needs
        known = attributes or {}
        self._fields = [
            (name, known.get(name) or re.sub(r"(?<=[a-z])[A-Z]", r"_\g<0>", name).lower().replace("-", "_"), shape)
            for name, shape in shapes.items()
        ]

    def read(self, node: YamlNode | None, out: Any) -> dict[str, Any]:
        """The values of the fields that are written and can be used, in the order of the declaration."""
        values: dict[str, Any] = {}
        items = node.items if isinstance(node, YamlMapping) else {}
        for name, attribute, shape in self._fields:
            child = items.get(name)
            if child is not None:
                value = shape.read(child, out) if isinstance(child, shape.nodes) else shape.refused
                if value is not None:
                    values[attribute] = value
        return values


def record(make: Callable[..., Any], about: str, shapes: Mapping[str, Shape], **keywords: Any) -> Shape:
    """A mapping with these fields. Unusable as a whole when one of its fields is, since a part may mean more.

    ``make``: a class, whose ``span`` is where the mapping begins, or a function that gets the node and the collector, too.
    ``keywords``: those of ``Fields``.
    """
    fields = Fields(about, shapes, **keywords)
    place = {"span", "set_in"} & getattr(make, "__dataclass_fields__", {}).keys()

    def read(node: YamlMapping, out: Any) -> Any:
        values = fields.read(node, out)
        if len(values) < len(node.items) or any(name not in node.items for name in fields.needs):
            return None
        if not isinstance(make, type):
            return make(node, out, **values)
        return make(**values, **{name: out.span(node) for name in place})

    return Shape(schema=fields.schema, nodes=(YamlMapping,), read=read)


def table(make: Callable[..., Any], about: str, each: Fields, **keywords: Any) -> Shape:
    """Mappings by name. ``make`` gets the collector, ``name``, its ``span``, and the values of the fields of ``each``."""

    def read(node: YamlMapping, out: Any) -> dict[str, Any]:
        made = (
            (name, make(out, name=name, span=out.key_span(node, name), **each.read(value, out)))
            for name, value in node.items.items()
            if isinstance(value, YamlMapping)
        )
        return {name: value for name, value in made if value is not None}

    schema = {"type": "object", "description": about, "minProperties": 1, "additionalProperties": each.schema, **keywords}
    return Shape(schema=schema, nodes=(YamlMapping,), read=read)


def document(kind: str, about: str, *, metadata: Fields, spec: Fields, make: Callable[..., Any]) -> Shape:
    """A whole document. ``make`` gets its root, the collector, and all values of ``metadata`` and ``spec``."""
    schema = {
        "title": f"kafka-quotas {kind}",
        "description": about,
        "type": "object",
        "required": ("apiVersion", "kind", *(("metadata",) if metadata.needs else ()), "spec"),
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": API_VERSION, "description": f"Always {API_VERSION}."},
            "kind": {"const": kind, "description": f"Always {kind} for this document."},
            "metadata": metadata.schema,
            "spec": spec.schema,
        },
    }

    def read(root: YamlMapping, out: Any) -> Any:
        return make(root, out, **metadata.read(root.items.get("metadata"), out), **spec.read(root.items.get("spec"), out))

    return Shape(schema=schema, nodes=(YamlMapping,), read=read)
