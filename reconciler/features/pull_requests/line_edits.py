"""Edits of a manifest as a forge offers them: one line of the file, and the lines that take its place.

Each edit is made in the file as it was planned, and read again: an edit that changes anything else is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple, cast

from reconciler.yaml import Plain, YamlMapping, YamlNode, YamlScalar, YamlSequence, has_only, read_value, read_yaml

_HUNK: Final = re.compile(r"@@ -([0-9]+)(?:,[0-9]+)? \+([0-9]+)(?:,[0-9]+)? @@")
_DASH: Final = re.compile(r"(?P<before>[ ]*)- +")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlace:
    """A line that a pull request shows, in the new version of a file. ``old_line``: its number before, if it is unchanged."""

    path: str
    """Below the repository, with ``/``."""
    line: int
    old_path: str
    old_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """What a pull request shows of one file. Lines count from 1."""

    old_path: str
    lines: Mapping[int, str] = field(default_factory=dict)
    """The lines of the new file that can be commented on."""
    old_lines: Mapping[int, int] = field(default_factory=dict)
    """The numbers that unchanged ones of them have in the old file."""
    deleted: Mapping[int, int] = field(default_factory=dict)
    """The number of each deleted line in the old file, and that of the line of the new file before it."""

    def place(self, line: int, text: str) -> int | None:
        """Return the number of a line in the new file. The planned file is that of a merge and may have other numbers."""
        if self.lines.get(line) == text:
            return line
        same = [number for number, shown in self.lines.items() if shown == text]
        return same[0] if len(same) == 1 and len(text.strip()) > len("quotas:") else None


def read_diff(old_path: str, patch: str) -> FileDiff:
    """The hunks of a unified diff."""
    lines: dict[int, str] = {}
    old_lines: dict[int, int] = {}
    deleted: dict[int, int] = {}
    old = new = 0
    for row in patch.split("\n"):
        sign, text = row[:1], row[1:].removesuffix("\r")
        if hunk := _HUNK.match(row):
            old, new = int(hunk[1]), int(hunk[2])
        elif sign == "-":
            deleted[old] = new - 1
            old += 1
        elif sign in ("+", " ") and new:
            lines[new] = text
            if sign == " ":
                old_lines[new] = old
                old += 1
            new += 1
    return FileDiff(old_path=old_path, lines=lines, old_lines=old_lines, deleted=deleted)


class LineEdit(NamedTuple):
    """A line of a planned file (from 1) with its text, and the lines that take its place."""

    line: int
    before: str
    after: tuple[str, ...]


def line_edit(before: bytes, after: bytes) -> LineEdit | None:
    """The edit between two versions of a file; ``None`` where it is none of a single line."""
    if b"\r" in before:
        # What forges make of other line ends in a suggestion is not documented.
        return None
    old, new = (text.decode("utf-8").split("\n") for text in (before, after))
    most = min(len(old), len(new))
    begin = next((at for at in range(most) if old[at] != new[at]), most)
    most -= begin
    same = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    if len(old) - same == begin and begin:
        # Nothing but new lines: they stand below the line before them.
        begin -= 1
    elif len(old) - same != begin + 1:
        return None
    return LineEdit(begin + 1, old[begin], tuple(new[begin : len(new) - same]))


def scalars(node: YamlNode) -> Iterator[YamlScalar]:
    """Every value of a document that has a text."""
    if isinstance(node, YamlScalar):
        yield node
    else:
        for item in node.items.values() if isinstance(node, YamlMapping) else node.items:
            yield from scalars(item)


class SpecDocument(NamedTuple):
    """A document of a file by its number (from 0), with its ``spec``."""

    number: int
    document: YamlMapping
    spec: YamlMapping


def documents_of(content: bytes, kind: str) -> Iterator[SpecDocument]:
    """The documents of a kind."""
    for number, document in enumerate(read_yaml(content).documents):
        if isinstance(document, YamlMapping) and document.data.get("kind") == kind:
            spec = document.items.get("spec")
            if isinstance(spec, YamlMapping):
                yield SpecDocument(number, document, spec)


def with_items(
    content: bytes, of: SpecDocument, name: str, items: Sequence[Sequence[str]], *, below: Callable[[int, str], bool]
) -> Iterator[bytes]:
    """The file with more items in a list of a document's ``spec``, once for each place where they can go, from the last on.

    ``items``: the lines of each item in block style without their indent, of which the first begins with a dash.
    ``below``: whether they may go below a line, of this number and text.
    """
    listed = of.spec.data.get(name)
    before = listed if isinstance(listed, list) else []
    added = read_value("\n".join(chain.from_iterable(items)))
    for at, edited in _placed(content, of.spec, name, items, below):

        def change(documents: list[Plain], at: int = at) -> None:
            spec = cast("dict[str, dict[str, Plain]]", documents[of.number])["spec"]
            spec[name] = [*before[:at], *(added if isinstance(added, list) else ()), *before[at:]]

        if has_only(content, edited, change):
            yield edited


def _placed(
    content: bytes, spec: YamlMapping, name: str, items: Sequence[Sequence[str]], below: Callable[[int, str], bool]
) -> Iterator[tuple[int, bytes]]:
    """Yield the file with the items, and how many of the list stand before them."""
    listed, lines = spec.items.get(name), content.decode("utf-8").split("\n")
    if lines[spec.line - 1][spec.column - 1 : spec.column] == "{" and listed is None:
        return
    if listed is None:
        indent = " " * (spec.column - 1)
        block = [f"{indent}{name}:", *(f"{indent}  {line}" for item in items for line in item)]
        ends = [(_last_line(value), 0) for value in spec.items.values()]
    elif isinstance(listed, YamlSequence) and listed.items and (dash := _DASH.match(lines[listed.items[0].line - 1])):
        block = [f"{dash['before']}{line}" for item in items for line in item]
        ends = [(spec.keys[name][0], 0), *((_last_line(item), at) for at, item in enumerate(listed.items, 1))]
    else:
        return
    for end, at in sorted(ends, reverse=True):
        if below(end, lines[end - 1]):
            yield at, "\n".join((*lines[:end], *block, *lines[end:])).encode()


def _last_line(node: YamlNode) -> int:
    inner = list(node.items.values()) if isinstance(node, YamlMapping) else [] if isinstance(node, YamlScalar) else node.items
    return max((node.line, *map(_last_line, inner)))
