"""Shapes of YAML documents: each field is declared once, for the JSON Schema and for the reader.

Their fields have the names of JSON Schema's keywords. What the schema refuses is read as ``None``, as if it was not written.

A compiled validator (jsonschema-rs) decides about a document. Only one that it refuses is walked, node by node, for its problems.
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from reconciler.files import bundled_folder
from reconciler.model import Message, MessagePart, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import Plain, YamlMapping, YamlNode, YamlScalar, YamlSequence

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
    min_length: int = 1
    max_length: int | None = None
    type: Sequence[str] | str | None = None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        kind = ("string", "number", "boolean") if self.pattern is None else "string"
        return {"type": kind, **super().schema()}

    def read(self, node: Any, out: Any, /) -> Any:
        """Return what ``parse`` makes of the node, or its text."""
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
        """Return the value, ``None`` when it is not a boolean."""
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
        """Return what ``parse`` makes of the list, or a tuple of the items that can be used."""
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
        """Return the texts by name. Items that are not scalars are left out."""
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
    one_of: Sequence[Any] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """The attributes that have the values of fields, where they are not the names of the fields in small letters with ``_``."""

    @cached_property
    def _fields(self) -> tuple[tuple[str, str, Reader, Shape], ...]:
        """Name, attribute, reader and shape of each field: a manifest has as many records as entities."""
        return tuple(
            (
                name,
                self.attributes.get(name) or re.sub(r"(?<=[a-z])[A-Z]", r"_\g<0>", name).lower().replace("-", "_"),
                shape.read if shape.parse is None or isinstance(shape, TextShape) else shape.parse,
                shape,
            )
            for name, shape in self.properties.items()
        )

    def values(self, node: YamlNode | None, out: Any) -> dict[str, Any]:
        """The values of the fields that are written and can be used, in the order of the declaration."""
        values: dict[str, Any] = {}
        items = node.items if isinstance(node, YamlMapping) else {}
        for name, attribute, read, shape in self._fields:
            child = items.get(name)
            if child is not None:
                value = read(child, out) if isinstance(child, shape.nodes) else shape.refused
                if value is not None:
                    values[attribute] = value
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
        """Return the values that can be used, by name."""
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


_SUFFIX: Final = ".v1.schema.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaProblem:
    """One thing that the schema refuses. ``path`` leads to it from the document's root; ``value`` is the plain data there."""

    id: str
    """The id of the finding: ``unknown-field``, ``missing-field``, ``wrong-type`` or ``wrong-value``."""
    path: tuple[str | int, ...]
    message: str
    line: int
    column: int
    value: Plain = None


