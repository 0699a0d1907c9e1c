"""Files that travel with the package but live beside it in the source tree: examples and schemas."""

from __future__ import annotations

from pathlib import Path

import reconciler
from reconciler.errors import FileAccessError


def bundled(name: str) -> Path:
    """The folder ``name``: inside the package when installed from a wheel, beside it in a source tree.

    Raises ``FileAccessError`` when it is in neither place.
    """
    package = Path(reconciler.__file__).parent
    for candidate in (package / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    msg = f"this installation of kafka-quotas lacks its {name}; install it again"
    raise FileAccessError(msg)
