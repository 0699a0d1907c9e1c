"""The codec of all documents: JSON by the field types of frozen dataclasses.

A class without a ``row`` has all its fields, in their order and by their names. A ``row`` lists members, separated by blanks:

- ``after``: a field, a property, or the result of the function that ``row(..., after=function)`` names
- ``declared=unit``: the field ``unit``, called ``declared``
- ``note?``: absent when it has its default
- ``applyable!``: a property that must agree when the object is read
- ``*span``: the members of ``span`` stand in the same object

Reading checks types. Its errors name the field, what it must be and what it is. Unknown fields are ignored.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.documents.kinds import (
    SIMPLE_KINDS,
    TEXT,
    FieldError,
    JsonKind,
    UnlikeError,
    bounded,
    choice,
    listing,
    nullable,
    table,
)
from reconciler.formats import Json, field_path, quoted_json

_TOKEN: Final = re.compile(r"(?P<flat>\*)?(?P<name>[\w-]+)(?:=(?P<attribute>\w+))?(?P<mark>[?!])?")


@dataclass(frozen=True, slots=True)
class Keyed:
    """For a tuple of values: an object of them by a field of each, sorted, at least one. ``given``: other fields when read."""

    field: str
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowSpec:
    """What ``row`` was given."""

    members: str
    build: Callable[..., Any] | None
    special: Mapping[str, Any]


def row(members: str, /, *, build: Callable[..., Any] | None = None, **special: Any) -> RowSpec:
    """The members of a class, as the module describes them.

    ``special``: by field another type than its own, a ``JsonKind``, ``Keyed``, or a function that derives it from the whole
    value.
    ``build``: makes a value of what is read, which then has what functions derive, too.
    """
    return RowSpec(members, build, special)


class Codec:
    """How types stand in documents. ``rows``: by class. ``kinds``: by type, of those that are not rows."""

    def __init__(self, rows: Mapping[type, RowSpec], kinds: Mapping[Any, Callable[[Codec], JsonKind]]) -> None:
        self._specs = dict(rows)
        self._given = dict(kinds)
        self._kinds: dict[Any, JsonKind] = dict(SIMPLE_KINDS)
        self._rows: dict[type, Row] = {}
        self._types: dict[Any, dict[str, Any]] = {}

    def extended(self, rows: Mapping[type, RowSpec], kinds: Mapping[Any, Callable[[Codec], JsonKind]] | None = None) -> Codec:
        """The same codec with other rows and kinds for some types."""
        return Codec({**self._specs, **rows}, {**self._given, **(kinds or {})})

    def row(self, cls: type) -> Row:
        """Return the form of a class in JSON."""
        if (made := self._rows.get(cls)) is None:
            spec = self._specs.get(cls) or row(" ".join(_defaults(cls)))
            made = self._rows[cls] = Row(cls, [*self._members(cls, spec)], spec.build)
        return made

    def kind(self, hint: Any) -> JsonKind:
        """Return the form of a type's values in JSON. Raises ``TypeError`` for a type that has none."""
        if (made := self._kinds.get(hint)) is None:
            given = self._given.get(hint)
            made = self._kinds[hint] = self._make(hint) if given is None else given(self)
        return made

    def _members(self, cls: type, spec: RowSpec) -> Iterator[RowMember]:
        defaults = _defaults(cls)
        for text in spec.members.split(" "):
            token = _TOKEN.fullmatch(text)
            if token is None:
                raise TypeError(f"{cls.__name__} has no member {text!r}")
            name, mark = token["name"], token["mark"]
            attribute = token["attribute"] or name
            given = spec.special.get(attribute)
            derive = given if isinstance(given, types.FunctionType) else None
            argument = attribute if (spec.build if derive else attribute in defaults) else None
            default = (None if derive else defaults.get(attribute)) if mark == "?" else ALWAYS
            yield RowMember(
                name="" if token["flat"] else name,
                kind=self._kind_of_member(self._type_of(cls, attribute, derive), None if derive else given, default),
                get=derive or operator.attrgetter(attribute),
                attribute=attribute,
                argument=argument,
                default=default,
                agrees=mark == "!",
            )

    def _kind_of_member(self, hint: Any, given: Any, default: Any) -> JsonKind:
        if isinstance(given, Keyed):
            return _keyed(given, self.row(typing.get_args(hint)[0]))
        if isinstance(given, JsonKind):
            return given
        hint = hint if given is None else given
        return self.kind(_without_none(hint) if default is None else hint)

    def _make(self, hint: Any) -> JsonKind:  # noqa: PLR0911 - one branch for each form of a type
        origin, parts = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return bounded(self.kind(parts[0]), parts[1])
        if origin in (typing.Union, types.UnionType):
            rest = _without_none(hint)
            return self._either(parts) if rest == hint else nullable(self.kind(rest))
        if origin is typing.Literal:
            return choice({part: part for part in parts})
        if origin in (dict, Mapping):
            return table(self.kind(parts[1]), parts[0])
        if origin is tuple and typing.get_origin(parts[0]) is tuple and parts[0] not in self._given:
            key, value = typing.get_args(parts[0])
            return table(self.kind(value), key, lambda pairs: tuple(sorted(pairs.items())))
        if origin in (tuple, list, Sequence, frozenset):
            return listing(self.kind(parts[0]), frozenset if origin is frozenset else tuple)
        if not isinstance(hint, type):
            raise TypeError(f"documents have no place for {hint}")
        if issubclass(hint, enum.Enum):
            return choice({member.value: member for member in hint})
        if issubclass(hint, str) and hint not in self._specs:
            return TEXT if hint is str else dataclasses.replace(TEXT, read=lambda data: hint(TEXT.read(data)))
        made = self.row(hint)
        return JsonKind(wanted="an object", schema={"row": made}, read=made.read, write=made.write)

    def _either(self, classes: Sequence[type]) -> JsonKind:
        """One of several classes, each of which requires other members."""
        rows = {cls: self.row(cls) for cls in classes}
        wanted = " or ".join(f"with {', '.join(map(repr, sorted(each.required)))}" for each in rows.values())

        def read(data: Any) -> Any:
            if type(data) is not dict:
                raise UnlikeError("an object", data)
            for each in rows.values():
                if each.required <= data.keys():
                    return each.read(data)
            raise UnlikeError(f"an object {wanted}", data)

        schema = {"anyOf": [{"row": each} for each in rows.values()]}
        return JsonKind(wanted="an object", schema=schema, read=read, write=lambda value: rows[type(value)].write(value))

    def _type_of(self, cls: type, attribute: str, derive: Callable[..., Any] | None) -> Any:
        """The type of a field, of a property or of what a function returns."""
        if derive is None and isinstance(own := getattr(cls, attribute, None), property):
            derive = own.fget
        of = cls if derive is None else derive
        if (hints := self._types.get(of)) is None:
            late = {each.__name__: each for each in self._specs}  # Some classes import others for type checkers only.
            hints = self._types[of] = typing.get_type_hints(of, localns=late, include_extras=True)
        return hints[attribute if derive is None else "return"]


