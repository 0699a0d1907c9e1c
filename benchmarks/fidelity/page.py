"""The figures in ``benchmarks/fidelity/README.md``: what stands between two marks is written by the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.fidelity.tables import Table, as_markdown

BEGIN: Final = "<!-- figures: begin -->"
END: Final = "<!-- figures: end -->"


def write_figures(page: Path, found: Sequence[Table], *, about: str) -> None:
    """Replace the figures of a page that has the marks; a file that is not there yet gets nothing else."""
    text = page.read_text(encoding="utf-8") if page.exists() else f"{BEGIN}\n{END}\n"
    page.write_text(with_figures(text, found, about=about), encoding="utf-8")


def with_figures(text: str, found: Sequence[Table], *, about: str) -> str:
    """The same text with other figures. Raises ``SystemExit`` for a text without the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page for the figures has no {BEGIN} before an {END}")
    figures = "\n".join([f"{about}.", "", *map(as_markdown, found)])
    return f"{before}{BEGIN}\n\n{figures}\n{END}{after}"
