"""A value of a JSON document with the way to it, so that whoever reads it can say which field is wrong, and why."""

from __future__ import annotations

import datetime
import enum
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from reconciler.formats import entity_from_json
from reconciler.model import Entity, escaped

_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SHOWN: Final = 60

T = TypeVar("T")
E = TypeVar("E", bound=enum.StrEnum)


class Place:
    """A value and its path. Every reading method raises ``ValueError`` that names the path for a value of another kind."""

    def __init__(self, path: str, value: object) -> None:
        self.path = path
        self.value = value

    def wrong(self, wanted: str) -> ValueError:
        """The error: where, what is wanted, and what is there."""
        there = escaped(json.dumps(self.value))
        shown = there if len(there) <= _SHOWN else f"{there[:_SHOWN]}..."
        return ValueError(f"{self.path} must be {wanted}, not {shown}")

    def mapping(self) -> Mapping[str, object]:
        """An object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def __getitem__(self, key: str) -> Place:
        """A field that must be there."""
        found = self.get(key)
        if found is None:
            msg = f"{self.path} lacks {key!r}"
            raise ValueError(msg)
        return found

    def get(self, key: str) -> Place | None:
        """A field that may be absent."""
        content = self.mapping()
        path = escaped(key) if self.path == "the document" else f"{self.path}.{escaped(key)}"
        return Place(path, content[key]) if key in content else None

    def items(self) -> Iterator[Place]:
        """The values of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return (Place(f"{self.path}[{number}]", one) for number, one in enumerate(self.value))

    def optional(self, read: Callable[[Place], T]) -> T | None:
        """Null, or what ``read`` makes of it."""
        return None if self.value is None else read(self)

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def matching(self, pattern: re.Pattern[str], wanted: str) -> str:
        """A string of a form; ``wanted`` says which."""
        if not pattern.fullmatch(self.text()):
            raise self.wrong(wanted)
        return self.text()

    def flag(self) -> bool:
        """A truth value."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def count(self, least: int) -> int:
        """A whole number from ``least`` on."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < least:
            raise self.wrong(f"a whole number from {least} on")
        return self.value

    def one_of(self, choices: type[E]) -> E:
        """A word of an enum."""
        try:
            return choices(self.text())
        except ValueError as error:
            raise self.wrong(f"one of {', '.join(choices)}") from error

    def amount(self) -> float:
        """A quota value, which may be text when JSON has no such number."""
        if isinstance(self.value, str) and self.value in _NOT_FINITE:
            return _NOT_FINITE[self.value]
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number, null, or one of the strings NaN, Infinity and -Infinity")
        try:
            number = float(self.value)
        except OverflowError as error:
            raise self.wrong("a number that a double can hold") from error
        if not math.isfinite(number):
            raise self.wrong("a number that a double can hold")
        return number

    def moment(self) -> datetime.datetime:
        """A date and time."""
        try:
            at = datetime.datetime.fromisoformat(self.text())
        except ValueError as error:
            raise self.wrong("a time in ISO 8601") from error
        if at.tzinfo is None:
            raise self.wrong("a time with its offset from UTC")
        return at.astimezone(datetime.UTC)

    def entity(self) -> Entity:
        """An entity."""
        try:
            return entity_from_json(self.mapping())
        except ValueError as error:
            raise self.wrong(f"an entity ({error})") from error
