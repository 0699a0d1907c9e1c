"""Nodes of YAML with their places, and how plain scalars are typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

MAX_DEPTH: Final = 64
"""Deepest nesting of lists and mappings; manifests need eight."""

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"
"""What a JSON Schema sees: plain scalars typed as YAML 1.2's core schema types them, like an editor does."""


class YamlScalar(NamedTuple):
    """``text`` is the scalar as written, after quotes and escapes; ``data`` its typed value. Lines and columns count from 1."""

    text: str
    data: Plain
    line: int
    column: int


class YamlSequence(NamedTuple):
    """A list; ``data`` is its plain form."""

    items: list[YamlNode]
    data: list[Plain]
    line: int
    column: int


class YamlMapping(NamedTuple):
    """A mapping; ``keys`` has the place (line, column) of each key. Duplicate keys never get here."""

    items: dict[str, YamlNode]
    keys: dict[str, tuple[int, int]]
    data: dict[str, Plain]
    line: int
    column: int


YamlNode: TypeAlias = YamlScalar | YamlSequence | YamlMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlProblem:
    """Something wrong with a file as YAML; ``id`` is a finding id."""

    id: str
    message: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlStream:
    """The documents of one file, and what is wrong with them. Documents after a syntax error are missing."""

    documents: tuple[YamlNode, ...] = ()
    problems: tuple[YamlProblem, ...] = ()


_WORDS: Final[Mapping[str, Plain]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_NUMBER_START: Final = frozenset("+-.0123456789")
_NUMBER_END: Final = frozenset(".0123456789")
TYPED_STARTS: Final = _NUMBER_START | frozenset(word[:1] for word in _WORDS)
"""First characters (and the empty text) of plain scalars that may be anything but text."""
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_NUMBER: Final = 100


def plain_data(text: str) -> Plain:
    """The typed value of a plain scalar. Octal and hexadecimal forms, infinities and NaN stay text: no field takes them."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START or text[-1] not in _NUMBER_END or len(text) > _LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        # JSON has no infinity, and validators refuse it.
        return text if number in (float("inf"), float("-inf")) else number
    return text


def place_at(text: str, offset: int) -> tuple[int, int]:
    """Return the line and the column of an offset, from 1."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")
