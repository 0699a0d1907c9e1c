"""Bounds of fields, for readers of documents: ``brokers: Count``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A whole number of at least this size."""

    lowest: int


@dataclass(frozen=True, slots=True)
class Spelled:
    """A text that this regular expression finds."""

    pattern: str


Count: TypeAlias = Annotated[int, AtLeast(0)]
"""How many there are of something."""
FromOne: TypeAlias = Annotated[int, AtLeast(1)]
"""A number that counts from 1."""
Digest: TypeAlias = Annotated[str, Spelled("^sha256:[0-9a-f]{64}$")]
"""``sha256:`` with 64 hexadecimal digits."""
