"""YAML text into nodes by the events of PyYAML, which is imported nowhere else. Reads all that ``reading`` leaves.

Events are used instead of ``compose``: the nesting is then checked before anything recurses (composing 30,000 levels crashes the
process), and nothing of YAML 1.1's typing (``on``, ``0123``, ``12:30``) ever happens.
"""

from __future__ import annotations

import re
from typing import Any, Final

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
from reconciler.yaml.reading import (
    MAX_DEPTH,
    YamlMapping,
    YamlNode,
    YamlProblem,
    YamlScalar,
    YamlSequence,
    YamlStream,
    place_at,
    plain_data,
)

MAX_EXPANDED_NODES: Final = 100_000
"""Most nodes that the aliases of one file may stand for."""

MAX_PROBLEMS: Final = 100_000
"""Most problems of one file; the rest of a file with more is not read."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING_TAG: Final = "tag:yaml.org,2002:str"
_UNQUOTED: Final = re.compile(r"[:,{\[]\s+(?:[:%@`&*!|>]\S|[0-9A-Fa-f:]*::)|:\s+[^\"'\s]\S*:\s")
_NOT_YAML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _StopReading(Exception):  # noqa: N818 - not an error of the program: the rest of the file is not read
    def __init__(self, problem: YamlProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Frame:
    """A list or mapping that is being read. ``key`` is the pending key of a mapping, ``None`` when a key comes next."""

    __slots__ = ("anchor", "first", "height", "key", "key_place", "node", "skip")

    def __init__(self, node: Any, anchor: str | None, first: int) -> None:
        self.node = node
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
        steps = {
            ScalarEvent: self.scalar,
            MappingStartEvent: self.open,
            MappingEndEvent: self.close,
            SequenceStartEvent: self.open,
            SequenceEndEvent: self.close,
            AliasEvent: self.alias,
        }
        try:
            while True:
                event = loader.get_event()
                kind = type(event)
                if kind in steps:
                    steps[kind](event)
                elif kind is DocumentStartEvent:
                    self.anchors = {}
                elif kind is StreamEndEvent:
                    return
        finally:
            loader.dispose()

    def scalar(self, event: Any) -> None:
        mark = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        text = event.value
        plain = not event.style
        if event.tag is not None and event.tag != _STRING_TAG:
            self.tag(event)
        frame = self.top
        if frame is not None and type(frame.node) is YamlMapping and frame.key is None:
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
        node: Any = YamlMapping({}, {}, {}, line, column) if is_mapping else YamlSequence([], [], line, column)
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


def read_events(text: str) -> YamlStream:
    """Return the documents of a file's text, and its problems. Never raises."""
    reader = _Reader()
    try:
        reader.read(text)
    except _StopReading as stop:
        reader.problems.append(stop.problem)
    except yaml.YAMLError as error:
        reader.problems.append(_syntax_problem(error, text))
    documents = tuple(d for d in reader.documents if not (type(d) is YamlScalar and d.text == "" and d.data is None))
    return YamlStream(documents=documents, problems=tuple(reader.problems))


def _too_deep(line: int, column: int) -> YamlProblem:
    message = f"lists and mappings are nested more than {MAX_DEPTH} deep. Manifests need eight"
    return YamlProblem(id="yaml-too-deep", message=message, line=line, column=column)


def _syntax_problem(error: yaml.YAMLError, text: str) -> YamlProblem:
    odd = _NOT_YAML.search(text)
    if not isinstance(error, yaml.MarkedYAMLError) and odd is not None:
        line, column = place_at(text, odd.start())
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
