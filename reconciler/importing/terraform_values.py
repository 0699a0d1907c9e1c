"""Resources of Terraform as far as they can be known without running it, whichever form they are written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from reconciler.model import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A text, a number as its text, or a truth value; ``None`` is Terraform's null."""

    value: str | bool | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Something that only Terraform can evaluate; ``text`` is its source."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A map or an object."""

    items: Mapping[str, Value]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """A list, or the repeated blocks of one name."""

    items: tuple[Value, ...]
    span: Span


Value: TypeAlias = Constant | Expression | Table | Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One ``resource`` with its arguments and nested blocks; ``address`` as Terraform calls it."""

    type: str
    address: str
    span: Span
    body: Mapping[str, Value] = field(default_factory=dict)
