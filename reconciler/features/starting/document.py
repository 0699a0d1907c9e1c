"""What a new repository consists of, as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.documents import Document
from reconciler.model import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRepository:
    """What a new repository for quotas consists of, and what to do next."""

    folder: str
    """As it was given."""
    files: tuple[str, ...]
    """Paths below the folder."""
    clusters: tuple[str, ...]
    """Names of the Cluster manifests."""
    placeholders: tuple[str, ...]
    """Words in the files that a person must replace."""
    findings: tuple[Finding, ...]
    """What of the cluster could not be declared."""
    next: tuple[str, ...]
    """Commands, for a shell."""


INIT: Final = Document(cls=NewRepository, name="init", title="kafka-quotas init")
