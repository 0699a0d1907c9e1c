"""Who is trusted: what decides where a write goes and what limits it comes from a reference, the quotas from the work tree.

A pull request may come from anyone. With ``--trusted-ref`` its changes to connection, scope, prune, guards, protected entities,
acceptances, owners, limits and lint settings are read, checked and told, and count only after merge.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.model import Finding, Rule, Severity, display_name
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
from reconciler.workflows.load import LoadedManifests, Trust
from reconciler.workflows.spans import without_spans
from reconciler.workflows.trusted_files import TrustedFiles, files_at

_WORDS: Final = {
    "cluster_id": "clusterId", "removal_limit": "guards", "broker_settings": "brokerSettings", "quota_callback": "quotaCallback",
    "cluster_paths": "clusterPaths",
}  # fmt: skip
"""Fields by the names that the manifests have for them, where those differ."""
_NOT_COMPARED: Final = frozenset({"span", "places", "name", "file", "exclude"})
"""Where something is written is no difference; which files are read (``exclude``) is the work tree's own, as their content is."""


COUNTS_AFTER_MERGE: Final = Rule(
    id="counts-after-merge",
    severity=Severity.INFO,
    explanation="With --trusted-ref, connections, scopes, guards, protected entities, acceptances, owners, limits and lint "
    "settings come from that git reference, since a pull request must not lift the limits that judge it, nor send a password "
    "to another host. What differs here is checked, and holds once it is merged.",
)
"""What validate says where plan has a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedTree:
    """The manifests of a trusted reference, and the work tree that they rule."""

    at: ManifestsAt

    @property
    def ref(self) -> str:
        """The reference as the user wrote it."""
        return self.at.ref

    def trust(self) -> Trust:
        """What loading the work tree takes from here."""
        root = None if self.at.root is None else str(Path(self.at.git.top, self.at.root))
        loaded = self.at.loaded
        return Trust(ref=self.ref, clusters=loaded.clusters, repository=loaded.repository, root=root)

    def path_of(self, place: str) -> str:
        """The work tree's path of a file that a place ``ref:path`` names."""
        return os.path.normpath(Path(self.at.git.top, place.removeprefix(f"{self.ref}:")))

    @property
    def files(self) -> TrustedFiles:
        """The files that options and manifests name."""
        return files_at(self.at.git, ref=self.at.ref, commit=self.at.commit)


def trusted_tree(ref: str | None, paths: Sequence[str]) -> TrustedTree | None:
    """The trusted manifests, when a reference is given. Raises as ``manifests_at``."""
    return None if ref is None else TrustedTree(at=manifests_at(ref, paths, same_links=True))


def not_yet(loaded: LoadedManifests, name: str | None) -> Iterator[str]:
    """One sentence for everything about a cluster that differs from the trusted reference and counts only after merge."""
    trust = loaded.trust
    if trust is None:
        return
    yield from _differing("the Repository document", loaded.proposed_repository, trust.repository, trust.ref)
    if name is not None:
        who = f"the Cluster document {display_name(name)}"
        yield from _differing(who, loaded.proposed.get(name), trust.clusters.get(name), trust.ref)


def _differing(what: str, proposed: object, trusted: object, ref: str) -> Iterator[str]:
    if proposed is None or trusted is None:
        if proposed is not None:
            yield f"{what} is new, and not yet in {ref}; what it says counts after merge"
        elif trusted is not None:
            yield f"{what} is removed here; what {ref} says holds until that is merged"
        return
    for field in dataclasses.fields(trusted):  # type: ignore[arg-type]  # both are documents, which are dataclasses
        if field.compare and field.name not in _NOT_COMPARED and not _same(proposed, trusted, field.name):
            yield f"{_WORDS.get(field.name, field.name)} of {what} differs from {ref}, which holds; the change counts after merge"


def _same(one: object, other: object, name: str) -> bool:
    return bool(without_spans(getattr(one, name)) == without_spans(getattr(other, name)))


def not_yet_findings(loaded: LoadedManifests, name: str | None) -> Iterator[Finding]:
    """The same as findings, at the document that is proposed (or at none, when it is removed)."""
    proposed = loaded.proposed.get(name or "")
    place = proposed.span if proposed is not None else None
    for message in not_yet(loaded, name):
        yield Finding(id=COUNTS_AFTER_MERGE.id, severity=COUNTS_AFTER_MERGE.severity, message=message, span=place)
