"""Check manifests without any cluster: files, documents, and what they come to for every cluster.

The lint rules run over the state that a cluster shall have, with the severities of the Repository document.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import ReconcilerError, UsageError
from reconciler.model import Change, ClusterSpec, CurrentState, DesiredState, Entity, Finding, Severity, in_order
from reconciler.planning import quotas_after
from reconciler.policy import Subject, lint_state
from reconciler.workflows.load import LoadedManifests, adjusted, desired_for, load_manifests, stop_on
from reconciler.workflows.references import References, read_references
from reconciler.workflows.trusted import not_yet_findings

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What was checked: findings in the order of their places, and counts of what was read."""

    findings: tuple[Finding, ...]
    files: int
    clusters: int
    entities: int
    """Different entities, over all clusters that were checked."""
    read: frozenset[str]
    """The files that were read, as findings name them."""


def validate_manifests(paths: Sequence[str], *, cluster: str | None = None, trusted_ref: str | None = None) -> Validation:
    """Check everything below the paths, for one cluster or (``None``) for each.

    Findings about files that the user did not ask for are left out. A cluster that the trusted reference does not have yet is
    checked by its own document. Raises ``UsageError`` for an unknown cluster, ``GitError`` or
    ``ManifestError`` for a reference.
    """
    return validate_loaded(_loaded(paths, trusted_ref), cluster)


def validate_every(paths: Sequence[str], *, trusted_ref: str | None = None) -> tuple[tuple[str, Validation], ...]:
    """The same for each cluster by itself, by name and in the order of the names. Raises ``UsageError`` when there is none."""
    loaded = _loaded(paths, trusted_ref)
    names = _names(loaded)
    if not names:
        msg = "--all-clusters needs a Cluster manifest, and none was found"
        raise UsageError(msg)
    return tuple((name, validate_loaded(loaded, name)) for name in names)


def _loaded(paths: Sequence[str], trusted_ref: str | None) -> LoadedManifests:
    trust = None if trusted_ref is None else read_references(References(trusted=trusted_ref), paths).trust
    return load_manifests(paths, trust=trust)


def _names(loaded: LoadedManifests) -> list[str]:
    return sorted({*loaded.clusters, *loaded.proposed})


def validate_loaded(loaded: LoadedManifests, cluster: str | None) -> Validation:
    """As ``validate_manifests``, for manifests that are read already."""
    known = _names(loaded)
    names: Sequence[str | None] = known or [None]
    if cluster is not None:
        names = [cluster]
        if cluster not in known and any(finding.severity is Severity.ERROR for finding in loaded.findings):
            # Its document may be the one that cannot be read: what is wrong there is the better answer.
            names = []
    # A dictionary, because most findings about claims are the same for every cluster.
    findings = dict.fromkeys(loaded.findings)
    seen = set()
    entities: set[Entity] = set()
    for name in names:
        state, of_cluster = _of_cluster(loaded, name)
        entities.update(state.entities)
        for finding in of_cluster:
            if (
                place := (finding.id, finding.span, finding.related, finding.key, finding.message if finding.span is None else "")
            ) not in seen:
                seen.add(place)
                findings[finding] = None
    return Validation(
        findings=in_order(finding for finding in findings if loaded.is_shown(finding)),
        files=len(loaded.files if loaded.selected is None else loaded.selected),
        clusters=len(known) if cluster is None else len(names),
        entities=len(entities),
        read=frozenset(loaded.files),
    )


def _of_cluster(loaded: LoadedManifests, name: str | None) -> tuple[DesiredState, Sequence[Finding]]:
    is_new = name is not None and name not in loaded.clusters and name in loaded.proposed
    judged_by = loaded
    if is_new and name is not None and loaded.trust is not None:
        # Its own document decides how it is checked, and nothing else of the pull request.
        clusters = {**loaded.trust.clusters, name: loaded.proposed[name]}
        judged_by = replace(loaded, trust=replace(loaded.trust, clusters=clusters))
    spec, state, findings = desired_for(judged_by, name)
    later = not_yet_findings(loaded, name) if loaded.trust is not None else ()
    return state, (*findings, *lint_offline(judged_by, spec, state), *later)


def stop_on_reading(loaded: LoadedManifests, cluster: str | None, fail_on: Severity) -> None:
    """Raise ``ManifestError`` when manifests cannot be read, with all other findings, too: none has to wait for the next run."""
    if not any(finding.severity.at_least(fail_on) for finding in loaded.findings):
        return
    findings: Sequence[Finding] = loaded.findings
    with contextlib.suppress(ReconcilerError):
        findings = validate_loaded(loaded, cluster).findings
    stop_on(findings, fail_on)


def lint_offline(loaded: LoadedManifests, spec: ClusterSpec, desired: DesiredState) -> tuple[Finding, ...]:
    """What can be known without the cluster; ``desired`` is what ``desired_for`` gave. A filter narrows only what is shown."""
    if loaded.selected is not None:
        desired = loaded.desired(spec)
    linted = lint_state(Subject(desired=desired, spec=spec, after=desired.values()))
    severities = loaded.repository.lint
    findings = adjusted(tuple(linted), severities) if severities else linted
    return in_order(finding for finding in findings if loaded.is_shown(finding))


def lint_change(
    spec: ClusterSpec,
    desired: DesiredState,
    current: CurrentState,
    changes: Sequence[Change],
    *,
    severities: Mapping[str, Severity | None],
) -> tuple[Finding, ...]:
    """What can be known of a plan."""
    after = quotas_after(current.entities, changes)
    changed = [change.entity for change in changes]
    subject = Subject(
        desired=desired,
        spec=spec,
        after=after,
        before=current.entities,
        changed=changed,
        unreadable=current.unreadable,
    )
    findings = tuple(lint_state(subject))
    return in_order(adjusted(findings, severities) if severities else findings)
