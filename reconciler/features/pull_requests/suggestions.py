"""What a forge can offer to commit on lines of a pull request: safe values, exceptions for guards, and declared removals.

A suggestion changes nothing by itself. A user who may push to the branch commits it, and code owners review it as any other line.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final

from reconciler.features.pull_requests.comment_rows import ChangeRow
from reconciler.features.pull_requests.comment_table import entity_markdown, key_markdown
from reconciler.features.pull_requests.comment_verdict import history_length
from reconciler.features.pull_requests.line_edits import FileDiff, LinePlace, documents_of, line_edit, scalars, with_items
from reconciler.formats import ValueRefusedError, parse_value, value_like
from reconciler.manifest import match_text
from reconciler.model import BacktestReport, Entity, GuardResult, Plan, QuotaKey, Span
from reconciler.render import RepoPaths, code
from reconciler.text import amount, count_of, list_some
from reconciler.yaml import ScalarEdit, edit_scalars, read_yaml

MOST_SUGGESTIONS: Final = 10
EXCEPTION_DAYS: Final = 14
"""How long an exception to copy lasts."""
_GUARD_ID: Final = re.compile(r"[a-z0-9_/:-]+")
_NAME: Final = 100
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Lines that take the place of one of the pull request's own version of a file."""

    place: LinePlace
    lines: tuple[str, ...]
    words: str
    """Why, in Markdown."""
    subject: str
    """What it is about: two runs about one thing have one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionSource:
    """What suggestions are made of. ``today``: from this day on an exception lasts."""

    plan: Plan
    report: BacktestReport | None
    places: RepoPaths
    today: datetime.date
    rows: Sequence[ChangeRow]

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to suggest. If not, the forge is not asked for changed lines."""
        return any(row.safe is not None for row in self.rows) or bool(acceptable(self.plan) or self.plan.kept)

    def suggestions(self, diffs: Mapping[str, FileDiff]) -> list[Suggestion]:
        """Return at most ten suggestions, the worst first, on lines that the pull request shows."""
        every = chain(self._values(diffs), self._exceptions(diffs), self._removals(diffs))
        return list(islice(every, MOST_SUGGESTIONS))

    def _values(self, diffs: Mapping[str, FileDiff]) -> Iterator[Suggestion]:
        """Safe values, each where its number stands: in an entry, an override or a profile."""
        by_place: dict[Span, list[ChangeRow]] = defaultdict(list)
        for row in self.rows:
            if row.source is not None and row.entity is not None and row.after is not None:
                by_place[row.source].append(row)
        read = functools.cache(_PlannedFile)
        for span, rows in by_place.items():
            low = [row for row in rows if row.safe is not None]
            path = self.places.relative(span.file)
            if not low or path not in diffs or len({(row.key, row.after) for row in rows}) > 1:
                continue
            file, value = read(span.file), max(row.safe or 0.0 for row in low)
            if diffs[path].place(span.line, file.line(span.line)) is not None:
                subject = f"value {path} {rows[0].key} {min(str(row.entity) for row in rows)}"
                edits = file.raised(span, rows[0], value)
                yield from _first(path, diffs[path], file.content, edits, self._reason(rows, low), subject)

    def _reason(self, rows: Sequence[ChangeRow], low: Sequence[ChangeRow]) -> str:
        neediest = max(low, key=lambda row: row.safe or 0.0)
        shown = amount(neediest.key, neediest.safe)
        throttles = f"throttles no recorded request of {history_length(self.report)}" if self.report else "throttles nothing"
        bound = any(group.worst.recorded.censored for row in low for group in row.groups)
        least = " A quota throttled them when they were recorded, so they may need more." if bound else ""
        quota = f"{_entity(neediest)} {key_markdown(neediest.key, _NAME)}"
        if len(rows) == 1:
            return f"{quota}: {shown} is the smallest limit that {throttles}.{least}"
        others = f"{count_of(len(rows), 'entity takes', 'entities take')} this value"
        return f"{others}. {shown}, the largest that one of them needs ({quota}), {throttles}.{least}"

    def _exceptions(self, diffs: Mapping[str, FileDiff]) -> Iterator[Suggestion]:
        """Exceptions in the Cluster manifest, where the pull request shows it. Validation refuses them without a reason."""
        guards = acceptable(self.plan)
        for path, diff in diffs.items() if guards else ():
            content = _content(str(Path(self.places.root, path)))
            for of in documents_of(content, "Cluster"):
                metadata = of.document.data.get("metadata")
                if not isinstance(metadata, dict) or metadata.get("name") != self.plan.cluster.name:
                    continue
                items = [item for guard in guards for item in exception_items(guard, self.today)]
                names = list_some([code(guard.id) for guard in guards], _MOST_NAMED)
                words = (
                    f"An exception for {names}, for these entities and {EXCEPTION_DAYS} days. Write the reason: validation asks "
                    "for it. The exception counts once it is merged."
                )
                edits = with_items(content, of, "accept", items, below=partial(_is_above, diff, math.inf))
                yield from _first(path, diff, content, edits, words, "exceptions")

    def _removals(self, diffs: Mapping[str, FileDiff]) -> Iterator[Suggestion]:
        """Entries with ``quotas: {}`` where entities left the manifests, and ``prune: never`` keeps their quotas."""
        for path, diff in diffs.items():
            gaps: dict[int, list[Entity]] = defaultdict(list)
            for kept in self.plan.kept:
                where = re.search(rf":{re.escape(path)}:([0-9]+)(?::[0-9]+)?\Z", kept.since)
                if where and int(where[1]) in diff.deleted:
                    gaps[diff.deleted[int(where[1])]].append(kept.entity)
            content = _content(str(Path(self.places.root, path))) if gaps else b""
            for gap, entities in gaps.items():
                items = [[f"- match: {match_text(entity)}", "  quotas: {}"] for entity in entities]
                edits = chain.from_iterable(
                    with_items(content, of, "quotas", items, below=partial(_is_above, diff, gap))
                    for of in reversed(list(documents_of(content, "ClientQuotas")))
                )
                names = list_some([entity_markdown(entity, _NAME) for entity in entities], _MOST_NAMED)
                words = f"{code('prune: never')} keeps the quotas of {names}. This entry removes them."
                subject = f"removal {' '.join(sorted(map(str, entities)))}"
                yield from _first(path, diff, content, edits, words, subject)


