"""Scalars of a YAML file replaced where they stand, by texts or by flow mappings: every other character stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.yaml.reading import Plain, YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

_BREAKS: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_PROPERTIES: Final = re.compile(r"(?:[&!]\S+\s+)*")
"""An anchor and a tag before a scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarEdit:
    """One scalar, at a line and column that count from 1, its text without quotes, and the text that takes its place."""

    line: int
    column: int
    old: str
    new: str


class ScalarEditError(ValueError):
    """The scalar of ``edit`` is not there, or is written in a way that cannot be replaced in place."""

    def __init__(self, edit: ScalarEdit) -> None:
        super().__init__(f"line {edit.line}: the value {edit.old!r} cannot be replaced in place")
        self.edit = edit


def edit_scalars(content: bytes, edits: Sequence[ScalarEdit]) -> bytes:
    """The file with other texts as values, in the quotes that it has. ``content``: a file without problems, UTF-8.

    Raises ``ScalarEditError`` for the first scalar that is not there, and where the result would differ in anything else.
    """
    edited = _replaced(content, edits, quotes=False)
    _require_only(content, edited, edits)
    return edited


def expand_scalars(content: bytes, edits: Sequence[ScalarEdit]) -> bytes:
    """The file with flow mappings, whose texts are ``new``, in place of scalars and of their quotes.

    Raises ``ScalarEditError`` as ``edit_scalars`` does, also for a scalar with an anchor or a tag.
    """
    edited = _replaced(content, edits, quotes=True)
    before, after = read_yaml(content), read_yaml(edited)
    values = {(edit.line, edit.column): _value(edit) for edit in edits}
    wanted = [_data(document, values) for document in before.documents]
    if after.problems or wanted != [document.data for document in after.documents]:
        raise ScalarEditError(edits[0])
    return edited


def _value(edit: ScalarEdit) -> Plain:
    documents = read_yaml(edit.new.encode("utf-8")).documents
    if len(documents) != 1:
        raise ScalarEditError(edit)
    return documents[0].data


def _data(node: YamlNode, values: Mapping[tuple[int, int], Plain]) -> Plain:
    """The plain data of a node, with other values at some places."""
    if (node.line, node.column) in values and isinstance(node, YamlScalar):
        return values[node.line, node.column]
    if isinstance(node, YamlMapping):
        return {key: _data(value, values) for key, value in node.items.items()}
    return node.data if isinstance(node, YamlScalar) else [_data(item, values) for item in node.items]


def _replaced(content: bytes, edits: Sequence[ScalarEdit], *, quotes: bool) -> bytes:
    """``quotes``: the quotes of a scalar are replaced, too."""
    text = content.decode("utf-8")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    starts = [0, *(match.end() for match in _BREAKS.finditer(text))]
    pieces, done = [mark], 0
    for edit in sorted(edits, key=lambda each: (each.line, each.column)):
        begin, end = _extent(text, starts, edit)
        if quotes and text[end : end + 1] in ('"', "'") and text[begin - 1 : begin] == text[end : end + 1]:
            begin, end = begin - 1, end + 1
        if quotes and begin != starts[edit.line - 1] + edit.column - 1:
            # An alias elsewhere would get the mapping, too.
            raise ScalarEditError(edit)
        if begin < done:
            raise ScalarEditError(edit)
        pieces += (text[done:begin], edit.new)
        done = end
    return "".join((*pieces, text[done:])).encode("utf-8")


def _extent(text: str, starts: Sequence[int], edit: ScalarEdit) -> tuple[int, int]:
    """Return where the text of a scalar begins and ends, without its quotes."""
    if not 0 < edit.line <= len(starts):
        raise ScalarEditError(edit)
    begin = starts[edit.line - 1] + edit.column - 1
    properties = _PROPERTIES.match(text, begin)
    begin = properties.end() if properties else begin
    quote = text[begin : begin + 1]
    if quote in ('"', "'"):
        begin += 1
        if text[begin + len(edit.old) : begin + len(edit.old) + 1] != quote:
            raise ScalarEditError(edit)
    if not edit.old or not text.startswith(edit.old, begin):
        raise ScalarEditError(edit)
    return begin, begin + len(edit.old)


