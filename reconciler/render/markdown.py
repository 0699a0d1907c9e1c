"""Strangers' text inside Markdown, and lists that keep to a number of bytes.

A code span is the one place where neither Markdown nor GitHub (mentions, issue and commit references, emoji names, bare links,
formulas) reads anything into text, and it can have every printable character. Source of the rules: the GitHub Flavored Markdown
specification 0.29, sections 4.10 (tables) and 6.3 (code spans). Of lists, whole rows are dropped, and counted.
"""

from __future__ import annotations

import html
import itertools
import posixpath
import re
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.model import MessagePart, PartKind, Span, display_name, escaped, parts_of
from reconciler.render.layout import (
    Block,
    Fold,
    LabelledWords,
    Line,
    Style,
    Table,
    TextSegment,
    View,
    columns_on_pages,
    rows_on_pages,
    sections_of,
)
from reconciler.text import count_of

NAME_LIMIT: Final = 2000
"""Characters of one name that are shown; a name of 255 bytes always fits, escaped or not."""

_PLAIN_WORD: Final = re.compile(
    r"\(|\(?(?:[A-Za-z]+(?:['-][A-Za-z]+)*|(?:[a-z]\.)+|[0-9]{1,6}(?:\.[0-9]{1,6})?|[0-9]{1,3}(?:,[0-9]{3})+|(?:[KMGT]i)?B/s|->|%"
    r"|(?:connections|partitions)/s|\.{3}|[0-9]{1,4}-[0-9]{1,4}"
    r"|[\N{RIGHTWARDS ARROW}\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO}]"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)\)?[.,;:!?]{0,3}",
    re.ASCII,
)
"""Words that mean nothing to Markdown or GitHub. ``GH-1``, ``a@b``, ``www.x`` and long numbers (commits) are not among them."""

_AMOUNT: Final = re.compile(
    r"[0-9.,]{1,30} (?:[KMGT]?i?B/s|%|partitions/s|connections/s)(?: \([0-9.,]{1,30} B/s\))?|not set|unlimited", re.ASCII
)
"""Amounts as ``text.amount`` writes them; any other text that claims to be one is prose."""

_PUNCTUATION: Final = ".,;:)"
"""What follows a name rather than ends it; outside the code it means nothing to Markdown either."""
_LIST_MARK: Final = re.compile(r"[0-9]+[.)].*", re.DOTALL)

_MESSAGE_LIMITS: Final = 8


def code(text: str, *, limit: int = NAME_LIMIT) -> str:
    """Any text as a code span on one line: what does not print is escaped visibly, what is too long loses its middle."""
    return _span(shorten(escaped(text), limit))


def prose(text: str, *, limit: int = NAME_LIMIT, begins_line: bool = True) -> str:
    """Sentences that may quote strangers, on one line: plain words stay words, all else becomes code of ``limit`` characters."""
    parts: list[str] = []
    quoted: list[str] = []
    one_line = escaped(" ".join(text.splitlines())).strip()
    for word in shorten(one_line, _MESSAGE_LIMITS * limit).split(" "):
        begins_list = begins_line and not parts and _LIST_MARK.fullmatch(word)
        if begins_list or not _PLAIN_WORD.fullmatch(word):
            quoted.append(word)
            continue
        parts += _flushed(quoted, limit)
        parts.append(word)
    parts += _flushed(quoted, limit)
    return " ".join(parts)


def message_markdown(
    text: str, *, limit: int = NAME_LIMIT, begins_line: bool = True, place: Callable[[Span], str] | None = None
) -> str:
    """A message on one line: names, keys and flags as code, amounts that do not break. A plain string as ``prose``.

    ``place``: makes the Markdown of a place in a file, e.g. a link.
    """
    parts = parts_of(text)
    if len(parts) == 1 and parts[0].kind is PartKind.TEXT:
        return prose(text, limit=limit, begins_line=begins_line)
    whole = (part_markdown(part, begins=begins_line and not at, limit=limit, place=place) for at, part in enumerate(parts))
    return "".join(whole).strip()


