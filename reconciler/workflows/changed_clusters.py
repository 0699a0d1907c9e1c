"""Finds the clusters that a change of the manifests affects, for pipelines that plan and apply only those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.errors import GitError, ManifestError, UsageError
from reconciler.model import (
    ChangedCluster,
    ClusterChange,
    ClusterSpec,
    DesiredState,
    Entity,
    QuotaKey,
    QuotaUnit,
    Severity,
    slug_of,
)
from reconciler.text import did_you_mean, shown
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at, without_spans
from reconciler.workflows.git_repository import repository_around
from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests
from reconciler.workflows.references import References, declared_at, read_references

PLACEHOLDER: Final = "{cluster}"
"""Stands in a reference for the cluster's slug."""


def find_changed_clusters(
    paths: Sequence[str], *, since: str | None = None, trusted_ref: str | None = None, only: Sequence[str] = ()
) -> tuple[ChangedCluster, ...]:
    """Every cluster by name, or those of ``only``, compared with what the manifests declared at ``since``.

    With ``{cluster}`` in it each cluster has a reference of its own; one without it is new. Without ``since`` all are new. While
    the manifests here or there have errors, everything counts as changed: it is not known what is not. Raises ``UsageError``
    for a name that no cluster has, ``GitError`` for a reference that cannot be read.
    """
    trust = read_references(References(trusted=trusted_ref), paths).trust
    loaded = load_manifests(paths)
    names = sorted(loaded.proposed)
    for name in only:
        if name not in names:
            raise UsageError(f"no manifest declares cluster {shown(name)}{did_you_mean(name, names)}")
    past = _Past(tuple(paths), since)
    wanted = [name for name in names if not only or name in only]
    present = [_compared(loaded, name, past, trusted=trust is None or name in trust.clusters) for name in wanted]
    gone = [] if only else [ChangedCluster(name=name, change=ClusterChange.REMOVED) for name in past.names() - set(names)]
    return tuple(sorted((*present, *gone), key=lambda cluster: cluster.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Then:
    """The manifests at a commit; ``at`` is ``None`` when they have errors."""

    commit: str
    at: ManifestsAt | None


@dataclass(frozen=True, slots=True)
class _Past:
    """What was, read once for each commit."""

    paths: tuple[str, ...]
    since: str | None
    commits: dict[str, str | None] = field(default_factory=dict)
    read: dict[str, _Then] = field(default_factory=dict)

    def of(self, name: str) -> _Then | None:
        """The manifests to compare a cluster with; ``None`` when there are none."""
        if self.since is None:
            return None
        commit = self._commit(self.since.replace(PLACEHOLDER, slug_of(name)))
        if commit is None:
            return None
        if commit not in self.read:
            try:
                self.read[commit] = _Then(commit=commit, at=manifests_at(commit, self.paths))
            except ManifestError:
                self.read[commit] = _Then(commit=commit, at=None)
        return self.read[commit]

    def _commit(self, ref: str) -> str | None:
        """What a reference is at; only one of many, which each cluster has for itself, may be missing."""
        if ref not in self.commits:
            try:
                self.commits[ref] = repository_around(self.paths[0]).commit(ref)
            except GitError:
                if ref == self.since:
                    raise
                self.commits[ref] = None
        return self.commits[ref]

    def names(self) -> set[str]:
        """Every cluster there was, when all have one reference."""
        if self.since is None or PLACEHOLDER in self.since:
            return set()
        then = self.of("")
        return set(then.at.loaded.clusters) if then is not None and then.at is not None else set()


def _compared(loaded: LoadedManifests, name: str, past: _Past, *, trusted: bool) -> ChangedCluster:
    then = past.of(name)
    if then is None:
        return ChangedCluster(name=name, change=ClusterChange.NEW, trusted=trusted)
    if then.at is not None and name not in then.at.loaded.clusters:
        return ChangedCluster(name=name, change=ClusterChange.NEW, since=then.commit, trusted=trusted)
    reasons = tuple(_reasons(loaded, name, then.at))
    change = ClusterChange.CHANGED if reasons else ClusterChange.SAME
    return ChangedCluster(name=name, change=change, since=then.commit, reasons=reasons, trusted=trusted)


def _reasons(loaded: LoadedManifests, name: str, at: ManifestsAt | None) -> Iterator[str]:
    if at is None:
        yield "errors there"
        return
    spec, desired, findings = desired_for(loaded, name)
    if any(finding.severity is Severity.ERROR for finding in (*loaded.findings, *findings)):
        yield "errors here"
        return
    if not _same_settings(spec, at.loaded.clusters[name]):
        yield "settings"
    try:
        before = declared_at(at, name)
    except ManifestError:
        yield "errors there"
        return
    # Also an entity that is declared without a key takes away what the cluster has for it.
    if (
        desired.values() != before.values()
        or desired.entities.keys() != before.entities.keys()
        or _units(desired) != _units(before)
    ):
        yield "quotas"


def _units(desired: DesiredState) -> dict[Entity, dict[QuotaKey, QuotaUnit]]:
    """Values that only the cluster makes numbers, as they are declared."""
    declared = ((entity, desired.entities[entity].units) for entity in desired.with_units)
    return {entity: {key: written.unit for key, written in units.items()} for entity, units in declared}


def _same_settings(cluster_spec: ClusterSpec, other: ClusterSpec) -> bool:
    return bool(without_spans(cluster_spec) == without_spans(other))
