"""Files and findings as seen from the root of the repository: paths, fingerprints and their order."""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass

from reconciler.formats import Json, canonical_bytes, entity_to_json
from reconciler.model import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoPaths:
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


def fingerprint(finding: Finding, places: RepoPaths) -> str:
    """32 hexadecimal digits of the rule, the file, and what the finding is about (its message, when that is no entity)."""
    entity = entity_to_json(finding.entity) if finding.entity is not None else None
    about: Json = [entity, finding.key] if entity is not None else finding.message
    path = places.relative(finding.span.file) if finding.span else None
    return hashlib.sha256(canonical_bytes([finding.id, path, about])).hexdigest()[:32]


def place_order(finding: Finding, places: RepoPaths) -> tuple[int, str, int, int, str, str]:
    """Sorts the worst first, then by file, line and column."""
    span = finding.span
    place = (places.relative(span.file), span.line, span.column) if span else ("", 0, 0)
    return (finding.severity.rank, *place, finding.id, finding.message)
