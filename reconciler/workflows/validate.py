"""Check manifests without any cluster: files, documents, and what they come to for every cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reconciler.errors import UsageError
from reconciler.model import DesiredState, Entity, Finding, Severity, in_order
from reconciler.workflows.lint import lint_offline
from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests
from reconciler.workflows.references import References, read_references
from reconciler.workflows.trusted import not_yet_findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What was checked: findings in the order of their places, and counts of what was read."""

    findings: tuple[Finding, ...]
    files: int
    clusters: int
    entities: int
    """Different entities, over all clusters that were checked."""


def validate_manifests(paths: Sequence[str], *, cluster: str | None = None, trusted_ref: str | None = None) -> Validation:
    """Check everything below the paths, for one cluster or (``None``) for each.

    Findings about files that the user did not ask for are left out. A cluster that the trusted reference does not have yet is
    checked by its own document. Raises ``UsageError`` for an unknown cluster, and as ``read_references``.
    """
    return _checked(_loaded(paths, trusted_ref), cluster)


def validate_every(paths: Sequence[str], *, trusted_ref: str | None = None) -> tuple[tuple[str, Validation], ...]:
    """The same for each cluster by itself, by name and in the order of the names. Raises ``UsageError`` when there is none."""
    loaded = _loaded(paths, trusted_ref)
    names = _names(loaded)
    if not names:
        msg = "there is no Cluster document, so --all-clusters means none; leave it out, or add one"
        raise UsageError(msg)
    return tuple((name, _checked(loaded, name)) for name in names)


def _loaded(paths: Sequence[str], trusted_ref: str | None) -> LoadedManifests:
    return load_manifests(paths, trust=read_references(References(trusted=trusted_ref), paths).trust)


def _names(loaded: LoadedManifests) -> list[str]:
    return sorted({*loaded.clusters, *loaded.proposed})


def _checked(loaded: LoadedManifests, cluster: str | None) -> Validation:
    known = _names(loaded)
    names: Sequence[str | None] = known or [None]
    if cluster is not None:
        names = [cluster]
        if cluster not in known and any(one.severity is Severity.ERROR for one in loaded.findings):
            # Its document may be the one that cannot be read: what is wrong there is the better answer.
            names = []
    # A dictionary, because most findings about claims are the same for every cluster.
    findings = dict.fromkeys(loaded.findings)
    seen = set()
    entities: set[Entity] = set()
    for name in names:
        state, found = _of_cluster(loaded, name)
        entities.update(state.entities)
        for one in found:
            if (place := (one.id, one.span, one.related, one.key, one.message if one.span is None else "")) not in seen:
                seen.add(place)
                findings[one] = None
    return Validation(
        findings=in_order(one for one in findings if loaded.is_shown(one)),
        files=len(loaded.files if loaded.selected is None else loaded.selected),
        clusters=len(known) if cluster is None else len(names),
        entities=len(entities),
    )


def _of_cluster(loaded: LoadedManifests, name: str | None) -> tuple[DesiredState, Sequence[Finding]]:
    is_new = name is not None and name not in loaded.clusters and name in loaded.proposed
    judged_by = replace(loaded, clusters=loaded.proposed, trust=None) if is_new else loaded
    spec, state, found = desired_for(judged_by, name)
    return state, (*found, *lint_offline(judged_by, spec, state), *not_yet_findings(loaded, name))
