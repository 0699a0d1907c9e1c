"""Rules: the limits of one cluster as Prometheus rules and a Grafana dashboard."""

from __future__ import annotations

from typing import Final

from reconciler.errors import UsageError
from reconciler.features.monitoring.prometheus_rules import QuotaRules
from reconciler.resolution import ViewKind
from reconciler.workflows import Sources

_ORIGINS: Final = {
    ViewKind.MANIFESTS: "the manifests",
    ViewKind.PLANNED: "the cluster after the plan of the manifests",
    ViewKind.CLUSTER: "the live cluster",
    ViewKind.SNAPSHOT: "a snapshot",
}


def quota_rules(sources: Sources, state: str, *, name: str | None = None) -> QuotaRules:
    """The limits of a state, and who declares them. ``name``: for a cluster without one.

    Raises ``UsageError`` where the brokers have a callback class, since no limit is known then, and for a cluster without a name.
    Raises also ``ManifestError``, ``UntrustedError``, ``GitError``, ``FileAccessError``, ``WrongClusterError`` and
    ``BackendError``.
    """
    view = sources.view(state)
    if view.caveats.callback is not None:
        raise UsageError(f"Rules need limits that are known: {view.caveats.callback}")
    cluster = name or view.cluster.name or view.cluster.id
    if not cluster:
        raise UsageError("The rules need the name of the cluster. Pass --cluster NAME with a folder of manifests")
    return QuotaRules(cluster=cluster[:], origin=_ORIGINS[view.kind], entities=view.entities, owners=sources.owners())
