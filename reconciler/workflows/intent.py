"""What the manifests want of one cluster: the value that every command compares with the cluster."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reconciler.errors import WrongClusterError
from reconciler.manifest import Owner, endpoints
from reconciler.model import (
    ClusterIdentity,
    ClusterSpec,
    DesiredState,
    Entity,
    Finding,
    Isolation,
    ManifestCommit,
    Severity,
    display_name,
    escaped,
    in_order,
)
from reconciler.workflows.git_repository import source_of
from reconciler.workflows.load import LoadedManifests, chosen_cluster, desired_for, load_manifests, stop_on
from reconciler.workflows.trusted import NO_REFERENCES, Before, ReadReferences, References, TrustedTree, read_references
from reconciler.workflows.validate import lint_offline, stop_on_reading


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerScope:
    """Where owners are planned apart: which of them, and which are withheld already."""

    chosen: frozenset[str] | None = None
    """The owners whose changes are wanted; ``None``: all."""
    errors: Mapping[str | None, tuple[Finding, ...]] = field(default_factory=dict)
    """By owner, the errors of manifests that are left out."""
    withheld_before: Mapping[str | None, str] = field(default_factory=dict)
    """Owners that an earlier stage withheld, with the cluster where it did: their changes are withheld here, too."""


_ALL_OWNERS: Final = OwnerScope()


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
    scope: OwnerScope = _ALL_OWNERS
    attended: bool = True
    """False in a run that no person attends: ``confirm`` in the Cluster manifest counts as ``never``."""
    has_totals: bool = False
    """True once totals of the cluster were divided among its brokers."""

    @property
    def isolates(self) -> bool:
        """True when the guards measure each owner apart."""
        return self.scope.chosen is not None or self.spec.safety.isolate is Isolation.OWNER

    @property
    def owners(self) -> Mapping[str, Owner]:
        """Those of the Repository manifest that applies."""
        return self.loaded.repository.owners

    @property
    def owner_errors(self) -> tuple[Finding, ...]:
        """The errors of owners that are left out, each once."""
        return tuple(dict.fromkeys(finding for findings in self.scope.errors.values() for finding in findings))

    def source(self) -> ManifestCommit:
        """The commit that the manifests are in now; asks git."""
        return source_of(Path(self.paths[0]) if self.paths else Path())


def load_intent(
    paths: Sequence[str],
    *,
    cluster: str | None,
    fail_on: Severity = Severity.ERROR,
    references: References = NO_REFERENCES,
    by_owner: bool = False,
    owners: Sequence[str] = (),
    at: datetime.datetime | None = None,
) -> Intent:
    """Read the manifests for one cluster. ``by_owner``: where the cluster isolates owners, leave out those with errors.

    ``owners``: only their changes are wanted. ``at``: the moment that decides about values that expire; ``None``: now.

    Raises ``ManifestError`` with all findings when one is at or above ``fail_on``, ``UsageError`` when it is not clear which
    cluster is meant, ``GitError`` for a reference that cannot be read, and ``UntrustedError`` for a cluster that the trusted
    one does not have.
    """
    seen = None if references == NO_REFERENCES else read_references(references, paths)
    loaded = load_manifests(paths, trust=None if seen is None else seen.trust, at=at)
    return intent_of(loaded, seen, paths, cluster=cluster, fail_on=fail_on, by_owner=by_owner, owners=owners)


def intent_of(
    loaded: LoadedManifests,
    seen: ReadReferences | None,
    paths: Sequence[str],
    *,
    cluster: str | None,
    fail_on: Severity,
    by_owner: bool = False,
    owners: Sequence[str] = (),
) -> Intent:
    """One cluster's part of the manifests. Raises ``ManifestError``, ``UsageError``, ``UntrustedError``."""
    scope = _ALL_OWNERS
    if owners or (by_owner and any(spec.safety.isolate is Isolation.OWNER for spec in loaded.clusters.values())):
        from reconciler.workflows.owners import check_owners, sound_manifests

        scope = OwnerScope(chosen=check_owners(loaded, owners))
        if scope.chosen is not None or chosen_cluster(loaded, cluster).safety.isolate is Isolation.OWNER:
            loaded, errors = sound_manifests(loaded, cluster, fail_on)
            scope = replace(scope, errors=errors)
    if loaded.findings:
        stop_on_reading(loaded, cluster, fail_on)
    spec, desired, findings = desired_for(loaded, cluster)
    if any(finding.severity.at_least(fail_on) for finding in findings):
        stop_on((*loaded.findings, *findings, *lint_offline(loaded, spec, desired)), fail_on)
    return Intent(
        spec=spec,
        desired=replace(desired, complete=False) if scope.errors else desired,
        findings=(*loaded.findings, *findings),
        paths=tuple(paths),
        loaded=loaded,
        fail_on=fail_on,
        notes=(*(seen.notes(loaded, spec) if seen is not None else ()), *desired.notes),
        before=None if seen is None else seen.before(spec),
        trusted=None if seen is None else seen.trusted,
        scope=scope,
    )


def with_lint(intent: Intent) -> Intent:
    """The intent with what lint sees without the cluster, for commands that make no plan: a plan lints with the cluster.

    Raises ``ManifestError`` when a finding is at or above ``fail_on``, unless owners are isolated.
    """
    findings = in_order((*intent.findings, *lint_offline(intent.loaded, intent.spec, intent.desired)))
    if not intent.isolates:
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
            raise WrongClusterError(msg, expected="unknown", actual=other.cluster_id)
        assert loaded is not None
        claimed.update({entity: name for entity in loaded.desired(other).entities if other.scope.contains(entity)})
    return claimed


def _is_same(spec: ClusterSpec, other: ClusterSpec, answers: ClusterIdentity) -> bool:
    known = answers.id or spec.cluster_id
    if other.cluster_id is not None and known is not None:
        return other.cluster_id == known
    return bool(endpoints(other) & endpoints(spec))
