"""Two Cluster manifests of one real cluster: what each declares, the other may undo."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.errors import WrongClusterError
from reconciler.manifest import endpoints
from reconciler.model import ClusterIdentity, ClusterSpec, Entity, display_name, escaped
from reconciler.workflows.load import LoadedManifests


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherClusters:
    """All Cluster manifests but the one of ``spec``. Which of them mean the same cluster is known once that has answered."""

    spec: ClusterSpec = field(default_factory=ClusterSpec)
    loaded: LoadedManifests = field(default_factory=LoadedManifests)

    def claimed(self, answers: ClusterIdentity) -> dict[Entity, str]:
        """Entities that another Cluster manifest of the cluster that answered declares in its scope, and that manifest's name.

        The same cluster: the ``clusterId`` of the other is the id that answered, or, where it has none, a server in common.
        Raises ``WrongClusterError`` when only the other one names that id: ``spec`` would lift what the other protects.
        """
        claimed: dict[Entity, str] = {}
        for name, other in self.loaded.clusters.items():
            if name == self.spec.name or not self._is_same(other, answers):
                continue
            if self.spec.cluster_id is None and other.cluster_id is not None:
                raise self._without_id(other, other.cluster_id)
            declared = self.loaded.desired(other).entities
            claimed.update({entity: name for entity in declared if other.scope.contains(entity)})
        return claimed

    def _is_same(self, other: ClusterSpec, answers: ClusterIdentity) -> bool:
        known = answers.id or self.spec.cluster_id
        if other.cluster_id is not None and known is not None:
            return other.cluster_id == known
        return bool(endpoints(other) & endpoints(self.spec))

    def _without_id(self, other: ClusterSpec, cluster_id: str) -> WrongClusterError:
        name = f"cluster {display_name(self.spec.name)}" if self.spec.name else "the cluster"
        place = f" ({other.span})" if other.span is not None else ""
        msg = (
            f"{name} has no clusterId, and the cluster that answers, {escaped(cluster_id)}, is cluster "
            f"{display_name(other.name or '')}{place}. Nothing was written. Write clusterId in both Cluster manifests if they "
            "mean one cluster. Else correct the connection"
        )
        return WrongClusterError(msg, expected="unknown", actual=cluster_id)
