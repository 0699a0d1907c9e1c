"""Our own code as an archive, for workers on other machines: they have pyarrow, but not us."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

import reconciler

_WRITTEN: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive: equal code, equal bytes."""


def code_archive(folder: Path) -> Path | None:
    """A zip of all modules, written into ``folder``; ``None`` where we run from a wheel that was handed to ``spark-submit``."""
    root = Path(reconciler.__file__).parent
    if not root.is_dir():
        return None
    archive = folder / "reconciler.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as code:
        for path in sorted(root.rglob("*.py")):
            entry = zipfile.ZipInfo(str(path.relative_to(root.parent)), _WRITTEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            code.writestr(entry, path.read_bytes())
    return archive