def part_markdown(part: MessagePart, *, begins: bool, limit: int = NAME_LIMIT, place: Callable[[Span], str] | None = None) -> str:
    """One part of a message. ``begins``: it is the first of its line."""
    if part.span is not None and place is not None:
        return place(part.span)
    if part.kind not in (PartKind.TEXT, PartKind.AMOUNT):
        return code(part.text, limit=limit)
    if part.kind is PartKind.AMOUNT:
        return _unbroken(part.text) if _AMOUNT.fullmatch(part.text) else prose(part.text, limit=limit, begins_line=begins)
    before = " " if part.text[:1].isspace() and not begins else ""
    after = " " if part.text[-1:].isspace() and part.text.strip() else ""
    return f"{before}{prose(part.text, limit=limit, begins_line=begins)}{after}"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def in_cell(markdown: str) -> str:
    """Escape the result of ``code`` or ``prose`` for a cell of a table: no pipe in it ends the cell, even after a backslash."""
    return markdown.replace("|", r"\|")


def shorten(text: str, limit: int) -> str:
    """Text without its middle when it is longer than ``limit``, with its length."""
    if len(text) <= limit:
        return text
    return f"{text[: limit * 3 // 4]}…{text[-(limit // 4) :]} ({len(text)} characters)"


def fence(text: str) -> str:
    """A fence for a code block that no line of ``text`` can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _flushed(words: list[str], limit: int) -> list[str]:
    text = " ".join(words).strip()
    words.clear()
    name = text.rstrip(_PUNCTUATION)
    bracket = "(" if name.startswith("(") and ")" not in name and len(name) > 1 else ""
    return [bracket + _span(shorten(name.removeprefix(bracket), limit)) + text[len(name) :]] if text else []


def _span(text: str) -> str:
    """The shortest run of backticks that does not occur inside: parsers look no further than runs of 80."""
    if not text.strip():
        return ""
    runs = {len(run) for run in re.findall("`+", text)}
    ticks = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of Markdown, and how many rows had no room in it."""

    lines: tuple[str, ...] = ()
    left_out: int = 0


def size(lines: Iterable[str]) -> int:
    """Bytes of these lines in UTF-8, their line ends included."""
    return sum(len(line.encode()) + 1 for line in lines)


def rows_that_fit(rows: Iterable[str], room: int) -> list[str]:
    """The first rows that fit together into ``room`` bytes."""
    kept = []
    for row in rows:
        room -= size((row,))
        if room < 0:
            break
        kept.append(row)
    return kept


def fold(title: str, lines: Sequence[str], *, opened: bool = False) -> tuple[str, ...]:
    """Lines behind a title that opens them. ``title`` is HTML."""
    return ("<details open>" if opened else "<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", "")


