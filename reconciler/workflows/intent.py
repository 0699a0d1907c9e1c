"""What the manifests want of one cluster: the value that every command compares with the cluster."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import ReconcilerError, WrongClusterError
from reconciler.hooks import added, load
from reconciler.manifest import Owner, endpoints
from reconciler.model import (
    Change,
    ClusterIdentity,
    ClusterSpec,
    CurrentState,
    DesiredState,
    Entity,
    Finding,
    ManifestCommit,
    Severity,
    display_name,
    escaped,
    in_order,
)
from reconciler.planning import quotas_after
from reconciler.policy import Subject, lint_state
from reconciler.workflows.git_repository import source_of
from reconciler.workflows.load import NO_REFERENCES, LoadedManifests, References, adjusted, desired_for, load_manifests, stop_on

if TYPE_CHECKING:
    from reconciler.workflows.trusted import Before, ReadReferences, TrustedTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What the manifests want of one cluster, free of errors."""

    spec: ClusterSpec
    desired: DesiredState
    findings: tuple[Finding, ...]
    """About files, documents and values; with ``with_lint`` also those of lint."""
    paths: tuple[str, ...]
    loaded: LoadedManifests = field(default_factory=LoadedManifests)
    """All manifests, of other clusters too."""
    fail_on: Severity = Severity.ERROR
    notes: tuple[str, ...] = ()
    """What counts only after merge, and what of the base is missing."""
    before: Before | None = None
    """What the base declares, to name what is forgotten."""
    trusted: TrustedTree | None = None
    attended: bool = True
    """False in a run that no person attends: ``confirm`` in the Cluster manifest counts as ``never``."""
    has_totals: bool = False
    """True once totals of the cluster were divided among its brokers."""

    @property
    def owners(self) -> Mapping[str, Owner]:
        """Return the owners of the Repository manifest that applies, by name."""
        return self.loaded.repository.owners

    def source(self) -> ManifestCommit:
        """The commit that the manifests are in now; asks git."""
        return source_of(Path(self.paths[0]) if self.paths else Path())


def load_intent(
    paths: Sequence[str],
    *,
    cluster: str | None,
    fail_on: Severity = Severity.ERROR,
    references: References = NO_REFERENCES,
    at: datetime.datetime | None = None,
) -> Intent:
    """Read the manifests for one cluster. ``at``: the moment that decides about values that expire; ``None``: now.

    Raises ``ManifestError`` with all findings when one is at or above ``fail_on``, ``UsageError`` when it is not clear which
    cluster is meant, ``GitError`` for a reference that cannot be read, and ``UntrustedError`` for a cluster that the trusted
    one does not have.
    """
    seen = None
    if references != NO_REFERENCES:
        from reconciler.workflows.trusted import read_references

        seen = read_references(references, paths)
    loaded = load_manifests(paths, trust=None if seen is None else seen.trusted, at=at)
    return intent_of(loaded, seen, paths, cluster=cluster, fail_on=fail_on)


def intent_of(
    loaded: LoadedManifests, seen: ReadReferences | None, paths: Sequence[str], *, cluster: str | None, fail_on: Severity
) -> Intent:
    """One cluster's part of the manifests. Raises ``ManifestError``, ``UsageError``, ``UntrustedError``."""
    # Warnings may be as before, which a plan decides.
    is_compared = loaded.proposed_baseline is not None or (seen is not None and seen.base is not None)
    early = Severity.ERROR if is_compared else fail_on
    if loaded.findings:
        stop_on_reading(loaded, cluster, early, seen)
    spec, desired, findings = desired_for(loaded, cluster)
    if any(finding.severity.at_least(early) for finding in findings):
        every = (*loaded.findings, *findings, *lint_offline(loaded, spec, desired))
        stop_on(_compared(every, loaded, seen, spec.name), early)
    before = None
    if seen is not None:
        seen, before = seen.for_cluster(spec)
    return Intent(
        spec=spec,
        desired=desired,
        findings=(*loaded.findings, *findings, *(seen.findings() if seen is not None else ())),
        paths=tuple(paths),
        loaded=loaded,
        fail_on=fail_on,
        notes=(*(seen.notes(loaded, spec) if seen is not None else ()), *desired.notes),
        before=before,
        trusted=None if seen is None else seen.trusted,
    )


def with_lint(intent: Intent) -> Intent:
    """The intent with what lint sees without the cluster, for commands that make no plan: a plan lints with the cluster.

    Raises ``ManifestError`` when a finding is at or above ``fail_on``.
    """
    findings = in_order((*intent.findings, *lint_offline(intent.loaded, intent.spec, intent.desired)))
    if intent.before is not None or intent.loaded.proposed_baseline is not None:
        from reconciler.workflows.as_before import mark_findings, offline_findings_of_base

        findings = mark_findings(findings, intent.loaded, lambda: offline_findings_of_base(intent))
    stop_on(findings, intent.fail_on)
    return replace(intent, findings=findings)


def claimed_elsewhere(spec: ClusterSpec, loaded: LoadedManifests | None, answers: ClusterIdentity) -> dict[Entity, str]:
    """Entities that another Cluster manifest of the cluster that answered declares in its scope, and that manifest's name.

    The same cluster: the ``clusterId`` of the other is the id that answered, or, where it has none, a server in common.
    Raises ``WrongClusterError`` when only the other one names that id: ``spec`` would lift what the other protects.
    """
    claimed: dict[Entity, str] = {}
    for name, other in loaded.clusters.items() if loaded is not None else ():
        if name == spec.name or not _is_same(spec, other, answers):
            continue
        if spec.cluster_id is None and other.cluster_id is not None:
            name_here = f"cluster {display_name(spec.name)}" if spec.name else "the cluster"
            place = f" ({other.span})" if other.span is not None else ""
            msg = (
                f"{name_here} has no clusterId, and the cluster that answers, {escaped(other.cluster_id)}, is cluster "
                f"{display_name(name)}{place}. Nothing was written. Write clusterId in both Cluster manifests if they "
                "mean one cluster. Else correct the connection"
            )
            raise WrongClusterError(msg)
        assert loaded is not None
        claimed.update({entity: name for entity in loaded.desired(other).entities if other.scope.contains(entity)})
    return claimed


