"""Pages of the documentation, and parts of them, for the tests that run their examples."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    """The text of ``docs/NAME.md``."""
    return (DOCS / f"{name}.md").read_text("utf-8")


def part(name: str, heading: str) -> str:
    """The text below one ``##`` heading of a page. Its ``###`` headings become ``##``, as if the part were a page."""
    (text,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page(name), re.DOTALL | re.MULTILINE)
    return re.sub(r"^###", "##", text, flags=re.MULTILINE)


def before(name: str, heading: str) -> str:
    """The text of a page above one ``##`` heading."""
    above, found, _ = page(name).partition(f"\n## {heading}\n")
    assert found, (name, heading)
    return above


def shown_commands(name: str) -> list[tuple[str, str]]:
    """Each command in the console blocks of a page, and what the page says it prints."""
    return [
        shown
        for block in re.findall(r"```console\n(.*?)```", page(name), re.DOTALL)
        for shown in re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
    ]
