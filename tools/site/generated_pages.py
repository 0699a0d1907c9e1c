"""A Sphinx extension: writes the pages of the reference before anything is read, and turns links out of docs/ to their pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from catalogue_page import catalogue_pages
from commands_page import commands_pages
from documents_page import documents_pages
from folder_page import folder_page
from python_page import python_page, values_page
from search_words import add_words
from sphinx.application import Sphinx
from tables_page import tables_page

ROOT: Final = Path(__file__).parents[2]
_FOLDERS: Final = {
    "deploy": ("Service files", "The files in `deploy/`. [Run as a service](../run.md) uses them."),
    "examples/many-teams": ("Many-team repository", "The files in `examples/many-teams`."),
    "examples/gitops-repository": ("GitOps repository", "The files in `examples/gitops-repository`."),
}
_MEASURED: Final = {
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/fidelity/README.md": "fidelity-figures.md",
    "benchmarks/traffic_sources.md": "traffic-source-figures.md",
}
_FILES: Final = {"README.md": "index.md", **{path: f"reference/{page}" for path, page in _MEASURED.items()}}
"""Files that the pages link to, and where they are here."""
_INDEX: Final = """\
# Commands, documents, findings

| reference | content |
|---|---|
| [Commands](commands.md) | every command with its options, and the exit codes |
| [Documents](documents.md) | the fields of manifests and of JSON output |
| [Findings and guards](ids.md) | every id that the output shows, as `kafka-quotas explain ID` prints it |
| [Python interface](python.md), [values and errors](values.md) | every public name of `reconciler.client` |
| [Tables](tables.md) | the columns of traffic, verdicts, seconds and recommendations, in Parquet and Spark |
| [Many-team repository](many-teams.md), [GitOps repository](gitops-repository.md), [service files](deploy.md) | files to copy |

```{toctree}
:hidden:
commands
documents
ids
python
values
tables
many-teams
gitops-repository
deploy
```
"""
"""The page that the pages of the reference stand below."""
_LINK: Final = re.compile(r"\]\(\.\./([\w./-]+?)/?\)")


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _turn_links)
    app.connect("doctree-read", add_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference"
    pages = {
        "index.md": _INDEX,
        **commands_pages(),
        **documents_pages(ROOT / "schemas"),
        **catalogue_pages(),
        "tables.md": tables_page(),
        "python.md": python_page(),
        "values.md": values_page(),
        **{page: _measured(ROOT / path) for path, page in _MEASURED.items()},
        **{_page_of(path): folder_page(ROOT, path, title, text) for path, (title, text) in _FOLDERS.items()},
        **{f"schemas/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "schemas").glob("*.json")},
    }
    for name, content in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")


def _turn_links(_app: Sphinx, name: str, source: list[str]) -> None:
    """A link to the README leads to the first page here, one to a folder of the repository to its page."""

    def turned(found: re.Match[str]) -> str:
        page = _FILES.get(found[1]) or (f"reference/{_page_of(found[1])}" if found[1] in _FOLDERS else None)
        return f"]({page})" if page else found[0]

    if "/" not in name:
        source[0] = _LINK.sub(turned, source[0])


def _measured(path: Path) -> str:
    """A page of measurements, whose links into ``docs/`` start from where the site has it."""
    return re.sub(r"\]\((?:\.\./)+docs/", "](../", path.read_text(encoding="utf-8"))


def _page_of(folder: str) -> str:
    return f"{folder.rsplit('/', 1)[-1]}.md"
