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

    __slots__ = ("key", "key_place", "node", "skip")

    def __init__(self, node: Any) -> None:
        self.node = node
        self.key: str | None = None
        self.key_place = (0, 0)
        # True while the value of a key that is not used (a duplicate, null) is read.
        self.skip = False


class _Reader:
    """One file. ``top`` is the innermost open list or mapping."""

    def __init__(self) -> None:
        self.documents: list[YamlNode] = []
        self.problems: list[YamlProblem] = []
        self.stack: list[_Frame] = []
        self.top: _Frame | None = None

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
            return
        data = plain_data(text) if plain and event.tag is None else text
        self.attach(YamlScalar(text, data, line, column))

    def key(self, frame: _Frame, text: str, *, plain: bool, place: tuple[int, int]) -> None:
        frame.key, frame.key_place = text, place
        if text in frame.node.items:
            self.problem(
                "duplicate-key",
                compose("the key {text} is already in this mapping. Keep one of the two", text=shown_part(text)),
                *place,
            )
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
        is_mapping = type(event) is MappingStartEvent
        node: Any = YamlMapping({}, {}, {}, line, column) if is_mapping else YamlSequence([], [], line, column)
        self.top = _Frame(node)
        self.stack.append(self.top)

    def close(self, _event: Any) -> None:
        """End the innermost list or mapping."""
        frame = self.stack.pop()
        self.top = self.stack[-1] if self.stack else None
        self.attach(frame.node)

    def alias(self, event: Any) -> None:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        message = (
            "aliases are not supported. Write the value out, use a profile for values of many entries, or put text that begins "
            "with * in quotes. List a file that is not a manifest under spec.exclude in kafka-quotas.yaml"
        )
        raise _StopReading(YamlProblem(id="yaml-alias", message=message, line=line, column=column))

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
