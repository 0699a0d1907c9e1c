"""Where Cluster manifests may lie, and which of them name one cluster.

A Cluster manifest says where CI's credentials are sent and which limits a write has. In a folder that a team reviews for itself
it would lift the limits for that team.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reconciler.manifest.collector import finding
from reconciler.manifest.documents import ClusterDocument, RepositoryDocument
from reconciler.manifest.globs import path_matcher
from reconciler.model import ClusterSpec, Finding, Related
from reconciler.text import shown


def misplaced_clusters(
    clusters: Sequence[ClusterDocument], repository: RepositoryDocument | None, *, places: Callable[[str], tuple[str, ...]]
) -> Iterator[Finding]:
    """Cluster manifests that lie where the Repository manifest does not allow one.

    Without ``clusterPaths`` and with owners these are the files in a folder of an owner; while an owner may be in any folder, all
    but those in the root folder. ``places``: the paths of a file from the root, as written and without links.
    """
    if repository is None or (repository.cluster_paths is None and not repository.owners):
        return
    for document in clusters:
        wrong = next((why for place in places(document.file) if (why := _refused(place, repository)) is not None), None)
        if wrong is not None:
            message, related = wrong
            yield finding("cluster-misplaced", message, document.span, related=[related])


def _refused(place: str, repository: RepositoryDocument) -> tuple[str, Related] | None:
    allowed = repository.cluster_paths
    if allowed is not None:
        if path_matcher(allowed)(place):
            return None
        globs = ", ".join(shown(glob) for glob in allowed[:3]) + (", ..." if len(allowed) > 3 else "")
        message = f"a Cluster manifest must not lie in {shown(place)}; move it to one of the clusterPaths ({globs})"
        return message, Related(span=repository.span, message="where Cluster manifests may lie")
    advice = "move it out of the owners' folders, or write clusterPaths in kafka-quotas.yaml"
    for owner in repository.owners.values():
        if owner.paths is not None and path_matcher(owner.paths)(place):
            message = f"a Cluster manifest must not lie in {shown(place)}, which is a path of owner {shown(owner.name)}; {advice}"
            return message, Related(span=owner.span, message=f"the paths of {owner.name}")
        if owner.paths is None and "/" in place:
            message = (
                f"a Cluster manifest must not lie in {shown(place)} while owner {shown(owner.name)} has no paths: any folder may "
                "be that owner's; write clusterPaths in kafka-quotas.yaml"
            )
            return message, Related(span=owner.span, message=f"owner {owner.name} without paths")
    return None


def endpoints(spec: ClusterSpec) -> frozenset[str]:
    """The servers that a Cluster manifest names, in one spelling: brokers, or ZooKeeper servers with their root."""
    connection = spec.connection
    if connection is None:
        return frozenset()
    servers, _, chroot = (connection.zookeeper or "").partition("/")
    root = chroot.strip("/")
    zookeeper = {f"zookeeper {_server(one, '2181')}/{root}" for one in servers.split(",") if one.strip()}
    listed = (one for entry in connection.bootstrap_servers for one in entry.split(","))
    return frozenset({_server(one, "") for one in listed if one.strip()} | zookeeper)


def _server(text: str, port: str) -> str:
    host, colon, given = text.strip().rpartition(":")
    name, number = (host, given.lstrip("0")) if colon and given.isdecimal() else (text.strip(), port)
    return f"{name.casefold().rstrip('.')}:{number}"


def clusters_without_id(clusters: Sequence[ClusterDocument]) -> Iterator[Finding]:
    """Cluster manifests that name a server of another one and no ``clusterId``: whether both mean one cluster is not known."""
    named: dict[str, list[ClusterDocument]] = {}
    for document in clusters:
        for server in endpoints(document.spec):
            named.setdefault(server, []).append(document)
    for document in clusters:
        if document.spec.cluster_id is not None:
            continue
        others = [o for s in sorted(endpoints(document.spec)) for o in named[s] if o.spec.name != document.spec.name]
        if others:
            other = others[0]
            message = (
                f"cluster {shown(document.spec.name or '')} has no clusterId and names a server of cluster "
                f"{shown(other.spec.name or '')}; write clusterId in both, or give each its own servers"
            )
            related = Related(span=other.span, message="the other Cluster manifest of these servers")
            yield finding("cluster-without-id", message, document.span, related=[related])
