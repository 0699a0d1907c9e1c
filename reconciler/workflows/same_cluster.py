"""Two Cluster documents of one real cluster: what each declares, the other may undo."""

from __future__ import annotations

from reconciler.manifest.desired import desired_state
from reconciler.model.cluster import ClusterSpec
from reconciler.model.entity import Entity
from reconciler.workflows.load import LoadedManifests


def claimed_elsewhere(loaded: LoadedManifests, spec: ClusterSpec) -> dict[Entity, str]:
    """Entities that are declared for another Cluster document of the same real cluster, in its scope, and that one's name.

    The same cluster: the same ``clusterId``, or, where one of the two has none, a common bootstrap server or ZooKeeper.
    """
    claimed: dict[Entity, str] = {}
    for name, other in loaded.clusters.items():
        if other is not spec and _same_cluster(other, spec):
            declared = desired_state(loaded.documents, other).state.entities
            claimed.update({entity: name for entity in declared if other.scope.contains(entity)})
    return claimed


def _same_cluster(one: ClusterSpec, other: ClusterSpec) -> bool:
    if one.cluster_id is not None and other.cluster_id is not None:
        return one.cluster_id == other.cluster_id
    if one.connection is None or other.connection is None:
        return False
    common = set(one.connection.bootstrap_servers) & set(other.connection.bootstrap_servers)
    return bool(common) or one.connection.zookeeper == other.connection.zookeeper is not None
