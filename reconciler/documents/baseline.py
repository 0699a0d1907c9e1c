"""Baselines: what a clean, verified apply wrote down of the desired state, for a later ``drift --baseline FILE``.

The document is ``schemas/baseline.v1.schema.json``. Its digest covers the cluster and all values, so that a baseline which was
edited, cut short or joined from two is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler.documents.reading import checked, cluster_from_json, items_from_json, number_from_json, read_document
from reconciler.errors import BaselineError, FileAccessError
from reconciler.formats import (
    FORMAT_VERSION,
    Json,
    canonical_bytes,
    cluster_to_json,
    entity_from_json,
    entity_to_json,
    field_path,
    value_to_json,
)
from reconciler.model import ClusterIdentity, DesiredState, Entity, ForeignText, ManifestCommit, Quotas

SCHEMA: Final = "baseline"
_FORMAT_VERSION: Final = "1.1"
_MAJOR: Final = FORMAT_VERSION.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBaseline:
    """A baseline as read from a file."""

    cluster_id: ForeignText | None
    cluster_name: ForeignText | None
    commit: str | None
    entities: Mapping[Entity, Quotas]
    unmanaged: frozenset[Entity] | None = None
    """Entities in the scope that no manifest declared. ``None``: not recorded."""


def baseline_to_json(
    desired: DesiredState, cluster: ClusterIdentity, source: ManifestCommit, *, unmanaged: Iterable[Entity] = ()
) -> dict[str, Json]:
    """The document of ``baseline.v1``, equal for equal state, cluster, commit and unmanaged entities of the scope."""
    rows: list[Json] = [
        {
            "entity": dict(entity_to_json(entity)),
            "quotas": {key.value: value_to_json(quota.value) for key, quota in sorted(declared.quotas.items())},
        }
        for entity, declared in sorted(desired.entities.items(), key=lambda item: item[0].sort_key)
    ]
    left: list[Json] = [dict(entity_to_json(entity)) for entity in sorted(unmanaged, key=lambda entity: entity.sort_key)]
    return {
        "format_version": _FORMAT_VERSION,
        "cluster": cluster_to_json(cluster),
        "source": {"commit": source.commit, "dirty": source.dirty},
        "entities": rows,
        "unmanaged": left,
        "digest": _digest(cluster.id, rows, left),
    }


def read_baseline(text: str, *, name: str) -> RecordedBaseline:
    """The baseline of a document; ``name`` is the file's.

    Raises ``BaselineError`` for one of another major version, for one whose digest is not that of its own entities, and for text
    that is not one.
    """

    def build(data: Any) -> RecordedBaseline:
        baseline = baseline_from_json(data)
        if data["digest"] != _digest(baseline.cluster_id, data["entities"], data.get("unmanaged")):
            raise BaselineError(f"{name} is not as it was recorded: its entities do not give its digest. Record it again")
        return baseline

    try:
        return read_document(text, build, name=name, kind="a baseline", written_by="apply --record-baseline")
    except FileAccessError as error:
        raise BaselineError(f"{error}. Record it again") from error


def baseline_from_json(data: object) -> RecordedBaseline:
    """The baseline of a document. Raises ``ForeignVersionError`` and ``FieldError``."""
    document = checked(data, SCHEMA)
    identity = cluster_from_json(document["cluster"])
    rows = items_from_json(document["entities"], _declared_from_json, "entities")
    unmanaged = frozenset(map(entity_from_json, document["unmanaged"])) if "unmanaged" in document else None
    return RecordedBaseline(
        cluster_id=identity.id,
        cluster_name=identity.name,
        commit=document["source"]["commit"],
        entities=dict(rows),
        unmanaged=unmanaged,
    )


def _declared_from_json(row: Mapping[str, Any]) -> tuple[Entity, Quotas]:
    quotas = {key: number_from_json(value, field_path(("quotas", key))) for key, value in row["quotas"].items()}
    return entity_from_json(row["entity"]), quotas


def _digest(cluster_id: str | None, rows: Json, unmanaged: Json) -> str:
    canonical: dict[str, Json] = {"format": _MAJOR, "cluster": cluster_id, "entities": rows}
    if unmanaged is not None:
        canonical["unmanaged"] = unmanaged
    return "sha256:" + hashlib.sha256(canonical_bytes(canonical)).hexdigest()
