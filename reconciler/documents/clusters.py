"""Documents of several clusters together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from reconciler.documents.codec import row
from reconciler.documents.document import Document
from reconciler.documents.kinds import JsonKind
from reconciler.documents.values import VALUES
from reconciler.formats import FORMAT_VERSION, Json
from reconciler.model import ChangedCluster, ClusterFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterList:
    """One document for each cluster, in the order of the clusters' names."""

    clusters: tuple[Any, ...]
    """The document of each cluster, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCluster:
    """Why there is no document for a cluster."""

    format_version: str = FORMAT_VERSION
    """Version of this format."""
    failure: ClusterFailure


def clusters_to_json(documents: Iterable[Json]) -> dict[str, Json]:
    """The data of a list, in the order of the clusters' names."""
    return PLANS.write(ClusterList(clusters=tuple(documents)))


def cluster_failure_to_json(failure: ClusterFailure) -> dict[str, Json]:
    """What stands in the list for a cluster without a result."""
    return _FAILED.write(FailedCluster(failure=failure))


_CODEC: Final = VALUES.extended({FailedCluster: row("format_version *failure")})
_FAILED: Final = _CODEC.row(FailedCluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChanges:
    """The clusters of the manifests, by name, and what changed for each since a commit."""

    clusters: tuple[ChangedCluster, ...]
    """One object for each cluster, by name."""


def _list_of(name: str, plural: str) -> Document[ClusterList]:
    """Documents that have the schema ``name``."""
    item = {"anyOf": [{"$ref": f"urn:kafka-quotas:schema:{name}:v1"}, {"row": _FAILED}]}
    kind = JsonKind(wanted="a list", schema={"type": "array", "items": item}, read=tuple, write=list)
    codec = _CODEC.extended({ClusterList: row("clusters", clusters=kind)})
    return Document(cls=ClusterList, name=plural, title=f"kafka-quotas {plural.replace('-', ' ')}", codec=codec)


PLANS: Final = _list_of("plan", "plans")
DRIFTS: Final = _list_of("drift", "drifts")
APPLY_REPORTS: Final = _list_of("apply-report", "apply-reports")
CLUSTERS: Final = Document(
    cls=ClusterChanges,
    name="clusters",
    title="kafka-quotas clusters",
    codec=VALUES.extended({ChangedCluster: row("name slug change since reasons trusted to_do")}),
)
