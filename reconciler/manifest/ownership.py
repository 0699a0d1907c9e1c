"""Who may declare what: entities and value limits of owners, and the folders of Cluster manifests.

Folders alone guard nothing, since the identity of a quota is its entity; entities alone do not either, since any author can write
another owner's name. So a document must name its owner, lie in one of the owner's paths, and declare only the owner's entities.

A Cluster manifest decides where CI's credentials are sent and which limits a write has. In a folder that a team reviews for
itself it would lift the limits for that team.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from reconciler.manifest.discovery import path_matcher
from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument, Owner, QuotaEntry, RepositoryDocument
from reconciler.manifest.groups import member_entries
from reconciler.manifest.reading import finding
from reconciler.model import ClusterSpec, Entity, EntityType, Finding, Message, Related, Selector, Span, compose, join_messages
from reconciler.text import did_you_mean, shown, shown_part


def ownership_findings(
    documents: Iterable[ClientQuotasDocument],
    owners: Mapping[str, Owner],
    *,
    relative: Callable[[str], str],
    clusters: Sequence[ClusterSpec],
) -> Iterator[Finding]:
    """Return findings about entities that a document may not declare. ``relative``: gives a file's path from the root."""
    if not owners:
        return
    matchers = {name: path_matcher(owner.paths) for name, owner in owners.items() if owner.paths is not None}
    with_entities = [owner for owner in owners.values() if owner.entities]
    for document in documents:
        owner = owners.get(document.owner) if document.owner is not None else None
        if owner is None:
            yield _no_owner(document, owners)
            continue
        place = document.owner_span or document.span
        matches = matchers.get(owner.name)
        path = relative(document.file)
        if matches is not None and not matches(path):
            words = "{path} is outside the paths of {owner} ({paths})"
            paths = _listed(owner.paths or ())
            yield finding("outside-owner-paths", words, place, related=[_said(owner)], path=path, owner=owner.name, paths=paths)
        yield from _wrong_clusters(document, owner, clusters, place)
        for entry in (*document.entries, *member_entries(document.groups)):
            yield from _wrong_entity(entry, owner, with_entities)


def _no_owner(document: ClientQuotasDocument, owners: Mapping[str, Owner]) -> Finding:
    first = next(iter(owners.values()))
    related = [Related(span=first.span, message="the owners of this repository begin here")]
    if document.owner is None:
        message = "this document names no owner, and the repository has owners. Write metadata.owner"
        return finding("missing-owner", message, document.span, related=related)
    span = document.owner_span or document.span
    hint = did_you_mean(document.owner, owners)
    words = "the repository declares no owner {owner}{hint}"
    return finding("unknown-owner", words, span, related=related, owner=document.owner, hint=hint)


def _wrong_clusters(
    document: ClientQuotasDocument, owner: Owner, clusters: Sequence[ClusterSpec], place: Span
) -> Iterator[Finding]:
    allowed = owner.clusters
    if allowed is None:
        return
    meant = [spec for spec in clusters if document.clusters is None or document.clusters.chooses(spec)]
    wrong = [spec.name for spec in meant if spec.name is not None and not allowed.chooses(spec)]
    if wrong:
        some = ". Write spec.clusters" if document.clusters is None else ""
        words = f"{{owner}} may declare nothing for cluster {{cluster}}{some}"
        span = document.clusters.span if document.clusters is not None else place
        yield finding("outside-owner-clusters", words, span, related=[_said(owner)], owner=owner.name, cluster=wrong[0])


def _wrong_entity(entry: QuotaEntry, owner: Owner, with_entities: Sequence[Owner]) -> Iterator[Finding]:
    entity, source = entry.declared.entity, entry.declared.source
    own = [selector for selector in owner.entities or () if selector.matches(entity)]
    if own and (entity.name(EntityType.USER) is None or any(map(_is_about_users, own))):
        return
    stronger = next((other for other in with_entities if other is not owner and _has(other, entity, users_only=bool(own))), None)
    if stronger is not None:
        words = "{entity} belongs to {stronger}, so {owner} cannot declare it"
        related = [_said(stronger)]
        yield finding("foreign-entity", words, source, related=related, entity=entity, stronger=stronger.name, owner=owner.name)
    elif owner.entities is not None and not own:
        words = "{entity} is not an entity of {owner}"
        yield finding("outside-owner-entities", words, source, related=[_said(owner)], entity=entity, owner=owner.name)