_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9._~/%#?=&+-]*")
_BRANCH: Final = re.compile(r"(?:refs/heads|refs/remotes/[^/:]+|origin)/(?P<branch>[^:]+):(?P<path>.+)", re.DOTALL)
"""A file of a branch, as places of a trusted reference spell it."""
_SHORT_COMMIT: Final = 7
_SHORT_DIGEST: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoPaths:
    """Turns paths as the user typed them into paths below the repository. Both folders are absolute, with ``/``.

    Without folders, paths are only tidied (``./a//b`` becomes ``a/b``).
    """

    working_folder: str = "/"
    root: str = "/"
    others: tuple[str, ...] = ()
    """Roots of other work trees of the repository, absolute."""

    def relative(self, file: str) -> str:
        """The path from the root, with ``/``; a file outside the root keeps the path it was given."""
        tidy = posixpath.normpath(file)
        path = posixpath.normpath(posixpath.join(self.working_folder, file))
        for root in map(posixpath.normpath, (*self.others, self.root)):
            if path == root:
                return "."
            prefix = root if root.endswith("/") else f"{root}/"
            if path.startswith(prefix) and not self._bare(file):
                return path.removeprefix(prefix)
        return tidy

    def _bare(self, file: str) -> bool:
        """True for an absolute path when no root is known: it cannot be made relative to anything."""
        return self.root == "/" and file.startswith("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryLinks:
    """Addresses of one comment or page; ``None``: not known."""

    files: str | None = None
    """Of the repository's files at one commit, without a path: ``https://HOST/OWNER/NAME/blob/COMMIT``."""
    report: str | None = None
    """Of the backtest's page, e.g. an artifact of the run."""
    docs: str | None = None
    """Of the page that explains a guard; ``{id}`` in it stands for the guard."""
    places: RepoPaths = field(default_factory=RepoPaths)
    """Makes the paths of manifests relative to the repository."""

    def linked(self, markdown: str, span: Span | None) -> str:
        """A code span as a link to the line of a manifest, or as it is."""
        address = self.line_address(span) if span else None
        return f"[{markdown}]({address})" if address else markdown

    def place(self, span: Span, *, limit: int = NAME_LIMIT) -> str:
        """``[`teams/payments.yaml:8`](...)``."""
        branch = _BRANCH.fullmatch(span.file)
        path = f"{branch['branch']}:{branch['path']}" if branch else self.places.relative(span.file)
        return self.linked(code(f"{path}:{span.line}", limit=limit), span)

    def explained(self, guard_id: str) -> str:
        """Return where to read about a guard: its page, or the command that explains it."""
        address = web_address((self.docs or "").replace("{id}", urllib.parse.quote(guard_id, safe="")))
        return f"[explained here]({address})" if address else code(f"kafka-quotas explain {guard_id}")

    def line_address(self, span: Span) -> str | None:
        """The web address of a line; ``None`` for a file outside of the repository, too."""
        branch = _BRANCH.fullmatch(span.file)
        path = branch["path"] if branch else self.places.relative(span.file)
        if self.files is None or path.startswith(("/", "../")) or len(path) > NAME_LIMIT:
            return None
        quoted = urllib.parse.quote(path, safe="/", errors="surrogatepass")
        files = self.files
        if branch:
            # A file of the trusted branch may not be in the commit of the change, or have other lines there.
            files = f"{files.rpartition('/')[0]}/{urllib.parse.quote(branch['branch'], safe='/')}"
        return web_address(f"{files}/{quoted}#L{span.line}")


def files_at(server: str | None, repository: str | None, commit: str | None) -> str | None:
    """The address of a repository's files at a commit, as GitHub spells it; ``None`` when a part is not known."""
    return f"{server}/{repository}/blob/{commit}" if server and repository and commit else None


NO_LINKS: Final = RepositoryLinks()
"""Where no address is known."""


def web_address(text: str | None) -> str | None:
    """The text when it is a plain web address that Markdown takes as it is."""
    return text if text and _ADDRESS.fullmatch(text) else None


def short_commit(commit: str) -> str:
    """``e9e4731`` of a hexadecimal commit; other text as it is."""
    return commit[:_SHORT_COMMIT] if re.fullmatch(r"[0-9a-fA-F]{7,64}", commit) else commit


def short_digest(digest: str) -> str:
    """The first eight digits, without the name of the function."""
    return digest.rpartition(":")[2][:_SHORT_DIGEST]


_WHOLE_PAGE: Final = 1_000_000
"""Bytes, a little less than the 1 MiB that the summary of a step in GitHub Actions may have."""
_FORGE_READS: Final = re.compile("[@#!]|://|www\\.")
"""Mentions of people, numbers of pull requests, and addresses."""
_SENTENCE: Final = 300
"""Bytes kept free for the sentence about what has no room."""


def view_markdown(view: View, *, budget: int = _WHOLE_PAGE, links: RepositoryLinks = NO_LINKS) -> str:
    """A view in at most ``budget`` bytes."""
    cluster = f": {code(display_name(view.cluster))}" if view.cluster else ""
    answer = prose("".join(segment.text for segment in view.answer.on_pages))
    top = [f"### Kafka quotas, {view.kind}{cluster}", "", f"**{answer}** {prose(view.lead)}".strip(), ""]
    foot = [] if view.foot is None else [_words(view.foot, links)]
    body = _Body(links=links, room=budget - size((*top, *foot)) - _SENTENCE)
    body.write(view.blocks)
    if body.left_out:
        rows = count_of(body.left_out, "row has", "rows have")
        top += [f"**{rows} no room here.** `kafka-quotas {view.kind}` prints all of them.", ""]
    return "\n".join((*top, *body.lines, *foot)).rstrip("\n") + "\n"


def blocks_markdown(blocks: Iterable[Block], *, room: int, links: RepositoryLinks = NO_LINKS) -> Section:
    """Blocks as lines of Markdown in at most ``room`` bytes."""
    body = _Body(links=links, room=room)
    body.write(blocks)
    return Section(lines=tuple("\n".join(body.lines).strip().split("\n")) if body.lines else (), left_out=body.left_out)


@dataclass(slots=True, kw_only=True)
class _Body:
    """Lines of Markdown so far, the bytes that are left, and how many rows had no room."""

    links: RepositoryLinks
    room: int
    lines: list[str] = field(default_factory=list)
    left_out: int = 0

    def write(self, blocks: Iterable[Block]) -> None:
        for head, inner in sections_of(blocks):
            count = "" if head is None or head.count is None else f" ({head.count:,})"
            above = () if head is None else (f"#### {head.title}{count}", "")
            for is_line, group in itertools.groupby(inner, key=lambda block: isinstance(block, Line)):
                if is_line:
                    self._rows([f"- {_words(block, self.links)}" for block in group if isinstance(block, Line)], above)
                    above = ()
                    continue
                for block in group:
                    self._block(block, above)
                    above = ()

    def _block(self, block: Block, above: Sequence[str]) -> None:
        match block:
            case Table():
                columns = columns_on_pages(block)
                titles = (title_on_pages(block.columns[at].title) for at in columns)
                marks = (" ---: " if block.columns[at].to_the_right else " --- " for at in columns)
                rows = [self._row(row, below, columns) for row, below in rows_on_pages(block)]
                self._rows(rows, (*above, f"| {' | '.join(titles)} |", f"|{'|'.join(marks)}|"))
            case LabelledWords():
                shown = ((label, _words(words, self.links)) for label, words in block.rows)
                self._rows([f"- **{label}**: {words}" for label, words in shown if words], above)
            case Fold():
                inner = _Body(links=self.links, room=self.room - _SENTENCE)
                inner.write(block.blocks)
                title = "".join(map(_in_summary, block.title.on_pages)).strip()
                opened = block.opened and block.place is None
                self._rows(["\n".join(fold(title, inner.lines, opened=opened))] if inner.lines else [], above)
                self.left_out += inner.left_out
            case _:
                pass

    def _row(self, row: Sequence[Line], below: Sequence[Line], columns: Sequence[int]) -> str:
        cells = [in_cell(_words(row[at], self.links)) for at in columns]
        last = (cells[-1], *(in_cell(_words(each, self.links)) for each in below))
        return f"| {' | '.join((*cells[:-1], '<br>'.join(filter(None, last))))} |"

    def _rows(self, rows: Sequence[str], above: Sequence[str]) -> None:
        kept = rows_that_fit(rows, self.room - size((*above, "")))
        self.left_out += len(rows) - len(kept)
        if kept:
            lines = (*above, *kept, "")
            self.lines += lines
            self.room -= size(lines)


def title_on_pages(title: str) -> str:
    """The title of a column: as on terminals, but with a capital letter."""
    return title[:1].upper() + title[1:]


def _words(shown: Line, links: RepositoryLinks) -> str:
    """A line without the blanks around it."""
    return "".join(_segment(segment, links, begins=not at) for at, segment in enumerate(shown.on_pages)).strip()


def _in_summary(segment: TextSegment) -> str:
    """A part of the title of a fold: HTML, where a forge reads no Markdown. Names, and what it could take for one, are code."""
    text = html.escape(segment.text, quote=False)
    return f"<code>{text}</code>" if segment.kind is not PartKind.TEXT or _FORGE_READS.search(text) else text


def _segment(segment: TextSegment, links: RepositoryLinks, *, begins: bool) -> str:
    words = part_markdown(segment.part, begins=begins, place=links.place) if segment.text else ""
    bold = segment.chip or (segment.kind is PartKind.TEXT and segment.style is Style.STRONG)
    return words.replace(words.strip(), f"**{words.strip()}**") if bold and words.strip() else words