def _keyed(keyed: Keyed, item: Row) -> JsonKind:
    key = operator.attrgetter(keyed.field)

    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise UnlikeError("an object", data)
        if not data:
            raise UnlikeError("filled", data)
        built, name = [], ""
        try:
            for name in sorted(data):
                built.append(item.read(data[name], **{keyed.field: name}, **keyed.given))
        except FieldError as error:
            raise error.below(field_path((name,))) from error.__cause__
        return tuple(built)

    schema = {"type": "object", "minProperties": 1, "additionalProperties": {"row": item}}
    return JsonKind(wanted="an object", schema=schema, read=read, write=lambda values: {key(v): item.write(v) for v in values})


def _defaults(cls: type) -> dict[str, Any]:
    """The default of each argument of a dataclass or a named tuple, ``None`` without one; nothing for another class."""
    if dataclasses.is_dataclass(cls):
        return {each.name: _default(each) for each in dataclasses.fields(cls) if each.init}
    given: dict[str, Any] = getattr(cls, "_field_defaults", {})
    return {name: given.get(name) for name in getattr(cls, "_fields", ())}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _without_none(hint: Any) -> Any:
    parts = [part for part in typing.get_args(hint) if part is not types.NoneType]
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return hint if not is_union or len(parts) == len(typing.get_args(hint)) else functools.reduce(operator.or_, parts)


