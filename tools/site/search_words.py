"""Words that readers search for, by page (``docs/search_words.toml``): in the index and in the order of hits."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def search_words(docs: Path) -> dict[str, str]:
    """The words of each page, by its name without suffix."""
    return tomllib.loads((docs / "search_words.toml").read_text(encoding="utf-8"))


def write_scorer(docs: Path) -> Path:
    """Write the scorer with the words of all pages, and return its path."""
    path = docs / "reference" / "search_scorer.js"
    path.parent.mkdir(exist_ok=True)
    scorer = (docs / "search_scorer.js").read_text(encoding="utf-8")
    path.write_text(f"const PAGE_WORDS = {json.dumps(search_words(docs))};\n{scorer}", encoding="utf-8")
    return path


def add_words(app: Sphinx, doctree: nodes.document) -> None:
    """Add the words of a page to its keywords, which Sphinx puts into the index. Raises ``KeyError`` for no known page."""
    words = search_words(Path(app.srcdir)).get(app.env.docname)
    if words:
        doctree.insert(0, nodes.meta("", name="keywords", content=", ".join(words.split())))
