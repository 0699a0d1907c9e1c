"""Fields and items put into a YAML file beside what is there: every other character stays as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from reconciler.yaml.nodes import YamlMapping, YamlSequence

_BREAKS: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_DASH: Final = re.compile(r"(?P<before>[ ]*(?:- +)*)- +\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """A text, and the line and column (from 1) in front of which it goes."""

    line: int
    column: int
    text: str


def field_before(fields: YamlMapping, name: str, text: str, content: bytes) -> Insertion:
    """Put a field, as a text in flow style, before the field ``name`` of a mapping, in the style that the mapping has."""
    line, column = fields.keys[name]
    if _character(content, fields.line, fields.column) == "{":
        return Insertion(line=line, column=column, text=f"{text}, ")
    return Insertion(line=line, column=column, text=f"{text}\n{' ' * (column - 1)}")


def item_first(items: YamlSequence, text: str, content: bytes) -> Insertion:
    """Put an item, as a text in flow style, before the first one of a list, in the style that the list has.

    Raises ``ValueError`` for a list whose first item does not stand behind a dash.
    """
    first = items.items[0]
    if _character(content, items.line, items.column) == "[":
        return Insertion(line=first.line, column=first.column, text=f"{text}, ")
    before = _lines(content)[first.line - 1][: first.column - 1]
    dash = _DASH.match(before)
    if dash is None:
        raise ValueError(before)
    return Insertion(line=first.line, column=first.column, text=f"{text}\n{' ' * len(dash['before'])}- ")


def insert(content: bytes, insertion: Insertion) -> bytes:
    """The file with the text in its place, and with its own line ends."""
    text = content.decode("utf-8")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    starts = [0, *(match.end() for match in _BREAKS.finditer(text))]
    at = starts[insertion.line - 1] + insertion.column - 1
    added = insertion.text.replace("\n", "\r\n") if "\r\n" in text else insertion.text
    return f"{mark}{text[:at]}{added}{text[at:]}".encode()


def _lines(content: bytes) -> list[str]:
    return _BREAKS.split(content.decode("utf-8").removeprefix("\ufeff"))


def _character(content: bytes, line: int, column: int) -> str:
    return _lines(content)[line - 1][column - 1 : column]