def _is_same(spec: ClusterSpec, other: ClusterSpec, answers: ClusterIdentity) -> bool:
    known = answers.id or spec.cluster_id
    if other.cluster_id is not None and known is not None:
        return other.cluster_id == known
    return bool(endpoints(other) & endpoints(spec))


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What was checked: findings in the order of their places, and counts of what was read."""

    findings: tuple[Finding, ...]
    files: int
    clusters: int
    entities: int
    """Different entities, over all clusters that were checked."""
    loaded: LoadedManifests


def validate_manifests(paths: Sequence[str], *, cluster: str | None = None, references: References = NO_REFERENCES) -> Validation:
    """Check everything below the paths, for one cluster or (``None``) for each.

    Findings about files that the user did not ask for are left out. A cluster that the trusted reference does not have yet is
    checked by its own document. Raises ``UsageError`` for an unknown cluster, ``GitError`` or
    ``ManifestError`` for a reference.
    """
    seen = None
    if references != NO_REFERENCES:
        from reconciler.workflows.trusted import read_references

        seen = read_references(references, paths)
    loaded = load_manifests(paths, trust=None if seen is None else seen.trusted)
    checked = validate_loaded(loaded, cluster)
    if seen is None and loaded.proposed_baseline is None:
        return checked
    missing = () if seen is None else seen.findings()
    return replace(checked, findings=(*missing, *_compared(checked.findings, loaded, seen, cluster)))


def _compared(
    findings: tuple[Finding, ...], loaded: LoadedManifests, seen: ReadReferences | None, cluster: str | None
) -> tuple[Finding, ...]:
    """Findings of manifests, of which those are marked that the base has, too, or that the findings baseline lists."""
    base = None if seen is None or seen.base is None else seen.base.loaded
    if base is None and loaded.baseline is None:
        return findings
    from reconciler.workflows.as_before import mark_findings

    return mark_findings(findings, loaded, lambda: () if base is None else validate_loaded(base, cluster).findings)


def validate_loaded(loaded: LoadedManifests, cluster: str | None) -> Validation:
    """Check manifests that are read already, as ``validate_manifests`` does."""
    known = sorted({*loaded.clusters, *loaded.proposed})
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
    if loaded.proposed_baseline is not None:
        whole = loaded.complete and cluster is None
        for check in map(load, added("BASELINE_CHECKS")):
            findings.update(dict.fromkeys(check(loaded.proposed_baseline, tuple(findings), whole=whole, at=loaded.at)))
    return Validation(
        findings=in_order(finding for finding in findings if loaded.is_shown(finding)),
        files=len(loaded.files if loaded.selected is None else loaded.selected),
        clusters=len(known) if cluster is None else len(names),
        entities=len(entities),
        loaded=loaded,
    )


def _of_cluster(loaded: LoadedManifests, name: str | None) -> tuple[DesiredState, Sequence[Finding]]:
    is_new = name is not None and name not in loaded.clusters and name in loaded.proposed
    judged_by = loaded
    if is_new and name is not None and loaded.trust is not None:
        # Its own document decides how it is checked, and nothing else of the pull request.
        clusters = {**loaded.clusters, name: loaded.proposed[name]}
        judged_by = replace(loaded, trust=replace(loaded.trust, loaded=replace(loaded.trust.loaded, proposed=clusters)))
    spec, state, findings = desired_for(judged_by, name)
    linted = (*findings, *lint_offline(judged_by, spec, state))
    if loaded.trust is None:
        return state, linted
    from reconciler.workflows.trusted import not_yet_findings

    return state, (*linted, *not_yet_findings(loaded, name))


def stop_on_reading(loaded: LoadedManifests, cluster: str | None, fail_on: Severity, seen: ReadReferences | None = None) -> None:
    """Raise ``ManifestError`` when manifests cannot be read, with all other findings, too: none has to wait for the next run."""
    if not any(finding.severity.at_least(fail_on) for finding in loaded.findings):
        return
    findings: Sequence[Finding] = loaded.findings
    with contextlib.suppress(ReconcilerError):
        findings = _compared(validate_loaded(loaded, cluster).findings, loaded, seen, cluster)
    stop_on(findings, fail_on)


def lint_offline(loaded: LoadedManifests, spec: ClusterSpec, desired: DesiredState) -> tuple[Finding, ...]:
    """Lint without the cluster. ``desired`` is what ``desired_for`` gave. A filter narrows only what is shown."""
    if loaded.selected is not None:
        desired = loaded.desired(spec)
    linted = lint_state(Subject(desired=desired, after=desired.values()))
    severities = loaded.repository.lint
    findings = adjusted(tuple(linted), severities) if severities else linted
    return in_order(finding for finding in findings if loaded.is_shown(finding))


def lint_change(
    desired: DesiredState, current: CurrentState, changes: Sequence[Change], *, severities: Mapping[str, Severity | None]
) -> tuple[Finding, ...]:
    """Lint the changes of a plan, with both states."""
    after = quotas_after(current.entities, changes)
    changed = [change.entity for change in changes]
    subject = Subject(desired=desired, after=after, before=current.entities, changed=changed, unreadable=current.unreadable)
    findings = tuple(lint_state(subject))
    return in_order(adjusted(findings, severities) if severities else findings)
