"""Shapes of YAML documents: each field is declared once, for the JSON Schema and for the reader.

Their fields have the names of JSON Schema's keywords. What the schema refuses is read as ``None``, as if it was not written.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar, Final, TypeAlias

from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

API_VERSION: Final = "kafka-quotas/v1"
_NO_KEYWORDS: Final = frozenset({"nodes", "name", "refused", "parse", "make", "attributes"})

Reader: TypeAlias = Callable[[Any, Any], Any]
"""From a node, and the collector of findings that the caller of the outermost reader gives."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a node must be."""

    kind: ClassVar[Mapping[str, Any]] = {}
    """The keywords that all shapes of this class have."""
    nodes: tuple[type[YamlNode], ...] = (YamlScalar,)
    name: str | None = None
    """Of a definition of the schema, which fields refer to."""
    refused: Any = None
    """The value of a node of another kind."""
    parse: Reader | None = None
    """Makes the value, in place of the class, of a node that the class takes."""
    examples: Sequence[Any] | None = None
    default: Any = None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema, with shapes in place of the schemas of parts, and ``$of`` for one that it narrows."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _NO_KEYWORDS}
        about = values.pop("about")
        keywords = {_camel_case(name): value for name, value in values.items() if value is not None}
        return {**self.kind, **({"description": about} if about else {}), **keywords}

    def read(self, node: Any, out: Any, /) -> Any:
        """The value, or ``None``. ``node`` is one of ``nodes``."""
        return self.parse(node, out) if self.parse is not None else None