def _has(owner: Owner, entity: Entity, *, users_only: bool) -> bool:
    """Whether an owner lists an entity. ``users_only``: by selectors about users, since clients only claim their client-ids."""
    return any(selector.matches(entity) for selector in owner.entities or () if not users_only or _is_about_users(selector))


def _is_about_users(selector: Selector) -> bool:
    return any(entity_type == EntityType.USER for entity_type, _ in selector.types)


def _said(owner: Owner) -> Related:
    return Related(span=owner.span, message=f"what {owner.name} may declare")


def _listed(paths: Sequence[str]) -> Message:
    return join_messages(map(shown, paths[:3])) + (", ..." if len(paths) > 3 else "")


def misplaced_clusters(
    clusters: Sequence[ClusterDocument], repository: RepositoryDocument, *, places: Callable[[str], tuple[str, ...]]
) -> Iterator[Finding]:
    """Cluster manifests that lie where the Repository manifest does not allow one.

    Without ``clusterPaths`` and with owners these are the files in a folder of an owner; while an owner may be in any folder, all
    but those in the root folder. ``places``: the paths of a file from the root, as written and without links.
    """
    if repository.cluster_paths is None and not repository.owners:
        return
    for document in clusters:
        wrong = next((why for place in places(document.file) if (why := _refused(place, repository)) is not None), None)
        if wrong is not None:
            message, related = wrong
            yield finding("cluster-misplaced", message, document.span, related=[related])


def _refused(place: str, repository: RepositoryDocument) -> tuple[str, Related] | None:
    words = "a Cluster manifest must not lie in {place}"
    allowed = repository.cluster_paths
    if allowed is not None:
        if path_matcher(allowed)(place):
            return None
        message = compose(
            f"{words}. Move it to one of the clusterPaths ({{globs}})", place=shown_part(place), globs=_listed(allowed)
        )
        return message, Related(span=repository.span, message="where Cluster manifests may lie")
    for owner in repository.owners.values():
        if owner.paths is not None and path_matcher(owner.paths)(place):
            words += ", which is a path of owner {owner}. Move it out of the owners' folders, or write"
            related = f"the paths of {owner.name}"
        elif owner.paths is None and "/" in place:
            words += " while owner {owner} has no paths: any folder may be that owner's. Write"
            related = f"owner {owner.name} without paths"
        else:
            continue
        message = compose(f"{words} clusterPaths in kafka-quotas.yaml", place=shown_part(place), owner=shown_part(owner.name))
        return message, Related(span=owner.span, message=related)
    return None


def endpoints(spec: ClusterSpec) -> frozenset[str]:
    """The servers that a Cluster manifest names, in one spelling: brokers, or ZooKeeper servers with their root."""
    connection = spec.connection
    if connection is None:
        return frozenset()
    servers, _, chroot = (connection.zookeeper or "").partition("/")
    root = chroot.strip("/")
    zookeeper = {f"zookeeper {_server(server, '2181')}/{root}" for server in servers.split(",") if server.strip()}
    listed = (server for entry in connection.bootstrap_servers for server in entry.split(","))
    return frozenset({_server(server, "") for server in listed if server.strip()} | zookeeper)


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
            words = (
                "cluster {cluster} has no clusterId and names a server of cluster {other}. Write clusterId in both, or give each "
                "its own servers"
            )
            related = Related(span=other.span, message="the other Cluster manifest of these servers")
            name, other_name = document.spec.name or "", other.spec.name or ""
            yield finding("cluster-without-id", words, document.span, related=[related], cluster=name, other=other_name)
