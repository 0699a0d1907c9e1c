"""Documents of several clusters together (``schemas/plans.v1.schema.json`` and ``schemas/drifts.v2.schema.json``)."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.documents.findings import finding_to_json
from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json
from reconciler.model import ClusterFailure


def clusters_to_json(documents: Iterable[Json], *, version: str = FORMAT_VERSION) -> dict[str, Json]:
    """``{format_version, clusters: [document, ...]}``, in the order of the clusters' names."""
    return {"format_version": version, "clusters": list(documents)}


def cluster_failure_to_json(failure: ClusterFailure) -> dict[str, Json]:
    """What stands in the list for a cluster without a result; ``errored`` is false when it was skipped on purpose."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(failure.cluster),
        "errored": not failure.skipped,
        "skipped": failure.skipped,
        "failure_reason": failure.failure_reason,
        "message": failure.message,
        "findings": [finding_to_json(finding) for finding in failure.findings],
    }
