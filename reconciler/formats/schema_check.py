"""JSON Schema checks (draft 2020-12) of YAML documents, every problem with its place and a suggestion.

A compiled validator (jsonschema-rs) decides, a hundred times faster than jsonschema. Only a document that fails is walked
again by jsonschema, for the details.

The schemas are inside the installed package, or beside it in a source tree.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from reconciler.files import bundled_folder
from reconciler.model import Message, MessagePart, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import Plain, YamlMapping, YamlNode, YamlSequence

_SUFFIX: Final = ".v1.schema.json"


class SchemaProblemKind(enum.StrEnum):
    """What is wrong; the values are finding ids."""

    UNKNOWN_FIELD = "unknown-field"
    MISSING_FIELD = "missing-field"
    WRONG_TYPE = "wrong-type"
    WRONG_VALUE = "wrong-value"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaProblem:
    """One thing that the schema refuses. ``path`` leads to it from the document's root; ``value`` is the plain data there."""

    kind: SchemaProblemKind
    path: tuple[str | int, ...]
    message: str
    line: int
    column: int
    value: Plain = None


_KINDS: Final = {"type": SchemaProblemKind.WRONG_TYPE, "required": SchemaProblemKind.MISSING_FIELD}
_BOUNDS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
_TYPE_WORDS: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


@cache
def _fast(schema_name: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(load_schema(schema_name))


@cache
def _thorough(schema_name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(load_schema(schema_name))


def check(root: YamlNode, schema_name: str, *, most: int = 100_000) -> tuple[SchemaProblem, ...]:
    """The problems of one document, in the order of their places; none for a valid one.

    The check ends after ``most`` problems, and returns at least one more than that when there are more.
    """
    if _fast(schema_name).is_valid(root.data):
        return ()
    problems: dict[tuple[object, ...], SchemaProblem] = {}
    data, numbers = sieved(root.data, schema_name)
    for error in _thorough(schema_name).iter_errors(data):
        if len(problems) > most:
            break
        for problem in _problems(error, path_in_whole(tuple(error.absolute_path), numbers), root):
            problems.setdefault((problem.path, problem.kind, problem.message), problem)
    return tuple(sorted(problems.values(), key=lambda p: (p.line, p.column, p.kind, p.message)))


def _problems(error: Any, path: tuple[str | int, ...], root: YamlNode) -> Iterator[SchemaProblem]:
    match error.validator:
        case "additionalProperties":
            yield from _unknown_fields(error, path, root)
        case "required":
            yield from _missing_fields(error, path, root)
        case _:
            line, column = _place(root, path)
            kind = _KINDS.get(error.validator, SchemaProblemKind.WRONG_VALUE)
            yield SchemaProblem(
                kind=kind, path=path, message=_message(error, path), line=line, column=column, value=error.instance
            )


_MOST_UNKNOWN: Final = 100
"""Unknown fields of one mapping that are named. The others are counted: looking for what each was meant to be takes long."""


def _unknown_fields(error: Any, path: tuple[str | int, ...], root: YamlNode) -> Iterator[SchemaProblem]:
    known = error.schema.get("properties", {})
    unknown = [name for name in error.instance if name not in known]
    for place, name in enumerate(unknown[: _MOST_UNKNOWN + 1]):
        more = len(unknown) - place
        message = (
            compose("{field} has {count} more fields that are not known", field=_title(path), count=f"{more:,}")
            if place == _MOST_UNKNOWN and more > 1
            else compose(
                "{field} has no field {name}{hint}",
                field=_title(path),
                name=shown_part(name),
                hint=did_you_mean(name, known),
            )
        )
        line, column = _key_place(root, (*path, name))
        yield SchemaProblem(
            kind=SchemaProblemKind.UNKNOWN_FIELD,
            path=(*path, name),
            message=message,
            line=line,
            column=column,
            value=error.instance[name],
        )


def _missing_fields(error: Any, path: tuple[str | int, ...], root: YamlNode) -> Iterator[SchemaProblem]:
    line, column = _place(root, path)
    for name in error.validator_value:
        if name not in error.instance:
            message = compose("{field} needs the field {name}", field=_title(path), name=shown_part(name))
            yield SchemaProblem(
                kind=SchemaProblemKind.MISSING_FIELD, path=(*path, name), message=message, line=line, column=column
            )


def _message(error: Any, path: tuple[str | int, ...]) -> Message:
    wanted, instance = error.validator_value, error.instance
    value = _described(instance)
    match error.validator:
        case "type":
            types = [wanted] if isinstance(wanted, str) else wanted
            words = compose("must be {types}, not {value}", types=" or ".join(_TYPE_WORDS[t] for t in types), value=value)
        case "enum":
            hint = did_you_mean(str(instance), [str(choice) for choice in wanted])
            words = compose("cannot be {value}{hint}", value=value, hint=hint)
        case "const":
            words = compose("must be {wanted}, not {value}", wanted=_described(wanted), value=value)
        case "minItems" | "minProperties" | "minLength":
            words = compose("is empty")
        case "maxProperties":
            words = compose("has {count} fields. Give exactly one of them", count=len(instance))
        case "pattern":
            form = error.schema.get("description", "the text has another form")
            words = compose("cannot be {value}: {form}", value=value, form=form)
        case "minimum" | "exclusiveMinimum" | "maximum":
            bound = f"{_BOUNDS[error.validator]} {wanted}"
            words = compose("must be {bound}, not {value}", bound=bound, value=value)
        case _:
            words = compose("is refused by the schema ({rule})", rule=str(error.validator))
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


def _place(root: YamlNode, path: tuple[str | int, ...]) -> tuple[int, int]:
    node = root
    for part in path:
        node = _child(node, part)
    return node.line, node.column


def _key_place(root: YamlNode, path: tuple[str | int, ...]) -> tuple[int, int]:
    node = root
    for part in path[:-1]:
        node = _child(node, part)
    name = path[-1]
    return node.keys[name] if isinstance(node, YamlMapping) and isinstance(name, str) else (node.line, node.column)


def _child(node: YamlNode, part: str | int) -> YamlNode:
    if isinstance(node, YamlMapping) and isinstance(part, str):
        return node.items.get(part, node)
    if isinstance(node, YamlSequence) and isinstance(part, int):
        return node.items[part]
    return node


PATH: Final = ("spec", "quotas")
"""Where the long list is, in the one kind of document that has one."""
_SCHEMA: Final = "client-quotas"


@cache
def _entry() -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator({"$ref": "#/$defs/entry", "$defs": load_schema(_SCHEMA)["$defs"]})


def sieved(data: Any, schema_name: str) -> tuple[Any, Sequence[int] | None]:
    """The same data with only the bad entries in its list, and their numbers in the whole list; ``None`` without such a list."""
    spec = data.get("spec") if schema_name == _SCHEMA and isinstance(data, dict) else None
    entries = spec.get("quotas") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(entries, list):
        return data, None
    valid = _entry().is_valid
    bad = [number for number, entry in enumerate(entries) if not valid(entry)]
    return {**data, "spec": {**spec, "quotas": [entries[number] for number in bad]}}, bad


def path_in_whole(path: tuple[str | int, ...], numbers: Sequence[int] | None) -> tuple[str | int, ...]:
    """A path in sieved data, as it is in the whole."""
    if numbers is None or path[:2] != PATH or len(path) < 3 or not isinstance(path[2], int):
        return path
    return (*path[:2], numbers[path[2]], *path[3:])


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
