"""The same value with its places named differently, for documents that were read from somewhere else than they belong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from reconciler.model import Span

T = TypeVar("T")


def relocate_spans(value: T, place: Callable[[Span], Span | None]) -> T:
    """``value``, a tree of dataclasses, tuples and mappings, with every ``Span`` in it replaced by ``place(span)``."""
    return cast("T", _relocate(value, place))


def without_spans(value: T) -> T:
    """``value`` with no ``Span`` left, to compare what is said and not where."""
    return relocate_spans(value, lambda _: None)


def _relocate(value: Any, place: Callable[[Span], Span | None]) -> Any:
    if isinstance(value, Span):
        return place(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        changed = {name: new for name, old in fields.items() if (new := _relocate(old, place)) is not old}
        return dataclasses.replace(value, **changed) if changed else value
    if isinstance(value, tuple):
        items = tuple(_relocate(item, place) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, Mapping):
        return {key: _relocate(item, place) for key, item in value.items()}
    return value
