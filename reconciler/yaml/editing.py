"""A YAML file edited where its values stand: every other character stays as it is."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.yaml.reading import Plain, YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

_BREAKS: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_PROPERTIES: Final = re.compile(r"(?:[&!]\S+\s+)*")
"""An anchor and a tag before a scalar."""
_DASH: Final = re.compile(r"(?P<before>[ ]*(?:- +)*)- +\Z")


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


class _Source:
    """The text of a file without a byte order mark, and where its lines begin."""

    def __init__(self, content: bytes) -> None:
        text = content.decode("utf-8")
        self.text = text.removeprefix("\ufeff")
        self._mark = text.removesuffix(self.text) if self.text else text
        self.starts = [0, *(match.end() for match in _BREAKS.finditer(self.text))]

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column - 1

    def is_flow(self, node: YamlMapping | YamlSequence) -> bool:
        return self.text[self.at(node.line, node.column)] in "{["

    def replaced(self, *parts: tuple[int, int, str]) -> bytes:
        """Return the file with texts in place of what stands between two positions; the last position first."""
        text = self.text
        for begin, end, new in parts:
            text = text[:begin] + (new.replace("\n", "\r\n") if "\r\n" in self.text else new) + text[end:]
        return f"{self._mark}{text}".encode()

    def extent(self, edit: ScalarEdit) -> tuple[int, int, str]:
        """Return where the text of a scalar begins and ends, without its quotes, and its quote."""
        if not 0 < edit.line <= len(self.starts):
            raise ScalarEditError(edit)
        begin = self.at(edit.line, edit.column)
        properties = _PROPERTIES.match(self.text, begin)
        begin = properties.end() if properties else begin
        quote = self.text[begin : begin + 1]
        quote = quote if quote in ('"', "'") else ""
        begin += len(quote)
        end = begin + len(edit.old)
        if not edit.old or self.text[begin : end + len(quote)] != edit.old + quote:
            raise ScalarEditError(edit)
        return begin, end, quote


def edit_scalars(content: bytes, edits: Sequence[ScalarEdit]) -> bytes:
    """The file with other texts as values, in the quotes that it has. ``content``: a file without problems, UTF-8.

    Raises ``ScalarEditError`` for the first scalar that is not there, and where the result would differ in anything else.
    """
    return _edited(content, edits, flow=False)


def expand_scalars(content: bytes, edits: Sequence[ScalarEdit]) -> bytes:
    """The file with flow mappings, whose texts are ``new``, in place of scalars and of their quotes.

    Raises ``ScalarEditError`` as ``edit_scalars`` does, also for a scalar with an anchor or a tag.
    """
    return _edited(content, edits, flow=True)


def _edited(content: bytes, edits: Sequence[ScalarEdit], *, flow: bool) -> bytes:
    source, done = _Source(content), None
    parts, values = [], {}
    for edit in sorted(edits, key=lambda each: (each.line, each.column), reverse=True):
        begin, end, quote = source.extent(edit)
        if flow:
            begin, end = begin - len(quote), end + len(quote)
        # What begins later has an anchor or a tag.
        if (flow and begin != source.at(edit.line, edit.column)) or (done is not None and end > done):
            raise ScalarEditError(edit)
        parts.append((begin, end, edit.new))
        values[edit.line, edit.column] = edit.new if quote and not flow else read_value(edit.new)
        done = begin
    edited = source.replaced(*parts)
    after, wanted = read_yaml(edited), [_data(document, values) for document in read_yaml(content).documents]
    if after.problems or wanted != [document.data for document in after.documents]:
        raise ScalarEditError(edits[0])
    return edited


def read_value(text: str) -> Plain:
    """Return the data of the one document of a text, and ``None`` for any other text."""
    documents = read_yaml(text.encode("utf-8")).documents
    return documents[0].data if len(documents) == 1 else None


def _data(node: YamlNode, values: Mapping[tuple[int, int], Plain]) -> Plain:
    """The plain data of a node, with other values at some places."""
    if isinstance(node, YamlMapping):
        return {key: _data(value, values) for key, value in node.items.items()}
    if isinstance(node, YamlSequence):
        return [_data(item, values) for item in node.items]
    return values.get((node.line, node.column), node.data)


def has_only(before: bytes, after: bytes, change: Callable[[list[Plain]], object]) -> bool:
    """Whether a file means what another one means once its documents have this change, and nothing else."""
    wanted = [copy.deepcopy(document.data) for document in read_yaml(before).documents]
    change(wanted)
    stream = read_yaml(after)
    return not stream.problems and [document.data for document in stream.documents] == wanted


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


def add_field(content: bytes, fields: YamlMapping, name: str, text: str) -> bytes:
    """The file with a field, as a text in flow style, before the field ``name`` of a mapping, in the style of the mapping."""
    source, (line, column) = _Source(content), fields.keys[name]
    at, between = source.at(line, column), ", " if source.is_flow(fields) else f"\n{' ' * (column - 1)}"
    return source.replaced((at, at, f"{text}{between}"))


def add_item(content: bytes, items: YamlSequence, text: str) -> bytes:
    """The file with an item, as a text in flow style, before the first one of a list, in the style of the list.

    Raises ``ValueError`` for a list whose first item does not stand behind a dash.
    """
    source, first = _Source(content), items.items[0]
    at, between = source.at(first.line, first.column), ", "
    if not source.is_flow(items):
        before = source.text[source.starts[first.line - 1] : at]
        dash = _DASH.match(before)
        if dash is None:
            raise ValueError(before)
        between = f"\n{' ' * len(dash['before'])}- "
    return source.replaced((at, at, f"{text}{between}"))


def remove_field(content: bytes, fields: YamlMapping, name: str, *, owner: tuple[int, int]) -> bytes:
    """The file without one field whose value is a scalar, and with ``{}`` where it was the only one.

    ``owner``: the line and column of the key whose value is ``fields``. Raises ``ScalarEditError`` for a value that is not a
    scalar, and ``ValueError`` for a field that shares its line with others in block style. The caller compares the meaning.
    """
    source, value, (line, column) = _Source(content), fields.items[name], fields.keys[name]
    old = value.text if isinstance(value, YamlScalar) else ""
    _, end, quote = source.extent(ScalarEdit(line=value.line, column=value.column, old=old, new=""))
    begin, end, names = source.at(line, column), end + len(quote), list(fields.keys)
    if source.is_flow(fields):
        if name != names[-1]:
            end = source.at(*fields.keys[names[names.index(name) + 1]])
        elif len(names) > 1:
            begin = source.text.rindex(",", 0, begin)
        return source.replaced((begin, end, ""))
    first = source.starts[line - 1]
    if source.text[first:begin].strip() or value.line != line:
        raise ValueError(name)
    last = source.starts[line] if line < len(source.starts) else len(source.text)
    whole = [(first, last, "")]
    if len(names) == 1:
        colon = source.text.index(":", source.at(*owner)) + 1
        whole.append((colon, colon, " {}"))
    return source.replaced(*whole)
