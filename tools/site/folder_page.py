"""One page with every file of a folder of the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

_LANGUAGES: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".md": "markdown", ".service": "ini", ".toml": "toml"}


def folder_page(root: Path, folder: str, title: str, text: str) -> str:
    """Markdown: a heading and a code block for each file that git knows, in the order of their paths."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder],  # noqa: S607 - git of the PATH, as for everything in this checkout
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    parts = [f"# {title}\n\n{text}\n"]
    for path in sorted(one for one in listed.split("\0") if one):
        content = (root / path).read_text(encoding="utf-8").rstrip("\n")
        fence = max([*re.findall("`{3,}", content), "``"], key=len) + "`"
        language = _LANGUAGES.get(Path(path).suffix, "text")
        parts.append(f"## {Path(path).relative_to(folder)}\n\n{fence}{language}\n{content}\n{fence}\n")
    return "\n".join(parts)