def _require_only(before: bytes, after: bytes, edits: Sequence[ScalarEdit]) -> None:
    """Raise ``ScalarEditError`` unless the documents are equal but for these scalars, which have their new texts."""
    old, new = read_yaml(before), read_yaml(after)
    wanted = {(edit.line, edit.column): edit for edit in edits}
    texts = [[scalar for document in stream.documents for scalar in _scalars(document)] for stream in (old, new)]
    if not new.problems and len(texts[0]) == len(texts[1]):
        changed = {
            (place[0], place[1]): (was, becomes)
            for (place, was), (_, becomes) in zip(texts[0], texts[1], strict=True)
            if was != becomes
        }
        if changed == {place: (edit.old, edit.new) for place, edit in wanted.items() if edit.old != edit.new}:
            return
    raise ScalarEditError(edits[0])


def _scalars(node: YamlNode) -> Iterator[tuple[tuple[int, int], str]]:
    """Places and texts of all keys and values, in the order of the file."""
    if isinstance(node, YamlScalar):
        yield (node.line, node.column), node.text
    elif isinstance(node, YamlMapping):
        for key, value in node.items.items():
            yield node.keys[key], key
            yield from _scalars(value)
    else:
        for item in node.items:
            yield from _scalars(item)


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,200}|(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def scalar_text(text: str) -> str:
    """Plain when nothing can go wrong, else in double quotes; what does not print is an escape. One line, whatever the text."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_character(c) for c in text) + '"'


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


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
    if _character_at(content, fields.line, fields.column) == "{":
        return Insertion(line=line, column=column, text=f"{text}, ")
    return Insertion(line=line, column=column, text=f"{text}\n{' ' * (column - 1)}")


def item_first(items: YamlSequence, text: str, content: bytes) -> Insertion:
    """Put an item, as a text in flow style, before the first one of a list, in the style that the list has.

    Raises ``ValueError`` for a list whose first item does not stand behind a dash.
    """
    first = items.items[0]
    if _character_at(content, items.line, items.column) == "[":
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


def _character_at(content: bytes, line: int, column: int) -> str:
    return _lines(content)[line - 1][column - 1 : column]


def remove_field(fields: YamlMapping, name: str, content: bytes, *, owner: tuple[int, int]) -> bytes:
    """The file without one field whose value is a scalar, and with ``{}`` where it was the only one.

    ``owner``: the line and column of the key whose value is ``fields``. Raises ``ScalarEditError`` for a value that is not a
    scalar, and ``ValueError`` for a field that shares its line with others in block style. The caller compares the meaning.
    """
    value = fields.items[name]
    edit = ScalarEdit(line=value.line, column=value.column, old=value.text if isinstance(value, YamlScalar) else "", new="")
    text = content.decode("utf-8")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    starts = [0, *(match.end() for match in _BREAKS.finditer(text))]
    line, column = fields.keys[name]
    begin = starts[line - 1] + column - 1
    end = _extent(text, starts, edit)[1]
    end += text[end : end + 1] in ("'", '"')
    if _character_at(content, fields.line, fields.column) == "{":
        names = list(fields.keys)
        following = fields.keys[names[names.index(name) + 1]] if name != names[-1] else None
        if following is not None:
            end = starts[following[0] - 1] + following[1] - 1
        elif len(names) > 1:
            begin = text.rindex(",", 0, begin)
        return f"{mark}{text[:begin]}{text[end:]}".encode()
    begin = starts[line - 1]
    if text[begin : begin + column - 1].strip() or value.line != line:
        raise ValueError(name)
    rest = text[starts[line] :] if line < len(starts) else ""
    kept = text[:begin]
    if len(fields.keys) == 1:
        colon = text.index(":", starts[owner[0] - 1] + owner[1] - 1) + 1
        kept = f"{text[:colon]} {{}}{text[colon:begin]}"
    return f"{mark}{kept}{rest}".encode()
