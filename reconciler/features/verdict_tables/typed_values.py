"""Values of known types as JSON: what Spark's workers return to the process that asked.

A worker runs what its operator installed, and a pickle of its making would run as code here. JSON is data. It is read by the type
that is asked for, so nothing else than values of that type can come of it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import functools
import json
import types
import typing
from collections.abc import Callable
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from reconciler.errors import TrafficError

Value = TypeVar("Value")
Convert: TypeAlias = Callable[..., Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Codec:
    """Both ways between a value of one type and what JSON has. ``read`` raises ``ValueError``, ``TypeError`` or ``KeyError``."""

    write: Convert
    read: Convert


class TypedValues(Generic[Value]):
    """Values of one type: a frozen dataclass or named tuple, of fields that are such, or plain, or collections of these."""

    def __init__(self, kind: type[Value]) -> None:
        of: Any = kind
        self._name = kind.__name__
        self._codec: _Codec = _codec(of)

    def pack(self, value: Value) -> bytes:
        """The value as JSON."""
        return json.dumps(self._codec.write(value), separators=(",", ":")).encode()

    def unpack(self, packed: bytes) -> Value:
        """Read what ``pack`` wrote. Raises ``TrafficError`` for any other bytes."""
        try:
            value: Value = self._codec.read(json.loads(packed))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            msg = f"a worker of Spark returned bytes that are not a {self._name} ({type(error).__name__}: {str(error)[:200]})"
            raise TrafficError(f"{msg}. Check that its workers run this version of kafka-quotas") from error
        return value


@functools.cache
def _codec(kind: Any) -> _Codec:
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin = typing.get_origin(kind)
    return _of_class(kind) if origin is None else _of_generic(origin, typing.get_args(kind))


def _of_generic(origin: Any, arguments: tuple[Any, ...]) -> _Codec:
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is Literal:
        return _literal(arguments)
    if origin is tuple and arguments[1:] != (...,):
        return _record(tuple, arguments)
    if origin in _COLLECTIONS:
        return _collection(_COLLECTIONS[origin], _codec(arguments[0]))
    if origin in (dict, collections.abc.Mapping):
        return _mapping(_record(tuple, arguments))
    raise TypeError(f"no values of the type {origin}")


def _of_class(kind: Any) -> _Codec:
    if issubclass(kind, enum.Enum):
        return _Codec(write=lambda value: value.value, read=kind)
    hints = typing.get_type_hints(kind)
    make: Convert = kind
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return _record(lambda values: make(**dict(zip(names, values, strict=True))), [hints[name] for name in names], names)
    if issubclass(kind, tuple):
        return _record(lambda values: make(*values), list(hints.values()))
    raise TypeError(f"no values of the type {kind}")


def _checked(*kinds: type) -> Convert:
    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"{value!r:.100} is not {kinds[0].__name__}")
        return value

    return check


_PLAIN: Final[dict[Any, _Codec]] = {
    type(None): _Codec(write=lambda _: None, read=_checked(type(None))),
    str: _Codec(write=str, read=_checked(str)),
    bool: _Codec(write=bool, read=_checked(bool)),
    int: _Codec(write=int, read=_checked(int)),
    float: _Codec(write=float, read=lambda value: float(_checked(float, int)(value))),
    datetime.datetime: _Codec(write=datetime.datetime.isoformat, read=datetime.datetime.fromisoformat),
}
_COLLECTIONS: Final[dict[Any, Any]] = {tuple: tuple, list: list, frozenset: frozenset, collections.abc.Sequence: tuple}


def _union(kinds: tuple[Any, ...]) -> _Codec:
    """Write ``None`` as it is. With several other types, the number of the type stands before the value."""
    codecs = [(kind, _codec(kind)) for kind in kinds if kind is not type(None)]
    if len(codecs) == 1:
        [(_, only)] = codecs
        return _Codec(
            write=lambda value: None if value is None else only.write(value),
            read=lambda data: None if data is None else only.read(data),
        )

    def write(value: Any) -> Any:
        if value is None:
            return None
        number = next(number for number, (kind, _) in enumerate(codecs) if _is_of(value, kind))
        return [number, codecs[number][1].write(value)]

    def read(data: Any) -> Any:
        if data is None and len(codecs) < len(kinds):
            return None
        number, value = data
        return dict(enumerate(codecs))[number][1].read(value)

    return _Codec(write=write, read=read)


def _is_of(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) is Literal:
        return value in typing.get_args(kind)
    return isinstance(value, typing.get_origin(kind) or kind)


def _literal(values: tuple[Any, ...]) -> _Codec:
    return _Codec(write=values.index, read=lambda number: dict(enumerate(values))[_checked(int)(number)])


def _record(build: Convert, kinds: Any, names: list[str] | None = None) -> _Codec:
    codecs = [_codec(kind) for kind in kinds]

    def write(value: Any) -> Any:
        parts = value if names is None else [getattr(value, name) for name in names]
        return [codec.write(part) for codec, part in zip(codecs, parts, strict=True)]

    def read(data: Any) -> Any:
        return build([codec.read(part) for codec, part in zip(codecs, _checked(list)(data), strict=True)])

    return _Codec(write=write, read=read)


def _collection(build: Convert, item: _Codec) -> _Codec:
    return _Codec(
        write=lambda values: [item.write(value) for value in values],
        read=lambda data: build([item.read(value) for value in _checked(list)(data)]),
    )


def _mapping(pair: _Codec) -> _Codec:
    return _Codec(
        write=lambda values: [pair.write(item) for item in values.items()],
        read=lambda data: dict(pair.read(item) for item in _checked(list)(data)),
    )
