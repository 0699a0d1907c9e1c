"""Read JSON: its text, and the numbers and times in it. What cannot be read is a ``FieldError`` with the path of its field."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any, Final, NoReturn

from reconciler.collector import pause_collector
from reconciler.formats import quoted_json

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


def parse(text: str | bytes, *, unique: bool = False) -> Any:
    """The data of a JSON text. Raises ``ValueError`` or ``RecursionError``; with ``unique`` also for a key that occurs twice."""
    hook = _unique if unique else None
    with pause_collector():
        return json.loads(text, object_pairs_hook=hook, parse_constant=_refuse_constant)


def number_from_json(value: float | str, path: str) -> float:
    """A quota value, which is a string when JSON has no such number."""
    if isinstance(value, str):
        return _NOT_FINITE[value]
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FieldError(path, f"must be a number in the range of a double, not {quoted_json(value)}")
    return number


def moment_from_json(text: str, path: str) -> datetime.datetime:
    """A time with its offset, in UTC."""
    try:
        at = datetime.datetime.fromisoformat(text)
        in_utc = at.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise FieldError(path, f"must be a time in ISO 8601, not {quoted_json(text)}") from error
    if at.tzinfo is None:
        raise FieldError(path, f"must be a time with its offset from UTC, not {quoted_json(text)}")
    return in_utc


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise FieldError("", "an object has the same key twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise FieldError("", f"{name} is not JSON. Write it in quotes")
