"""Objects in documents: the members of a class, how they are written, and how a value is built of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.documents.kinds import JsonKind, UnlikeError
from reconciler.documents.reading import FieldError
from reconciler.formats import Json, quoted_json

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
    description: str = ""
    """Of an object that no field or property stands for."""
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
        self._read = [(each.name, each.argument, each.kind.read, _names_of(each), each.default is ALWAYS) for each in members]
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
                elif isinstance(read, InnerReader):
                    given |= read(data[name])
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


def _names_of(member: RowMember) -> frozenset[str] | None:
    """Those that stand in the object for a member without a name."""
    return None if member.name else member.kind.schema["row"].required


@dataclass(frozen=True, slots=True)
class InnerReader:
    """Reads an object whose members are fields of the value around it."""

    row: Row

    def __call__(self, data: Any) -> dict[str, Any]:
        """The arguments."""
        return self.row.arguments(data)
