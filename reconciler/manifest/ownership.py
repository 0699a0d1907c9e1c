"""Owners: which team may declare which entities, in which folders, on which clusters.

Folders alone guard nothing, since the identity of a quota is its entity; entities alone do not either, since anybody can write
another owner's name. So a document must name its owner, lie in one of the owner's paths, and declare only the owner's entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from reconciler.manifest.collector import finding
from reconciler.manifest.documents import ClientQuotasDocument, Owner, QuotaEntry
from reconciler.manifest.globs import path_matcher
from reconciler.model import ClusterSpec, Entity, EntityType, Finding, Related, Selector, Span
from reconciler.text import did_you_mean, shown


def ownership_findings(
    documents: Iterable[ClientQuotasDocument],
    owners: Mapping[str, Owner],
    *,
    relative: Callable[[str], str],
    clusters: Sequence[ClusterSpec],
) -> Iterator[Finding]:
    """What the documents declare and may not; nothing when there are no owners. ``relative``: a file's path from the root."""
    if not owners:
        return
    matchers = {name: path_matcher(owner.paths) for name, owner in owners.items() if owner.paths is not None}
    for document in documents:
        owner = owners.get(document.owner) if document.owner is not None else None
        if owner is None:
            yield _no_owner(document, owners)
            continue
        place = document.owner_span or document.span
        matches = matchers.get(owner.name)
        path = relative(document.file)
        if matches is not None and not matches(path):
            message = f"{shown(path)} is in none of the paths of {shown(owner.name)} ({_paths(owner)})"
            yield finding("outside-owner-paths", message, place, related=[_said(owner)])
        yield from _wrong_clusters(document, owner, clusters, place)
        for entry in document.entries:
            yield from _wrong_entity(entry, owner, owners)


def _no_owner(document: ClientQuotasDocument, owners: Mapping[str, Owner]) -> Finding:
    first = next(iter(owners.values()))
    related = [Related(span=first.span, message="the owners of this repository begin here")]
    if document.owner is None:
        message = "this document names no owner, and the repository has owners; write metadata.owner"
        return finding("missing-owner", message, document.span, related=related)
    message = f"there is no owner {shown(document.owner)}{did_you_mean(document.owner, owners)}"
    return finding("unknown-owner", message, document.owner_span or document.span, related=related)


def _wrong_clusters(
    document: ClientQuotasDocument, owner: Owner, clusters: Sequence[ClusterSpec], place: Span
) -> Iterator[Finding]:
    allowed = owner.clusters
    if allowed is None:
        return
    meant = [spec for spec in clusters if document.clusters is None or document.clusters.chooses(spec)]
    wrong = [spec.name for spec in meant if spec.name is not None and not allowed.chooses(spec)]
    if wrong:
        some = "; write spec.clusters" if document.clusters is None else ""
        message = f"{shown(owner.name)} may declare nothing for cluster {shown(wrong[0])}{some}"
        span = document.clusters.span if document.clusters is not None else place
        yield finding("outside-owner-clusters", message, span, related=[_said(owner)])


def _wrong_entity(entry: QuotaEntry, owner: Owner, owners: Mapping[str, Owner]) -> Iterator[Finding]:
    entity = entry.declared.entity
    own = [one for one in owner.entities or () if one.matches(entity)]
    if own and (entity.name(EntityType.USER) is None or any(map(_is_about_users, own))):
        return
    stronger = next((one for one in owners.values() if one is not owner and _has(one, entity, users_only=bool(own))), None)
    if stronger is not None:
        message = f"{entity} belongs to {shown(stronger.name)}, so {shown(owner.name)} cannot declare it"
        yield finding("foreign-entity", message, entry.declared.source, related=[_said(stronger)], entity=entity)
    elif owner.entities is not None and not own:
        message = f"{entity} is none of the entities of {shown(owner.name)}"
        yield finding("outside-owner-entities", message, entry.declared.source, related=[_said(owner)], entity=entity)


def _has(owner: Owner, entity: Entity, *, users_only: bool) -> bool:
    """Of a pair, a user's owner is stronger than a client-id's: who somebody is, is proven; a client-id is only said."""
    return any(one.matches(entity) for one in owner.entities or () if not users_only or _is_about_users(one))


def _is_about_users(selector: Selector) -> bool:
    return any(entity_type == EntityType.USER for entity_type, _ in selector.types)


def _said(owner: Owner) -> Related:
    return Related(span=owner.span, message=f"what {owner.name} may declare")


def _paths(owner: Owner) -> str:
    paths = owner.paths or ()
    return ", ".join(shown(path) for path in paths[:3]) + (", ..." if len(paths) > 3 else "")
