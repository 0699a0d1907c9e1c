"""The same work for every cluster of the manifests, some at a time. One that fails, or hangs, does not stop the others."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, TypeAlias, TypeVar

from reconciler.errors import GitError, ManifestError, ReconcilerError, UntrustedError, UsageError
from reconciler.model import (
    ChangedCluster,
    ClusterChange,
    ClusterFailure,
    ClusterIdentity,
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
from reconciler.workflows.intent import Intent, intent_of
from reconciler.workflows.load import LoadedManifests, References, desired_for, load_manifests, stop_on
from reconciler.workflows.trusted import declared_at, read_references

T = TypeVar("T")
_NO_CLUSTER: Final = "--all-clusters needs a Cluster manifest, and none was found"


def load_every_intent(
    paths: Sequence[str],
    *,
    fail_on: Severity,
    references: References,
    if_none: str = _NO_CLUSTER,
    at: datetime.datetime | None = None,
) -> tuple[Intent | ClusterFailure, ...]:
    """Read the manifests once, and what they want of each cluster, in the order of the clusters' names.

    A cluster that the trusted reference does not have yet is skipped: there is nothing trusted to connect by. Raises
    ``ManifestError`` for findings that are not about one cluster alone, and ``UsageError`` with the text ``if_none`` for
    no cluster at all. ``at`` as in ``load_intent``.
    """
    seen = read_references(references, paths)
    loaded = load_manifests(paths, trust=seen.trusted, at=at)
    stop_on(loaded.findings, fail_on)
    names = sorted({*loaded.clusters, *loaded.proposed})
    if not names:
        raise UsageError(if_none)
    made: list[Intent | ClusterFailure] = []
    for name in names:
        try:
            made.append(intent_of(loaded, seen, paths, cluster=name, fail_on=fail_on))
        except ReconcilerError as error:
            made.append(failure_of(name, None, error, skipped=isinstance(error, UntrustedError)))
    return tuple(made)


def for_every(
    intents: Sequence[Intent | ClusterFailure],
    work: Callable[[Intent], T],
    *,
    parallel: int,
    done: Callable[[T | ClusterFailure], None] = lambda _: None,
) -> tuple[T | ClusterFailure, ...]:
    """Do the work for each intent, at most ``parallel`` at once. The text of an error takes the place of a result.

    ``done`` gets each result as soon as it is there, one at a time; the results themselves are in the order of the intents.
    An interrupt ends the wait, and work that has begun goes on until it ends by itself.
    """

    def result_of(intent: Intent | ClusterFailure) -> T | ClusterFailure:
        if isinstance(intent, ClusterFailure):
            return intent
        try:
            return work(intent)
        except ReconcilerError as error:
            return failure_of(intent.spec.name, intent.spec.cluster_id, error)

    pool = ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="cluster")
    try:
        futures = [pool.submit(result_of, intent) for intent in intents]
        for future in as_completed(futures):
            done(future.result())
        return tuple(future.result() for future in futures)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def failure_of(name: str | None, cluster_id: str | None, error: ReconcilerError, *, skipped: bool = False) -> ClusterFailure:
    """Return what stands in place of a cluster's result."""
    return ClusterFailure(
        cluster=ClusterIdentity(name=name, id=cluster_id),
        failure_reason=error.failure_reason,
        message=str(error),
        skipped=skipped,
        findings=error.findings if isinstance(error, ManifestError) else (),
    )


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
    trust = read_references(References(trusted=trusted_ref), paths).trusted
    loaded = load_manifests(paths)
    names = sorted(loaded.proposed)
    for name in only:
        if name not in names:
            raise UsageError(f"no manifest declares cluster {shown(name)}{did_you_mean(name, names)}")
    past = _Past(paths, since)
    wanted = [name for name in names if not only or name in only]
    rules = loaded.proposed if trust is None else trust.loaded.proposed
    present = [_compared(loaded, name, past.of(name), rules.get(name)) for name in wanted]
    gone = [] if only else [ChangedCluster(name=name, change=ClusterChange.REMOVED) for name in past.names() - set(names)]
    return tuple(sorted((*present, *gone), key=lambda cluster: cluster.name))


_Then: TypeAlias = tuple[str, ManifestsAt | None]
"""A commit, and the manifests there; ``None`` when they have errors."""


class _Past:
    """What was, read once for each commit."""

    def __init__(self, paths: Sequence[str], since: str | None) -> None:
        self._paths = paths
        self._since = since
        self._read: dict[str, _Then | None] = {}

    def of(self, name: str) -> _Then | None:
        """The manifests to compare a cluster with; ``None`` when there are none."""
        if self._since is None:
            return None
        ref = self._since.replace(PLACEHOLDER, slug_of(name))
        if ref not in self._read:
            self._read[ref] = self._at(ref)
        return self._read[ref]

    def _at(self, ref: str) -> _Then | None:
        try:
            commit = repository_around(self._paths[0]).commit(ref)
        except GitError:
            if ref == self._since:
                raise
            return None  # Only one of many, which each cluster has for itself, may be missing.
        known = next((then for then in self._read.values() if then is not None and then[0] == commit), None)
        if known is not None:
            return known
        try:
            return commit, manifests_at(commit, self._paths)
        except ManifestError:
            return commit, None

    def names(self) -> set[str]:
        """Every cluster there was, when all have one reference."""
        then = None if self._since is None or PLACEHOLDER in self._since else self.of("")
        return set() if then is None or then[1] is None else set(then[1].loaded.clusters)


def _compared(loaded: LoadedManifests, name: str, then: _Then | None, spec: ClusterSpec | None) -> ChangedCluster:
    """``spec``: what is trusted of the cluster."""
    commit, at = (None, None) if then is None else then
    reasons: tuple[str, ...] = ()
    change = ClusterChange.NEW
    if then is not None and (at is None or name in at.loaded.clusters):
        reasons = tuple(_reasons(loaded, name, at))
        change = ClusterChange.CHANGED if reasons else ClusterChange.SAME
    return ChangedCluster(
        name=name,
        change=change,
        since=commit,
        reasons=reasons,
        trusted=spec is not None,
        traffic=None if spec is None or spec.traffic is None else spec.traffic.kind,
    )


def _reasons(loaded: LoadedManifests, name: str, at: ManifestsAt | None) -> Iterator[str]:
    if at is None:
        yield "errors there"
        return
    spec, desired, findings = desired_for(loaded, name)
    if any(finding.severity is Severity.ERROR for finding in (*loaded.findings, *findings)):
        yield "errors here"
        return
    if without_spans(spec) != without_spans(at.loaded.clusters[name]):
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