def _camel_case(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


@dataclass(frozen=True)
class TextShape(Shape):
    """Text as it is written, with or without quotes. With a ``pattern``, only what YAML reads as text."""

    about: str = ""
    pattern: str | None = None
    max_length: int | None = None
    type: Sequence[str] | None = None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        kind = ("string", "number", "boolean") if self.pattern is None else "string"
        return {"type": kind, "minLength": 1, **super().schema()}

    def read(self, node: Any, out: Any, /) -> Any:
        """What ``parse`` makes of the node, or its text."""
        if node.data is None or (self.pattern is not None and not re.search(self.pattern, node.text)):
            return None
        return node.text if self.parse is None else self.parse(node, out)


TEXT: Final = TextShape("Text, taken exactly as it is written. Quotes are optional.", name="text")


@dataclass(frozen=True)
class FreeShape(Shape):
    """Another form, whose ``keywords`` are given."""

    about: str
    keywords: Mapping[str, Any]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        return {"description": self.about, **self.keywords}


@dataclass(frozen=True)
class NumberShape(Shape):
    """A number. To JSON Schema 11.0 is an integer, too."""

    about: str
    type: str = "number"
    minimum: float | None = None
    exclusive_minimum: float | None = None
    maximum: float | None = None

    def read(self, node: Any, _out: Any, /) -> float | None:
        """The number, when it is within the bounds."""
        data = node.data
        least = -math.inf if self.minimum is None else self.minimum
        most = math.inf if self.maximum is None else self.maximum
        if isinstance(data, bool) or not isinstance(data, int | float) or not least <= data <= most:
            return None
        return float(data) if self.type == "number" else None if data % 1 else int(data)


@dataclass(frozen=True)
class FlagShape(Shape):
    """True or false."""

    kind: ClassVar[Mapping[str, Any]] = {"type": "boolean"}
    about: str

    def read(self, node: Any, _out: Any, /) -> bool | None:
        """The value."""
        return node.data if isinstance(node.data, bool) else None


@dataclass(frozen=True)
class ChoiceShape(Shape):
    """One of some words, each for a value."""

    enum: type[enum.StrEnum] | Mapping[str, Any]
    about: str = ""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        return {**super().schema(), "enum": list(self.enum)}

    def read(self, node: Any, _out: Any, /) -> Any:
        """The value of the word."""
        return (
            self.enum.get(node.data) if isinstance(self.enum, Mapping) else next((e for e in self.enum if e == node.data), None)
        )


@dataclass(frozen=True)
class ListShape(Shape):
    """A list, as a tuple of the items that can be used."""

    nodes: tuple[type[YamlNode], ...] = field(default=(YamlSequence,), kw_only=True)
    kind: ClassVar[Mapping[str, Any]] = {"type": "array"}
    items: Shape
    about: str
    min_items: int | None = None
    unique_items: bool | None = None

    def read(self, node: Any, out: Any, /) -> Any:
        """What ``parse`` makes of the list, or the items."""
        if self.parse is not None:
            return self.parse(node, out)
        values = (self.items.read(each, out) for each in node.items if isinstance(each, self.items.nodes))
        return tuple(value for value in values if value is not None)


@dataclass(frozen=True)
class LabelsShape(Shape):
    """Texts by name."""

    nodes: tuple[type[YamlNode], ...] = field(default=(YamlMapping,), kw_only=True)
    kind: ClassVar[Mapping[str, Any]] = {"type": "object", "additionalProperties": TEXT}
    about: str
    min_properties: int | None = None

    def read(self, node: Any, _out: Any, /) -> dict[str, str]:
        """The texts."""
        return {name: each.text for name, each in node.items.items() if isinstance(each, YamlScalar) and each.data is not None}


@dataclass(frozen=True)
class RecordShape(Shape):
    """A mapping with these fields and no others."""

    nodes: tuple[type[YamlNode], ...] = field(default=(YamlMapping,), kw_only=True)
    kind: ClassVar[Mapping[str, Any]] = {"type": "object", "additionalProperties": False}
    make: Callable[..., Any] | None
    """A class, whose ``span`` is where the mapping begins, or a function that gets the node and the collector, too."""
    about: str
    properties: Mapping[str, Shape]
    required: Sequence[str] | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """The attributes that have the values of fields, where they are not the names of the fields in small letters with ``_``."""

    def values(self, node: YamlNode | None, out: Any) -> dict[str, Any]:
        """The values of the fields that are written and can be used, in the order of the declaration."""
        values: dict[str, Any] = {}
        items = node.items if isinstance(node, YamlMapping) else {}
        for name, shape in self.properties.items():
            child = items.get(name)
            if child is not None:
                value = shape.read(child, out) if isinstance(child, shape.nodes) else shape.refused
                if value is not None:
                    values[self.attributes.get(name) or _snake_case(name)] = value
        return values

    def read(self, node: Any, out: Any, /) -> Any:
        """Unusable as a whole when one of its fields is, since a part may mean more."""
        if self.parse is not None:
            return self.parse(node, out)
        values = self.values(node, out)
        if len(values) < len(node.items) or any(name not in node.items for name in self.required or ()):
            return None
        if self.make is None:
            return values
        if not isinstance(self.make, type):
            return self.make(node, out, **values)
        places = {each.name for each in fields(self.make)} & {"span", "set_in"}
        return self.make(**values, **{name: out.span(node) for name in places})


@lru_cache(maxsize=1024)
def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", r"_\g<0>", name).lower().replace("-", "_")


@dataclass(frozen=True)
class TableShape(Shape):
    """Mappings by name. ``make`` gets the collector, ``name``, its ``span``, and the values of the fields of ``each``."""

    nodes: tuple[type[YamlNode], ...] = field(default=(YamlMapping,), kw_only=True)
    kind: ClassVar[Mapping[str, Any]] = {"type": "object", "minProperties": 1}
    make: Callable[..., Any]
    about: str
    additional_properties: RecordShape
    property_names: Mapping[str, Any] | None = None

    def read(self, node: Any, out: Any, /) -> dict[str, Any]:
        """Those that can be used."""
        made = (
            (name, self.make(out, name=name, span=out.key_span(node, name), **self.additional_properties.values(value, out)))
            for name, value in node.items.items()
            if isinstance(value, YamlMapping)
        )
        return {name: value for name, value in made if value is not None}


@dataclass(frozen=True)
class ManifestShape(Shape):
    """A whole document. ``make`` gets its root, the collector, and all values of ``metadata`` and ``spec``."""

    nodes: tuple[type[YamlNode], ...] = field(default=(YamlMapping,), kw_only=True)
    word: str
    about: str
    metadata: RecordShape
    spec: RecordShape
    make: Callable[..., Any]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        return {
            "title": f"kafka-quotas {self.word}",
            "description": self.about,
            "type": "object",
            "required": ("apiVersion", "kind", *(("metadata",) if self.metadata.required else ()), "spec"),
            "additionalProperties": False,
            "properties": {
                "apiVersion": {"const": API_VERSION, "description": f"Always {API_VERSION}."},
                "kind": {"const": self.word, "description": f"Always {self.word} for this document."},
                "metadata": self.metadata,
                "spec": self.spec,
            },
        }

    def read(self, node: Any, out: Any, /) -> Any:
        """The document, as far as it can be understood."""
        metadata = self.metadata.values(node.items.get("metadata"), out)
        return self.make(node, out, **metadata, **self.spec.values(node.items.get("spec"), out))
