"""Where a file is, seen from the root of the repository: what GitHub and code scanning want to hear."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Turns paths as the user typed them into paths below the repository. Both folders are absolute, with ``/``.

    Without folders, paths are only tidied (``./a//b`` becomes ``a/b``).
    """

    working_folder: str = "/"
    root: str = "/"

    def relative(self, file: str) -> str:
        """The path from the root, with ``/``; a file outside the root keeps the path it was given."""
        tidy = posixpath.normpath(file)
        path = posixpath.normpath(posixpath.join(self.working_folder, file))
        root = posixpath.normpath(self.root)
        if path == root:
            return "."
        prefix = root if root.endswith("/") else f"{root}/"
        return path.removeprefix(prefix) if path.startswith(prefix) and not self._bare(file) else tidy

    def _bare(self, file: str) -> bool:
        """True for an absolute path when no root is known: it cannot be made relative to anything."""
        return self.root == "/" and file.startswith("/")
