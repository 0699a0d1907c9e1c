"""JSON Schema checks (draft 2020-12) of YAML documents, every problem with its place and a suggestion.

A compiled validator (jsonschema-rs) decides. Only a document that it refuses is walked, node by node, for the details.

The schemas are inside the installed package, or beside it in a source tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from reconciler.files import bundled_folder
from reconciler.model import Message, MessagePart, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import Plain, YamlMapping, YamlNode, YamlSequence

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
    """To JSON Schema 1.0 is 1, and true is not."""
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
    schema: dict[str, Any] = json.loads((schema_folder() / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
    return schema


def schema_names() -> tuple[str, ...]:
    """The short names of all schemas, sorted. Raises ``FileAccessError`` when the installation lacks the folder."""
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in schema_folder().glob(f"*{_SUFFIX}")))
