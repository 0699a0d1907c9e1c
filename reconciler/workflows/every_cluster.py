"""The same work for every cluster of the manifests, some at a time. One that fails, or hangs, does not stop the others."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, TypeVar

from reconciler.errors import ManifestError, ReconcilerError, UntrustedError, UsageError
from reconciler.model import ClusterFailure, ClusterIdentity, Isolation, Severity
from reconciler.workflows.changed_clusters import find_changed_clusters
from reconciler.workflows.intent import Intent, intent_of
from reconciler.workflows.load import load_manifests, stop_on
from reconciler.workflows.references import References, read_references

T = TypeVar("T")
_NO_CLUSTER: Final = "--all-clusters needs a Cluster manifest, and none was found"


def load_every_intent(
    paths: Sequence[str],
    *,
    fail_on: Severity,
    references: References,
    if_none: str = _NO_CLUSTER,
    by_owner: bool = False,
    owners: Sequence[str] = (),
    at: datetime.datetime | None = None,
) -> tuple[Intent | ClusterFailure, ...]:
    """Read the manifests once, and what they want of each cluster, in the order of the clusters' names.

    A cluster that the trusted reference does not have yet is skipped: there is nothing trusted to connect by. Raises
    ``ManifestError`` for findings that are not about one cluster alone, and ``UsageError`` with the text ``if_none`` for
    no cluster at all. ``by_owner``, ``owners`` and ``at`` as in ``load_intent``.
    """
    seen = read_references(references, paths)
    loaded = load_manifests(paths, trust=seen.trust, at=at)
    isolating = owners or (by_owner and any(spec.safety.isolate is Isolation.OWNER for spec in loaded.clusters.values()))
    if not isolating:
        stop_on(loaded.findings, fail_on)
    names = sorted({*loaded.clusters, *loaded.proposed})
    if not names:
        raise UsageError(if_none)
    made: list[Intent | ClusterFailure] = []
    for name in names:
        try:
            made.append(intent_of(loaded, seen, paths, cluster=name, fail_on=fail_on, by_owner=by_owner, owners=owners))
        except ReconcilerError as error:
            made.append(_failure(name, None, error, skipped=isinstance(error, UntrustedError)))
    return tuple(made)


def only_changed(
    intents: Sequence[Intent | ClusterFailure], paths: Sequence[str], *, since: str | None, trusted_ref: str | None
) -> tuple[Intent | ClusterFailure, ...]:
    """The clusters whose manifests differ from those at ``since`` (``None``: all). Raises ``GitError`` and ``ManifestError``."""
    if since is None:
        return tuple(intents)
    changed = {each.name for each in find_changed_clusters(paths, since=since, trusted_ref=trusted_ref) if each.to_do}
    return tuple(
        each for each in intents if (each.cluster.name if isinstance(each, ClusterFailure) else each.spec.name) in changed
    )


def for_every(
    intents: Sequence[Intent | ClusterFailure],
    work: Callable[[Intent], T],
    *,
    parallel: int = 1,
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
            return _failure(intent.spec.name, intent.spec.cluster_id, error)

    if parallel <= 1:
        results = []
        for intent in intents:
            results.append(result_of(intent))
            done(results[-1])
        return tuple(results)
    pool = ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="cluster")
    try:
        futures = [pool.submit(result_of, intent) for intent in intents]
        for future in as_completed(futures):
            done(future.result())
        return tuple(future.result() for future in futures)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _failure(name: str | None, cluster_id: str | None, error: ReconcilerError, *, skipped: bool = False) -> ClusterFailure:
    return ClusterFailure(
        cluster=ClusterIdentity(name=name, id=cluster_id),
        failure_reason=error.failure_reason,
        message=str(error),
        skipped=skipped,
        findings=error.findings if isinstance(error, ManifestError) else (),
    )