def _first(path: str, diff: FileDiff, content: bytes, edits: Iterable[bytes], words: str, subject: str) -> Iterator[Suggestion]:
    """Yield the first of several edits that the pull request shows the line of."""
    for edited in edits:
        edit = line_edit(content, edited)
        line = diff.place(edit.line, edit.before) if edit is not None else None
        if edit is not None and line is not None:
            place = LinePlace(path=path, line=line, old_path=diff.old_path, old_line=diff.old_lines.get(line))
            yield Suggestion(place=place, lines=edit.after, words=words, subject=subject)
            return


def acceptable(plan: Plan) -> list[GuardResult]:
    """The guards that exceptions can accept: each names its entities."""
    return [guard for guard in plan.tripped if guard.entities and _GUARD_ID.fullmatch(guard.id)]


def exception_items(guard: GuardResult, today: datetime.date) -> Iterator[list[str]]:
    """An exception for each entity of a guard, as lines of YAML, without a reason."""
    until = today + datetime.timedelta(days=EXCEPTION_DAYS)
    for entity in guard.entities:
        match = f"{match_text(entity).removesuffix('}')}, strict: true}}"
        yield [
            f"- guard: {guard.id}",
            f"  match: {match}",
            f"  until: {until:%Y-%m-%d}",
            "  reason: # write why this change is safe",
        ]


def _entity(row: ChangeRow) -> str:
    return entity_markdown(row.entity, _NAME) if row.entity is not None else ""


def _content(file: str) -> bytes:
    """Read a file that was there when the plan was made. It is empty if it cannot be read now."""
    try:
        return Path(file).read_bytes()
    except OSError:
        return b""


class _PlannedFile:
    """A file as it was planned, read once."""

    def __init__(self, file: str) -> None:
        self.content = _content(file)
        self._lines = self.content.decode("utf-8", "replace").split("\n")
        self._texts = {(s.line, s.column): s.text for document in read_yaml(self.content).documents for s in scalars(document)}

    def line(self, number: int) -> str:
        """A line by its number, from 1."""
        return self._lines[number - 1] if number <= len(self._lines) else ""

    def raised(self, span: Span, row: ChangeRow, number: float) -> Iterator[bytes]:
        """Yield the file with another number in the place of a value, unless the value is computed from what stands there."""
        key, text = QuotaKey(row.key), self._texts.get((span.line, span.column), "")
        with contextlib.suppress(ValueRefusedError, ValueError):
            if parse_value(key, text).number == row.after:
                edit = ScalarEdit(line=span.line, column=span.column, old=text, new=value_like(key, number, text))
                yield edit_scalars(self.content, [edit])


def _is_above(diff: FileDiff, gap: float, line: int, text: str) -> bool:
    """Whether the pull request shows a line above a gap."""
    at = diff.place(line, text)
    return at is not None and at <= gap
