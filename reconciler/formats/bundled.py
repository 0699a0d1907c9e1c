"""Files that travel with the package but live beside it in the source tree: examples and schemas."""

from __future__ import annotations

from pathlib import Path

import reconciler
from reconciler.errors import FileAccessError


def bundled(name: str, *, holds: str) -> Path:
    """The folder ``name``: inside the package when installed from a wheel, beside it in a source tree.

    A folder of that name is ours when it has the file ``holds``. Raises ``FileAccessError`` when there is none in either place.
    """
    package = Path(reconciler.__file__).parent
    for candidate in (package / name, package.parent / name):
        if (candidate / holds).is_file():
            return candidate
    msg = f"this installation of kafka-quotas lacks its {name}; install kafka-quota-reconciler again"
    raise FileAccessError(msg)
