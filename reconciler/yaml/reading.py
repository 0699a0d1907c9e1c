"""YAML into nodes: line by line where every line is plain, as in nearly all manifests, and else by the events of a parser.

A plain line is a key, a value, or both, after at most one dash. Values are plain or quoted in one line, or a list or mapping in
brackets, with others in it once. Everything else (anchors, tags, escapes, text over several lines, mistakes) is left to
``events``, a file at a time. For what is read here both give the same nodes: a law of the tests compares them. An event is three
objects of Python, of which a manifest of 100,000 entries has 1.4 million: lines take a third of the time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

MAX_DEPTH: Final = 64
"""Deepest nesting of lists and mappings; manifests need eight."""

MAX_SEPARATORS: Final = 3_000_000
"""Most commas, colons and line ends in one file; they bound the number of nodes, and so the memory (below 1 GB)."""

# Every line end of YAML 1.1: a bound that counted LF alone would not bound a file that ends its lines with others.
_SEPARATORS: Final = (b",", b":", b"\n", b"\r", "\x85".encode(), "\u2028".encode(), "\u2029".encode())

# Letters and digits of any script, as a class: to compile ranges of as many characters takes a third of a second at each start.
_BEYOND: Final = r"\w"
# Quantifiers are possessive: none is tried again, so a line that is not plain costs no more than one that is.
_KEY: Final = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}+"
_WORD: Final = rf"[A-Za-z0-9_./{_BEYOND}][A-Za-z0-9_./%+@=~{_BEYOND}-]*+"
_QUOTED: Final = rf"\"[ !#-\[\]-~{_BEYOND}]*+\"|'[ -&(-~{_BEYOND}]*+'"
_INNER: Final = rf"(?:{_WORD}(?: {_WORD})*+|{_QUOTED})"
_SIMPLE: Final = rf"\{{{_KEY}: {_INNER}(?:, {_KEY}: {_INNER})*+\}}|\[{_INNER}(?:, {_INNER})*+\]"
_PART: Final = rf"(?:{_INNER}|{_SIMPLE})"
_BRACKETS: Final = rf"\{{{_KEY}: {_PART}(?:, {_KEY}: {_PART})*+\}}|\[{_PART}(?:, {_PART})*+\]"
_PLAIN: Final = rf"{_WORD}(?::{_WORD})*+(?: ++{_WORD}(?::{_WORD})*+)*+"
_COMMENT: Final = rf"(?:(?<![^ ])\#[ -~{_BEYOND}]*+)?"
_LINE: Final = re.compile(
    rf"(?:( *+)(- ++)?(?:({_KEY}):(?: ++|(?=\r?$)))?({_PLAIN}|{_BRACKETS}|{_QUOTED})? *+{_COMMENT}|(---) *+)\r?"
)
_SPECIAL: Final = frozenset("{[\"'")
_DEEPEST: Final = MAX_DEPTH - 4
_ODD_KEYS: Final = frozenset({"null", "Null", "NULL"})
_PAIR: Final = re.compile(rf"\{{({_KEY}): ({_WORD})\}}")
_IN_BRACKETS: Final = re.compile(rf"(?:({_KEY}): )?({_PART})")

# Making named tuples this way saves a Python call for each of the many parts.
_new: Final = tuple.__new__


def read_yaml(content: bytes) -> YamlStream:
    """Read a whole file: UTF-8 with or without BOM, LF or CRLF. Never raises; what is wrong comes back as problems.

    Empty documents (nothing, or only comments) are left out.
    """
    separators = sum(map(content.count, _SEPARATORS)) - content.count(b"\r\n")
    if separators > MAX_SEPARATORS:
        message = f"the file has more than {MAX_SEPARATORS} commas, colons and line ends, and so too many values. Split it"
        return YamlStream(problems=(YamlProblem(id="file-too-large", message=message, line=1, column=1),))
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        line, column = place_at(before, len(before))
        message = f"byte 0x{content[error.start]:02x} is not UTF-8. Save the file as UTF-8"
        return YamlStream(problems=(YamlProblem(id="invalid-utf8", message=message, line=line, column=column),))
    lines = _Lines()
    if lines.read(decoded):
        return YamlStream(documents=tuple(lines.documents))
    from reconciler.yaml.events import read_events

    return read_events(decoded)


class _Lines:
    """A text of plain lines.

    ``at`` is the column, from 0, of ``node``, the innermost list or mapping that is open, with those around it in ``around``.
    ``pending`` is its key, with its place, whose value has not begun.
    """

    __slots__ = ("around", "at", "documents", "node", "pending")

    def __init__(self) -> None:
        self.documents: list[YamlNode] = []
        self.at = -1
        self.node: Any = None
        self.around: list[tuple[int, Any]] = []
        self.pending: tuple[str, tuple[int, int]] | None = None

    def read(self, text: str) -> bool:
        """Read all documents. Return False, with some of them read, for a text that has other lines."""
        plain, new = _LINE.fullmatch, _new
        # Limits repeat: most lines of a long file have been there before.
        seen: dict[str, tuple[int, str, str | None, int, Any]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            parts = seen.get(line)
            if parts is None:
                match = plain(line)
                if match is None:
                    return False
                blanks, dash, key, written, _ = match.groups()
                if key is None or dash is not None:
                    if not self.take_item(match, number):
                        return False
                    continue
                parts = seen[line] = len(blanks), key, written, match.start(4) + 1, _in_line(written)
            column, key, written, start, typed = parts
            if (column != self.at or self.pending is not None or type(self.node) is YamlSequence) and not self.enter(
                column, number
            ):
                return False
            items, keys, data, _, _ = self.node
            if key in items or key in _ODD_KEYS:
                return False
            if written is None:
                self.pending = key, (number, column + 1)
                continue
            value: Any = new(YamlScalar, (written, typed, number, start)) if typed is not None else _value(written, number, start)
            if value is None:
                return False
            items[key], keys[key], data[key] = value, (number, column + 1), value.data
        return self.pending is None

    def take_item(self, match: re.Match[str], number: int) -> bool:
        """Take an item of a list, or a line without content. Return False for a value without a key and a dash."""
        blanks, dash, key, written, marker = match.groups()
        if dash is None or (key is None and written is None):
            is_plain = dash is None and written is None and (marker is None or self.pending is None)
            if marker is not None:
                self.at, self.node, self.around = -1, None, []
            return is_plain
        column = len(blanks)
        if (column != self.at or self.pending is not None or type(self.node) is YamlMapping) and not self.enter(
            column, number, is_item=True
        ):
            return False
        value: Any = None
        if written is not None:
            value = _value(written, number, match.start(4) + 1)
            if value is None:
                return False
        items, data, _, _ = self.node
        if key is None:
            items.append(value)
            data.append(value.data)
            return True
        column += len(dash)
        place = number, column + 1
        item: Any = _new(YamlMapping, ({}, {}, {}, *place))
        items.append(item)
        data.append(item.data)
        self.around.append((self.at, self.node))
        self.at, self.node = column, item
        if value is None:
            self.pending = key, place
        else:
            item.items[key], item.keys[key], item.data[key] = value, place, value.data
        return key not in _ODD_KEYS

    def enter(self, column: int, number: int, *, is_item: bool = False) -> bool:
        """Go to the list or mapping that a line at a column is a part of, which may begin there. Return False without one."""
        at = self.at
        if self.pending is None and at >= 0:
            while column < self.at:
                self.at, self.node = self.around.pop()
            if column == self.at and not is_item and type(self.node) is YamlSequence:
                # A list at the column of its key is over.
                self.at, self.node = self.around.pop()
            return column == self.at and (type(self.node) is YamlSequence) is is_item
        if column < at + (not is_item) or len(self.around) > _DEEPEST:
            return False
        place = number, column + 1
        opened: Any = _new(YamlSequence, ([], [], *place)) if is_item else _new(YamlMapping, ({}, {}, {}, *place))
        if self.pending is None:
            self.documents.append(opened)
        else:
            items, keys, data, _, _ = self.node
            key, key_place = self.pending
            items[key], keys[key], data[key] = opened, key_place, opened.data
            self.pending = None
        self.around.append((at, self.node))
        self.at, self.node = column, opened
        return True


def _in_line(written: str | None) -> Plain:
    """Return the data of a plain scalar. ``None`` for everything else, and null."""
    if written is None or written[0] in _SPECIAL:
        return None
    return plain_data(written) if written[0] in _TYPED_STARTS else written


def _value(written: str, line: int, column: int) -> YamlNode | None:
    """Return the node of a value in one line, with or without brackets. ``None`` for a mapping that has a key twice."""
    first = written[0]
    if first not in _SPECIAL:
        return _new(YamlScalar, (written, plain_data(written) if first in _TYPED_STARTS else written, line, column))
    if first in "\"'":
        return YamlScalar(written[1:-1], written[1:-1], line, column)
    pair = _PAIR.fullmatch(written)
    return _bracketed(written, line, column) if pair is None else _mapping_of_one(pair, line, column)


def _mapping_of_one(pair: re.Match[str], line: int, column: int) -> YamlNode | None:
    """Return ``{key: value}``, as the entry of nearly every entity has it."""
    key, text = pair.groups()
    if key in _ODD_KEYS:
        return None
    typed = plain_data(text) if text[0] in _TYPED_STARTS else text
    scalar = _new(YamlScalar, (text, typed, line, column + pair.start(2)))
    return _new(YamlMapping, ({key: scalar}, {key: (line, column + 1)}, {key: typed}, line, column))


def _bracketed(written: str, line: int, column: int) -> YamlNode | None:
    items: dict[str, YamlNode] = {}
    keys: dict[str, tuple[int, int]] = {}
    data: dict[str, Plain] = {}
    parts: list[YamlNode] = []
    for part in _IN_BRACKETS.finditer(written, 1):
        key, text = part.groups()
        node: Any = _value(text, line, column + part.start(2))
        if node is None or key in items or key in _ODD_KEYS:
            return None
        if key is None:
            parts.append(node)
        else:
            items[key], keys[key], data[key] = node, (line, column + part.start(1)), node.data
    if written[0] == "[":
        return YamlSequence(parts, [each.data for each in parts], line, column)
    return _new(YamlMapping, (items, keys, data, line, column))


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
_TYPED_STARTS: Final = _NUMBER_START | frozenset(word[:1] for word in _WORDS)
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