@cache
def _validator(schema_name: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(load_schema(schema_name))


def check(root: YamlNode, schema_name: str, *, most: int = 100_000) -> tuple[SchemaProblem, ...]:
    """The problems of one document, in the order of their places; none for a valid one.

    The check ends after ``most`` problems, and returns one more than that when there are more.
    """
    if _validator(schema_name).is_valid(root.data):
        return ()
    schema = load_schema(schema_name)
    problems = islice(_problems(root, schema, (), schema.get("$defs", {})), most + 1)
    by_place = {(problem.path, problem.id, problem.message): problem for problem in problems}
    if not by_place:  # To Python "$" is also before a line end.
        message = "the document is refused by the schema. Look for texts that end with a line end"
        return (SchemaProblem(id="wrong-value", path=(), message=message, line=root.line, column=root.column),)
    return tuple(sorted(by_place.values(), key=lambda p: (p.line, p.column, p.id, p.message)))


def _problems(
    node: YamlNode, schema: Mapping[str, Any], path: tuple[str | int, ...], definitions: Mapping[str, Any]
) -> Iterator[SchemaProblem]:
    if "$ref" in schema:
        yield from _problems(node, definitions[schema["$ref"].removeprefix("#/$defs/")], path, definitions)
    data = node.data
    for word, is_refused in _REFUSED.items():
        if word in schema and is_refused(data, schema[word]):
            kind = "wrong-type" if word == "type" else "wrong-value"
            message = _message(word, schema, data, path)
            yield SchemaProblem(id=kind, path=path, message=message, line=node.line, column=node.column, value=data)
    if isinstance(node, YamlSequence) and "items" in schema:
        for number, item in enumerate(node.items):
            yield from _problems(item, schema["items"], (*path, number), definitions)
    elif isinstance(node, YamlMapping):
        yield from _problems_of_fields(node, schema, path, definitions)


_MOST_UNKNOWN: Final = 100
"""Unknown fields of one mapping that are named. The others are counted: looking for what each was meant to be takes long."""


def _problems_of_fields(
    node: YamlMapping, schema: Mapping[str, Any], path: tuple[str | int, ...], definitions: Mapping[str, Any]
) -> Iterator[SchemaProblem]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in node.items:
            words = compose("{field} needs the field {name}", field=_title(path), name=shown_part(name))
            yield SchemaProblem(id="missing-field", path=(*path, name), message=words, line=node.line, column=node.column)
    unknown = [name for name in node.items if name not in known] if others is False else []
    for number, name in enumerate(unknown[: _MOST_UNKNOWN + 1]):
        more = len(unknown) - number
        if number == _MOST_UNKNOWN and more > 1:
            words = compose("{field} has {count} more fields that are not known", field=_title(path), count=f"{more:,}")
        else:
            hint = did_you_mean(name, known)
            words = compose("{field} has no field {name}{hint}", field=_title(path), name=shown_part(name), hint=hint)
        line, column = node.keys[name]
        data = node.data[name]
        yield SchemaProblem(id="unknown-field", path=(*path, name), message=words, line=line, column=column, value=data)
    for name, value in node.items.items():
        field = known.get(name, others)
        if isinstance(field, Mapping):
            yield from _problems(value, field, (*path, name), definitions)


def _is_number(data: Plain) -> bool:
    return isinstance(data, int | float) and not isinstance(data, bool)


_TYPES: Final[Mapping[str, tuple[str, Callable[[Plain], bool]]]] = {
    "object": ("a mapping", lambda data: isinstance(data, dict)),
    "array": ("a list", lambda data: isinstance(data, list)),
    "string": ("text", lambda data: isinstance(data, str)),
    "number": ("a number", _is_number),
    "integer": ("a whole number", lambda data: isinstance(data, int | float) and not isinstance(data, bool) and not data % 1),
    "boolean": ("true or false", lambda data: isinstance(data, bool)),
    "null": ("null", lambda data: data is None),
}


def _types(wanted: str | list[str]) -> list[str]:
    return [wanted] if isinstance(wanted, str) else wanted


def _is_other(data: Plain, wanted: object) -> bool:
    """Return whether JSON Schema takes two values for different ones: 1.0 is 1, and true is not."""
    return data != wanted or isinstance(data, bool) is not isinstance(wanted, bool)


_REFUSED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "type": lambda data, wanted: not any(_TYPES[word][1](data) for word in _types(wanted)),
    "enum": lambda data, wanted: all(_is_other(data, each) for each in wanted),
    "const": _is_other,
    "minItems": lambda data, least: isinstance(data, list) and len(data) < least,
    "maxItems": lambda data, most: isinstance(data, list) and len(data) > most,
    "uniqueItems": lambda data, _: isinstance(data, list) and len({json.dumps(each) for each in data}) < len(data),
    "minProperties": lambda data, least: isinstance(data, dict) and len(data) < least,
    "maxProperties": lambda data, most: isinstance(data, dict) and len(data) > most,
    "propertyNames": lambda data, _: isinstance(data, dict) and "" in data,
    "minLength": lambda data, least: isinstance(data, str) and len(data) < least,
    "maxLength": lambda data, most: isinstance(data, str) and len(data) > most,
    "pattern": lambda data, form: isinstance(data, str) and not re.search(form, data),
    "minimum": lambda data, bound: _is_number(data) and data < bound,
    "exclusiveMinimum": lambda data, bound: _is_number(data) and data <= bound,
    "maximum": lambda data, bound: _is_number(data) and data > bound,
    "oneOf": lambda data, options: isinstance(data, dict) and sum(each["required"][0] in data for each in options) != 1,
}
"""Keywords of JSON Schema that manifests use, and when each refuses a value.

``oneOf``: exactly one of some fields. ``propertyNames``: none is empty.
"""
_BOUNDS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}


def _message(word: str, schema: Mapping[str, Any], data: Plain, path: tuple[str | int, ...]) -> Message:
    wanted, value = schema[word], _described(data)
    match word:
        case "type":
            words = compose("must be {types}, not {value}", types=" or ".join(_TYPES[t][0] for t in _types(wanted)), value=value)
        case "enum":
            words = compose("cannot be {value}{hint}", value=value, hint=did_you_mean(str(data), [str(each) for each in wanted]))
        case "const":
            words = compose("must be {wanted}, not {value}", wanted=_described(wanted), value=value)
        case "minItems" | "minProperties" | "minLength":
            words = compose("is empty") if not data else compose("needs more fields")
        case "maxProperties":
            words = compose("has {count} fields. Give exactly one of them", count=len(data) if isinstance(data, dict) else 0)
        case "pattern":
            form = schema.get("description", "the text has another form")
            words = compose("cannot be {value}: {form}", value=value, form=form)
        case "minimum" | "exclusiveMinimum" | "maximum":
            words = compose("must be {bound}, not {value}", bound=f"{_BOUNDS[word]} {wanted}", value=value)
        case "oneOf":
            fields = " or ".join(each["required"][0] for each in wanted)
            words = compose("needs either {fields}", fields=fields)
        case _:
            words = compose("is refused by the schema ({rule})", rule=word)
    return compose("{field} {words}", field=_title(path), words=words)


def _title(path: tuple[str | int, ...]) -> Message:
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return compose("the document")
    name = shown_part(names[-1])
    return compose("{name}" if isinstance(path[-1], str) else "an item of {name}", name=name)


def _described(value: object) -> str | MessagePart:
    match value:
        case None:
            return "empty"
        case bool():
            return str(value).lower()
        case str():
            return shown_part(value)
        case int() | float():
            return str(value)[:60]
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


def schema_folder() -> Path:
    """The folder that has ``NAME.v1.schema.json``. Raises ``FileAccessError`` when the installation lacks it."""
    return bundled_folder("schemas", with_file="client-quotas.v1.schema.json")


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The schema of a document by its short name, e.g. ``client-quotas``. Do not change what it returns."""
    file = f"{name}{_SUFFIX}"
    schema: dict[str, Any] = json.loads((bundled_folder("schemas", with_file=file) / file).read_text(encoding="utf-8"))
    return schema


def schema_names() -> tuple[str, ...]:
    """The short names of all schemas, sorted. Raises ``FileAccessError`` when the installation lacks the folder."""
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in schema_folder().glob(f"*{_SUFFIX}")))
