"""Plans with the digest of their changes, drift, and lists of the documents of several clusters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from reconciler.documents.codec import Keyed, row
from reconciler.documents.document import VALUES, Document
from reconciler.documents.kinds import FieldError, JsonKind
from reconciler.errors import UnusableDocumentError
from reconciler.formats import FORMAT_VERSION, Json, field_path, plan_digest
from reconciler.model import (
    BrokerFacts,
    Change,
    ChangedCluster,
    ClusterFailure,
    Drift,
    EntityDrift,
    KeptEntity,
    KeyDrift,
    Plan,
    PlanEffects,
    same_value,
)


def require_differences(changes: Iterable[Change]) -> None:
    """Raise ``FieldError`` for a key that has equal values before and after."""
    for index, change in enumerate(changes):
        for key in change.keys:
            if same_value(key.before, key.after):
                path = field_path(("changes", index, "keys", key.key))
                raise FieldError(path, "must be two different values in 'before' and 'after'")


PLAN: Final = Document(
    cls=Plan,
    name="plan",
    title="kafka-quotas plan",
    codec=VALUES.extended(
        {
            BrokerFacts: row("brokers? leaders?"),
            KeptEntity: row("entity quotas declared_at=since"),
            Plan: row(
                "cluster source observed complete applyable! errored! summary changes guards notes findings effects? "
                "kept? *totals digest"
            ),
            PlanEffects: row("unknown left_out moves=effects groups?"),
        }
    ),
    called="a plan written by 'plan --format json'",
    check=lambda plan: require_differences(plan.changes),
)


def read_plan(text: str, *, name: str) -> Plan:
    """The plan of a document.

    Raises as ``Document.read``, and ``UnusableDocumentError`` for another digest than its changes have.
    """
    plan = PLAN.read(text, name=name)
    require_digest(plan.digest, plan.cluster.id, plan.changes, name=name)
    return plan


def require_digest(recorded: str | None, cluster_id: str | None, changes: Iterable[Change], *, name: str) -> None:
    """Raise ``UnusableDocumentError`` unless the digest that the document ``name`` records is that of its changes."""
    actual = plan_digest(cluster_id, changes)
    if recorded != actual:
        msg = f"{name} was changed after it was written: its digest is {recorded}, but that of its changes is {actual}"
        raise UnusableDocumentError(msg)


DRIFT: Final = Document(
    cls=Drift,
    name="drift",
    title="kafka-quotas drift",
    codec=VALUES.extended(
        {
            Drift: row("cluster source observed complete prune baseline differs summary=counts entities notes findings"),
            EntityDrift: row("entity class=drift declared in_scope keys source", keys=Keyed("key")),
            KeyDrift: row("desired baseline live source overrides declared=unit? brokers_before? expiry?"),
        }
    ),
)


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
    """Return the row of a cluster without a result."""
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
    codec=VALUES.extended({ChangedCluster: row("name slug change since reasons trusted to_do traffic")}),
)
