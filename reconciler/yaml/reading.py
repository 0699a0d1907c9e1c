"""YAML text into nodes with places: the only module that reads with PyYAML.

Events are used instead of ``compose``: the nesting is then checked before anything recurses (composing 30,000 levels crashes the
process), and nothing of YAML 1.1's typing (``on``, ``0123``, ``12:30``) ever happens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from reconciler.model import compose, escaped
from reconciler.text import shown_part

MAX_DEPTH: Final = 64
"""Deepest nesting of lists and mappings; manifests need eight."""

MAX_EXPANDED_NODES: Final = 100_000
"""Most nodes that the aliases of one file may stand for."""

MAX_SEPARATORS: Final = 3_000_000
"""Most commas, colons and line ends in one file; they bound the number of nodes, and so the memory (below 1 GB)."""

MAX_PROBLEMS: Final = 100_000
"""Most problems of one file; the rest of a file with more is not read."""

# Every line end of YAML 1.1: a bound that counted LF alone would not bound a file that ends its lines with others.
_SEPARATORS: Final = (b",", b":", b"\n", b"\r", "\x85".encode(), "\u2028".encode(), "\u2029".encode())

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING_TAG: Final = "tag:yaml.org,2002:str"
_UNQUOTED: Final = re.compile(r"[:,{\[]\s+(?:[:%@`&*!|>]\S|[0-9A-Fa-f:]*::)|:\s+[^\"'\s]\S*:\s")
_NOT_YAML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


# Making named tuples this way saves a Python call for each of the many scalars.
_new: Final = tuple.__new__
_ODD_KEYS: Final = frozenset({"", "~", "null", "Null", "NULL", "<<"})


class _StopReading(Exception):  # noqa: N818 - not an error of the program: the rest of the file is not read
    def __init__(self, problem: YamlProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Frame:
    """A list or mapping that is being read. ``key`` is the pending key of a mapping, ``None`` when a key comes next.

    ``items`` are those of a mapping, ``None`` for a list.
    """

    __slots__ = ("anchor", "data", "first", "height", "items", "key", "key_place", "keys", "node", "skip")

    def __init__(self, node: Any, anchor: str | None, first: int) -> None:
        self.node = node
        self.data = node.data
        if type(node) is YamlMapping:
            self.items: dict[str, YamlNode] | None = node.items
            self.keys = node.keys
        else:
            self.items = None
        self.anchor = anchor
        self.first = first
        self.height = 1
        self.key: str | None = None
        self.key_place = (0, 0)
        # True while the value of a key that is not used (a duplicate, a merge key) is read.
        self.skip = False


class _Anchored:
    __slots__ = ("height", "node", "size")

    def __init__(self, node: YamlNode, size: int, height: int) -> None:
        self.node = node
        self.size = size
        self.height = height


class _Reader:
    """One file. ``top`` is the innermost open list or mapping.

    ``count`` counts the values in finished lists and mappings, with aliases expanded.
    """

    def __init__(self) -> None:
        self.documents: list[YamlNode] = []
        self.problems: list[YamlProblem] = []
        self.stack: list[_Frame] = []
        self.top: _Frame | None = None
        self.anchors: dict[str, _Anchored | None] = {}
        self.count = 0
        self.expanded = 0

    def read(self, text: str) -> None:
        loader = _LOADER(text)
        get, scalar_of, typed = loader.get_event, _new, TYPED_STARTS
        others = {
            MappingStartEvent: self.open,
            MappingEndEvent: self.close,
            SequenceStartEvent: self.open,
            SequenceEndEvent: self.close,
            AliasEvent: self.alias,
        }
        try:
            while True:
                event = get()
                kind = type(event)
                if kind is ScalarEvent:
                    frame = self.top
                    if frame is None or (items := frame.items) is None or frame.skip or event.tag or event.anchor:
                        self.rare_scalar(event)
                        continue
                    # The commonest scalars, keys and values of mappings, go straight to their place: no call for each of them.
                    text, mark, key = event.value, event.start_mark, frame.key
                    place = mark.line + 1, mark.column + 1
                    if key is not None:
                        data = text if event.style or text[:1] not in typed else plain_data(text)
                        items[key] = scalar_of(YamlScalar, (text, data, *place))
                        frame.data[key] = data
                        frame.keys[key] = frame.key_place
                        frame.key = None
                    elif text in items or text in _ODD_KEYS:
                        self.key(frame, text, plain=not event.style, place=place)
                    else:
                        frame.key, frame.key_place = text, place
                elif kind in others:
                    others[kind](event)
                elif kind is DocumentStartEvent:
                    self.anchors = {}
                elif kind is StreamEndEvent:
                    return
        finally:
            loader.dispose()

    def rare_scalar(self, event: Any) -> None:
        mark = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        text = event.value
        plain = not event.style
        if event.tag is not None and event.tag != _STRING_TAG:
            self.tag(event)
        frame = self.top
        if frame is not None and frame.items is not None and frame.key is None:
            self.key(frame, text, plain=plain and event.tag is None, place=(line, column))
            if event.anchor is not None:
                self.anchors[event.anchor] = _Anchored(YamlScalar(text, text, line, column), 1, 0)
            return
        data = plain_data(text) if plain and event.tag is None else text
        made = YamlScalar(text, data, line, column)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(made, 1, 0)
        self.attach(made)

    def key(self, frame: _Frame, text: str, *, plain: bool, place: tuple[int, int]) -> None:
        frame.key, frame.key_place = text, place
        if text in frame.node.items:
            self.problem(
                "duplicate-key",
                compose("the key {text} is already in this mapping. Keep one of the two", text=shown_part(text)),
                *place,
            )
            frame.skip = True
        elif plain and text == "<<":
            self.problem("yaml-merge-key", "merge keys (<<) are not supported. Write the keys out", *place)
            frame.skip = True
        elif plain and plain_data(text) is None:
            self.problem("non-string-key", "a key is missing, or null. Write its name, in quotes if it must be", *place)
            frame.skip = True

    def attach(self, node: YamlNode) -> None:
        """Put a finished (or, for containers, just started) value where it belongs."""
        frame = self.top
        if frame is None:
            self.documents.append(node)
            return
        parent = frame.node
        if isinstance(parent, YamlSequence):
            parent.items.append(node)
            parent.data.append(node.data)
            return
        key = frame.key
        if key is None:
            self.problem("non-string-key", "a key must be text, not a list or a mapping", node.line, node.column)
            frame.key, frame.skip = "", True
            return
        if frame.skip:
            frame.skip = False
        else:
            parent.items[key] = node
            parent.data[key] = node.data
            parent.keys[key] = frame.key_place
        frame.key = None

    def open(self, event: Any) -> None:
        """Begin a list or a mapping."""
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if len(self.stack) >= MAX_DEPTH:
            raise _StopReading(_too_deep(line, column))
        if event.tag is not None:
            self.tag(event)
        anchor = event.anchor
        if anchor is not None:
            self.anchors[anchor] = None
        is_mapping = type(event) is MappingStartEvent
        node: Any = _new(YamlMapping, ({}, {}, {}, line, column)) if is_mapping else _new(YamlSequence, ([], [], line, column))
        self.top = _Frame(node, anchor, self.count)
        self.stack.append(self.top)

    def close(self, _event: Any) -> None:
        """End the innermost list or mapping."""
        frame = self.stack.pop()
        self.count += len(frame.node.items)
        if frame.anchor is not None:
            self.anchors[frame.anchor] = _Anchored(frame.node, self.count - frame.first + 1, frame.height)
        above = self.top = self.stack[-1] if self.stack else None
        if above is not None and above.height <= frame.height:
            above.height = frame.height + 1
        self.attach(frame.node)

    def alias(self, event: Any) -> None:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        name = event.anchor
        if name not in self.anchors:
            raise _StopReading(
                YamlProblem(
                    id="yaml-syntax",
                    message="no anchor before this is the one of this alias. Put text that begins with * in quotes",
                    line=line,
                    column=column,
                )
            )
        anchored = self.anchors[name]
        if anchored is None:
            message = f"the alias *{name} is inside what it stands for"
            raise _StopReading(YamlProblem(id="yaml-alias-limit", message=message, line=line, column=column))
        self.count += anchored.size - 1
        self.expanded += anchored.size
        if self.expanded > MAX_EXPANDED_NODES:
            message = f"the aliases of this file stand for more than {MAX_EXPANDED_NODES} nodes. Write fewer of them"
            raise _StopReading(YamlProblem(id="yaml-alias-limit", message=message, line=line, column=column))
        if len(self.stack) + anchored.height > MAX_DEPTH:
            raise _StopReading(_too_deep(line, column))
        frame = self.top
        if frame is None:
            return
        frame.height = max(frame.height, anchored.height + 1)
        node = anchored.node
        if type(frame.node) is YamlMapping and frame.key is None and type(node) is YamlScalar:
            self.key(frame, node.text, plain=False, place=(line, column))
        else:
            self.attach(node)

    def tag(self, event: Any) -> None:
        mark = event.start_mark
        message = compose(
            "explicit tags are not supported. Every value is read as it is written. Put text that begins with ! in quotes"
        )
        self.problem("yaml-tag", message, mark.line + 1, mark.column + 1)

    def problem(self, problem_id: str, message: str, line: int, column: int) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            words = f"the file has more than {MAX_PROBLEMS} problems. The rest is not read. Correct the ones above first"
            raise _StopReading(YamlProblem(id="too-many-findings", message=words, line=line, column=column))
        self.problems.append(YamlProblem(id=problem_id, message=message, line=line, column=column))


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
        line, column = _place(before, len(before))
        message = f"byte 0x{content[error.start]:02x} is not UTF-8. Save the file as UTF-8"
        return YamlStream(problems=(YamlProblem(id="invalid-utf8", message=message, line=line, column=column),))
    reader = _Reader()
    try:
        reader.read(decoded)
    except _StopReading as stop:
        reader.problems.append(stop.problem)
    except yaml.YAMLError as error:
        reader.problems.append(_syntax_problem(error, decoded))
    documents = tuple(d for d in reader.documents if not (type(d) is YamlScalar and d.text == "" and d.data is None))
    return YamlStream(documents=documents, problems=tuple(reader.problems))


def _too_deep(line: int, column: int) -> YamlProblem:
    message = f"lists and mappings are nested more than {MAX_DEPTH} deep. Manifests need eight"
    return YamlProblem(id="yaml-too-deep", message=message, line=line, column=column)


def _syntax_problem(error: yaml.YAMLError, text: str) -> YamlProblem:
    odd = _NOT_YAML.search(text)
    if not isinstance(error, yaml.MarkedYAMLError) and odd is not None:
        line, column = _place(text, odd.start())
        message = f"the character U+{ord(odd.group()):04X} cannot be in a YAML file. In double quotes, write it as an escape"
        return YamlProblem(id="control-character", message=message, line=line, column=column)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = getattr(error, "problem", None) or "cannot be read"
    context = getattr(error, "context", None)
    message = f"not YAML: {escaped(str(problem))}{f' ({escaped(str(context))})' if context else ''}{_hint(text, line)}"
    return YamlProblem(id="yaml-syntax", message=message, line=line, column=column)


def _hint(text: str, line: int) -> str:
    """The two mistakes that YAML's own words do not name."""
    lines = text.splitlines()
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    indentation = here[: len(here) - len(here.lstrip())]
    if "\t" in indentation:
        return ". This line is indented with a tab: use blanks"
    if _UNQUOTED.search(here):
        return ". Text with special characters, such as an IPv6 address, needs quotes"
    return ""


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


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
