"""The cluster that is altered by hand, and what manifests say about it, where some are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.manifest import desired_state
from reconciler.model import ClusterSpec, Entity, ManifestCommit, Span
from reconciler.policy import ManagedAt
from reconciler.workflows.git_repository import source_of
from reconciler.workflows.load import chosen_cluster, load_manifests, stop_on
from reconciler.workflows.references import References, read_references
from reconciler.workflows.same_cluster import OtherClusters
from reconciler.workflows.trusted import TrustedTree


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTarget:
    """Without manifests (``managed`` false) nothing is known but the connection that the caller made."""

    spec: ClusterSpec = field(default_factory=ClusterSpec)
    managed: bool = False
    declared: Mapping[Entity, Span] = field(default_factory=dict)
    source: ManifestCommit = field(default_factory=ManifestCommit)
    trusted: TrustedTree | None = None
    others: OtherClusters = field(default_factory=OtherClusters)

    def managed_at(self, entity: Entity) -> ManagedAt | None:
        """Where manifests own the entity; ``None`` when they do not."""
        if not self.managed:
            return None
        if entity in self.declared:
            return ManagedAt(declared=True, place=self.declared[entity])
        return ManagedAt(declared=False, place=self.spec.place("scope")) if self.spec.scope.contains(entity) else None


def load_target(paths: Sequence[str], *, cluster: str | None, trusted_ref: str | None = None) -> AlterTarget:
    """The cluster of the manifests when a path or a name (or a trusted reference) is given, else a target without any.

    Raises ``ManifestError`` for manifests with errors, ``UsageError`` when it is not clear which cluster is meant, and for the
    reference ``GitError`` or ``UntrustedError``.
    """
    if not paths and cluster is None and trusted_ref is None:
        return AlterTarget()
    where = list(paths) or ["."]
    seen = read_references(References(trusted=trusted_ref), where)
    loaded = load_manifests(where, trust=seen.trust)
    stop_on(loaded.findings)
    spec = chosen_cluster(loaded, cluster)
    # All files count, whichever were named: an entity that another file declares is no less managed.
    entities = desired_state(loaded.documents, spec).state.entities
    return AlterTarget(
        spec=spec,
        managed=True,
        declared={entity: one.source for entity, one in entities.items() if spec.scope.contains(entity)},
        source=source_of(Path(where[0])),
        trusted=seen.trusted,
        others=OtherClusters(spec=spec, loaded=loaded),
    )
