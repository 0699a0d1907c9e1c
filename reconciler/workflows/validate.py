"""Check manifests without any cluster: files, documents, and what they come to for every cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Severity, in_order
from reconciler.workflows.lint import lint_offline
from reconciler.workflows.load import desired_for, load_manifests


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What was checked: findings in the order of their places, and counts of what was read."""

    findings: tuple[Finding, ...]
    files: int
    clusters: int
    entities: int
    """Different entities, over all clusters that were checked."""


def validate(paths: Sequence[str], *, cluster: str | None = None) -> Validation:
    """Check everything below the paths, for one cluster or (``None``) for each.

    Findings about files that the user did not ask for are left out. Raises ``UsageError`` for an unknown cluster.
    """
    loaded = load_manifests(paths)
    names: Sequence[str | None] = sorted(loaded.clusters) or [None]
    if cluster is not None:
        names = [cluster]
        if cluster not in loaded.clusters and any(one.severity is Severity.ERROR for one in loaded.findings):
            # Its document may be the one that cannot be read: what is wrong there is the better answer.
            names = []
    # A dictionary, because most findings about claims are the same for every cluster.
    findings = dict.fromkeys(loaded.findings)
    seen = set()
    entities: set[Entity] = set()
    for name in names:
        spec, state, found = desired_for(loaded, name)
        entities.update(state.entities)
        for one in (*found, *lint_offline(loaded, spec, state)):
            if (one.id, one.span, one.related, one.key) not in seen:
                seen.add((one.id, one.span, one.related, one.key))
                findings[one] = None
    return Validation(
        findings=in_order(one for one in findings if loaded.is_shown(one)),
        files=len(loaded.files if loaded.selected is None else loaded.selected),
        clusters=len(loaded.clusters) if cluster is None else len(names),
        entities=len(entities),
    )
