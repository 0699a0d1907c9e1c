"""Counts and lists in sentences: singular and plural agree, and long lists end in a number."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model import Entity, Message, join_messages


def count_of(number: int, one: str, many: str | None = None) -> str:
    """``1 entity``, ``2,000 entities``; ``many`` is ``one`` with an s unless it is given."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def list_some(texts: Sequence[str], most: int, *, between: str = ", ") -> str:
    """The first ``most`` texts, and how many more there are: ``a, b and 3 more``, or ``a; b; and 3 more``."""
    more = len(texts) - most
    end = " and" if between == ", " else f"{between}and"
    return f"{between.join(texts[:most])}{f'{end} {more:,} more' if more > 0 else ''}"


def list_entities(entities: Sequence[Entity], most: int) -> Message:
    """The first ``most`` entities, and how many more there are."""
    more = len(entities) - most
    return join_messages(entities[:most]) + (f" and {more:,} more" if more > 0 else "")
