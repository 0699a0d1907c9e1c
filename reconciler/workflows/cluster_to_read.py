"""Which cluster a command means that reads manifests only when it is told to."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model import ClusterSpec


def cluster_to_read(paths: Sequence[str], cluster: str | None) -> ClusterSpec:
    """The cluster of the manifests when a path or a name is given (of the current folder then), else the stand-in.

    Raises ``ManifestError`` for manifests with errors, and ``UsageError`` when it is not clear which cluster is meant.
    """
    if not paths and cluster is None:
        return ClusterSpec()
    # Imported here: without manifests there is no reason to wait for what reads them.
    from reconciler.workflows.load import chosen_cluster, load_manifests, stop_on

    loaded = load_manifests(list(paths) or ["."])
    stop_on(loaded.findings)
    return chosen_cluster(loaded, cluster)
