"""Markdown as those who read it see it: GitHub's parser, a second one, and what stands where in their HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt

_EXTENSIONS = ["table", "autolink", "strikethrough"]
_VOID = {"br", "hr", "img", "meta", "input", "wbr"}


def by_github(markdown: str) -> Seen:
    """GitHub's own parser with GitHub's extensions."""
    return seen(cmarkgfm.markdown_to_html_with_extensions(markdown, Options.CMARK_OPT_UNSAFE, _EXTENSIONS))


def by_markdown_it(markdown: str) -> Seen:
    """An independent parser of the same grammar."""
    return seen(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


@dataclass
class Seen:
    """What a page holds."""

    elements: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str | None]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    """Every run of text with the element that holds it."""

    def outside(self, *elements: str) -> str:
        """All text that none of these elements holds directly."""
        return "".join(text for element, text in self.texts if element not in elements)

    def text(self) -> str:
        """All text."""
        return self.outside()


def seen(html: str) -> Seen:
    """Read HTML as a browser would."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [], "every element is closed"
    return reader.seen


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.elements.append(tag)
        self.seen.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "tr":
            self.seen.rows.append([])
        if tag in ("td", "th"):
            self.seen.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return  # <br />
        assert self.open, f"{tag} closes nothing"
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.seen.comments.append(data)

    def handle_data(self, data: str) -> None:
        self.seen.texts.append((self.open[-1] if self.open else "", data))
        if "td" in self.open or "th" in self.open:
            self.seen.rows[-1][-1] += data
