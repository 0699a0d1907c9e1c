"""Kinds of values in documents: how each is written, read and described by a JSON Schema.

What cannot be read is a ``FieldError`` with the path of its field.
"""

from __future__ import annotations

import datetime
import enum
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from reconciler.collector import pause_collector
from reconciler.formats import Json, entity_from_json, entity_to_json, field_path, moment_to_json, quoted_json, value_to_json
from reconciler.model import AtLeast, Entity, Spelled

Schema: TypeAlias = Mapping[str, Any]
"""A JSON Schema in which ``{"row": Row}`` stands for that of a class, ``define`` names a definition, and an enum is the
``members`` of an object."""

_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class FieldError(ValueError):
    """A field that cannot be read. ``path`` leads to it, e.g. ``changes[3].entity``; empty: the whole document."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}" if path else problem)
        self.path = path
        self.problem = problem

    def below(self, parent: str) -> FieldError:
        """The same error as seen from a field around it."""
        between = "" if not self.path or self.path.startswith("[") else "."
        return FieldError(f"{parent}{between}{self.path}", self.problem)


class UnlikeError(FieldError):
    """A value that is not what its field has to be."""

    def __init__(self, wanted: str, data: object) -> None:
        super().__init__("", f"must be {wanted}, not {quoted_json(data)}")
        self.wanted = wanted
        self.data = data


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonKind:
    """How the values of one type stand in JSON."""

    wanted: str
    """For messages: ``a string``."""
    schema: Schema
    read: Callable[[Any], Any]
    """Raises ``FieldError``."""
    write: Callable[[Any], Json] | None = None
    """Of a value that is not ``None``. ``None``: it is its own JSON."""

    def written(self, value: Any) -> Json:
        """The JSON of a value."""
        return value if value is None or self.write is None else self.write(value)


def plain(wanted: str, schema: Schema, accepted: type) -> JsonKind:
    """Values that are their own JSON."""

    def read(data: Any) -> Any:
        if type(data) is not accepted:
            raise UnlikeError(wanted, data)
        return data

    return JsonKind(wanted=wanted, schema=schema, read=read)


def nullable(kind: JsonKind) -> JsonKind:
    """The same, or null for ``None``."""
    wanted, inner = f"{kind.wanted} or null", kind.read

    def read(data: Any) -> Any:
        if data is None:
            return None
        try:
            return inner(data)
        except UnlikeError as error:
            if error.wanted == kind.wanted and not error.path:
                raise UnlikeError(wanted, data) from None
            raise

    simple = None if "define" in kind.schema else kind.schema.get("type")
    schema = {**kind.schema, "type": [simple, "null"]} if isinstance(simple, str) else {"anyOf": [kind.schema, {"type": "null"}]}
    return JsonKind(wanted=wanted, schema=schema, read=read, write=kind.write)


def choice(members: Mapping[str, Any]) -> JsonKind:
    """One of some texts, each with its value."""
    wanted = f"one of {', '.join(members)}"
    texts = {value: text for text, value in members.items()}

    def read(data: Any) -> Any:
        if type(data) is not str or data not in members:
            raise UnlikeError(wanted, data)
        return members[data]

    return JsonKind(wanted=wanted, schema={"enum": [*members]}, read=read, write=texts.__getitem__)


def bounded(kind: JsonKind, bound: AtLeast | Spelled) -> JsonKind:
    """The same within a bound."""
    is_number = isinstance(bound, AtLeast)
    keyword, limit = ("minimum", bound.lowest) if isinstance(bound, AtLeast) else ("pattern", bound.pattern)
    wanted = f"at least {limit}" if is_number else f"a string of the form {limit}"

    def read(data: Any) -> Any:
        value = kind.read(data)
        if value < limit if is_number else not re.search(str(limit), value):
            raise UnlikeError(wanted, data)
        return value

    return JsonKind(wanted=kind.wanted, schema={**kind.schema, keyword: limit}, read=read, write=kind.write)


def listing(item: JsonKind, build: Callable[[Any], Any] = tuple) -> JsonKind:
    """A list of values of one kind."""
    put, take = item.write, item.read

    def write(values: Any) -> Json:
        return list(values) if put is None else [None if value is None else put(value) for value in values]

    def read(data: Any) -> Any:
        if type(data) is not list:
            raise UnlikeError("a list", data)
        built: list[Any] = []
        try:
            for value in data:
                built.append(take(value))  # noqa: PERF401 - their number is that of the item that cannot be read
        except FieldError as error:
            raise error.below(f"[{len(built)}]") from error.__cause__
        return build(built)

    return JsonKind(wanted="a list", schema={"type": "array", "items": item.schema}, read=read, write=write)


def table(item: JsonKind, key: Callable[[Any], Any] = str, build: Callable[[dict[Any, Any]], Any] = dict) -> JsonKind:
    """An object whose keys are data. ``key`` makes one of its text, and raises ``ValueError``."""
    put, take = item.write, item.read

    def write(values: Any) -> Json:
        pairs = values.items() if isinstance(values, Mapping) else values
        return {str(name): value if value is None or put is None else put(value) for name, value in pairs}

    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise UnlikeError("an object", data)
        built, name = {}, ""
        try:
            for name, value in data.items():
                built[key(name)] = take(value)
        except FieldError as error:
            raise error.below(field_path((name,))) from error.__cause__
        except ValueError:
            raise FieldError("", f"cannot have the key {quoted_json(name)}") from None
        return build(built)

    schema: Schema = {"type": "object", "additionalProperties": item.schema}
    if isinstance(key, type) and issubclass(key, enum.Enum):
        schema = {"members": key, "each": item.schema}
    return JsonKind(wanted="an object", schema=schema, read=read, write=write)


def _number(data: Any) -> float:
    if type(data) is float and math.isfinite(data):
        return data
    if type(data) is str and data in _NOT_FINITE:
        return _NOT_FINITE[data]
    if type(data) not in (float, int):
        raise UnlikeError(NUMBER.wanted, data)
    try:
        number = float(data)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FieldError("", f"must be a number in the range of a double, not {quoted_json(data)}")
    return number


def _moment(data: Any) -> datetime.datetime:
    """A time with its offset, in UTC."""
    text = TEXT.read(data)
    try:
        at = datetime.datetime.fromisoformat(text)
        in_utc = at.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise FieldError("", f"must be a time in ISO 8601, not {quoted_json(text)}") from error
    if at.tzinfo is None:
        raise FieldError("", f"must be a time with its offset from UTC, not {quoted_json(text)}")
    return in_utc


def _date(data: Any) -> datetime.date:
    try:
        return datetime.date.fromisoformat(TEXT.read(data))
    except FieldError:
        raise
    except ValueError:
        raise UnlikeError("a date in ISO 8601", data) from None


def _entity(data: Any) -> Entity:
    names = _NAMES.read(data)
    if not names:
        raise UnlikeError("filled", data)
    return entity_from_json(names)


TEXT: Final = plain("a string", {"type": "string"}, str)
NUMBER: Final = JsonKind(
    wanted=f"a number or one of {', '.join(_NOT_FINITE)}",
    schema={
        "define": "number",
        "description": "A number. Values that JSON has no number for are strings.",
        "anyOf": [{"type": "number"}, {"enum": [*_NOT_FINITE]}],
    },
    read=_number,
    write=value_to_json,
)
_NAMES: Final = table(nullable(TEXT))
ENTITY: Final = JsonKind(
    wanted="an object",
    schema={
        "define": "entity",
        "description": "Entity type to name. Null is the default entity of that type. An absent type is not part of the entity.",
        **_NAMES.schema,
        "minProperties": 1,
    },
    read=_entity,
    write=entity_to_json,
)
SIMPLE_KINDS: Final[Mapping[Any, JsonKind]] = {
    str: TEXT,
    bool: plain("true or false", {"type": "boolean"}, bool),
    int: plain("a whole number", {"type": "integer"}, int),
    float: NUMBER,
    Any: JsonKind(wanted="anything", schema={}, read=lambda data: data),
    Entity: ENTITY,
    datetime.datetime: JsonKind(
        wanted="a string", schema={"type": "string", "format": "date-time"}, read=_moment, write=moment_to_json
    ),
    datetime.date: JsonKind(
        wanted="a string", schema={"type": "string", "format": "date"}, read=_date, write=datetime.date.isoformat
    ),
}
"""Of types that have no parts."""


def parse(text: str | bytes, *, unique: bool = False) -> Any:
    """The data of a JSON text. Raises ``ValueError`` or ``RecursionError``; with ``unique`` also for a key that occurs twice."""
    hook = _unique if unique else None
    with pause_collector():
        return json.loads(text, object_pairs_hook=hook, parse_constant=_refuse_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise FieldError("", "an object has the same key twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise FieldError("", f"{name} is not JSON. Write it in quotes")