ALWAYS: Final = object()
"""Instead of a default: the member is always there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMember:
    """One member of an object. ``name`` is empty where the members of its own value stand in the object."""

    name: str
    kind: JsonKind
    get: Callable[[Any], Any]
    """Of a value: an ``attrgetter`` of ``attribute``, or a function that derives it."""
    attribute: str
    argument: str | None
    """Of the class. ``None``: the member is derived from others."""
    default: Any = ALWAYS
    """The value with which it is absent."""
    agrees: bool = False
    """Whether a derived member must be as derived when it is read."""

    @property
    def is_optional(self) -> bool:
        """True when it may be absent."""
        return self.default is not ALWAYS


class Row:
    """How the values of a class stand in JSON objects."""

    def __init__(self, cls: type, members: Sequence[RowMember], build: Callable[..., Any] | None = None) -> None:
        self.cls = cls
        """Its docstring describes the object, and those of its fields and properties the members."""
        self._build = build or cls
        self.members = tuple(members)
        self._write: Callable[[Any], dict[str, Json]] | None = None
        # Of a member without a name, the names that stand in the object for it.
        inner = [None if each.name else each.kind.schema["row"].required for each in members]
        self._read = [
            (each.name, each.argument, each.kind.read, names, each.default is ALWAYS)
            for each, names in zip(members, inner, strict=True)
        ]
        self._agreed = [each for each in members if each.agrees]

    @property
    def required(self) -> frozenset[str]:
        """Names that are always there."""
        return frozenset(each.name for each in self.members if each.name and each.default is ALWAYS)

    def write(self, value: Any) -> dict[str, Json]:
        """The object of a value."""
        if self._write is None:
            self._write = _writer(self.members)
        return self._write(value)

    def read(self, data: Any, **more: Any) -> Any:
        """The value of an object. ``more``: arguments that stand elsewhere."""
        value = self._build(**self.arguments(data), **more)
        for each in self._agreed:
            derived = each.get(value) if each.kind.write is None else each.kind.write(each.get(value))
            if data[each.name] != derived:
                problem = f"must be {quoted_json(derived)} by the other fields, not {quoted_json(data[each.name])}"
                raise FieldError(each.name, problem)
        return value

    def arguments(self, data: Any) -> dict[str, Any]:
        """The arguments of the class in an object."""
        if type(data) is not dict:
            raise UnlikeError("an object", data)
        given: dict[str, Any] = {}
        name = ""
        try:
            for name, argument, read, inner, required in self._read:
                if name and name not in data:
                    if required:
                        break
                elif inner is not None:
                    if argument is not None and (required or inner & data.keys()):
                        given[argument] = read(data)
                elif argument is not None:
                    given[argument] = read(data[name])
            else:
                return given
        except FieldError as error:
            raise (error.below(name) if name else error) from error.__cause__
        raise FieldError("", f"lacks {name!r}")


def _writer(members: Sequence[RowMember]) -> Callable[[Any], dict[str, Json]]:
    """A function compiled for the members, as dataclasses compile their ``__init__``. A loop would take twice as long."""
    names: dict[str, Any] = {}
    lines = ["def write(value):", " made = {}"]
    for number, each in enumerate(members):
        names |= {f"get{number}": each.get, f"put{number}": each.kind.write, f"default{number}": each.default}
        attribute = isinstance(each.get, operator.attrgetter) and each.attribute
        lines.append(f" it = value.{attribute}" if attribute else f" it = get{number}(value)")
        written = "it" if each.kind.write is None else f"None if it is None else put{number}(it)"
        lines.append(" if True:" if each.default is ALWAYS else f" if it is not default{number} and it != default{number}:")
        lines.append(f"  made[{each.name!r}] = {written}" if each.name else f"  made.update({written})")
    exec("\n".join([*lines, " return made"]), names)  # noqa: S102 - its text has nothing but names of our own classes
    write: Callable[[Any], dict[str, Json]] = names["write"]
    return write
