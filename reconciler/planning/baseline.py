"""Baselines: what a clean, verified apply wrote down of the desired state, for a later ``drift --baseline FILE``.

The document is ``schemas/baseline.v1.schema.json``. Its digest covers the cluster and all values, so that a baseline which was
edited, cut short or joined from two is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler.errors import BaselineError
from reconciler.formats import (
    FORMAT_VERSION,
    Json,
    canonical_bytes,
    cluster_to_json,
    entity_from_json,
    entity_to_json,
    value_to_json,
)
from reconciler.model import ClusterIdentity, DesiredState, Entity, ForeignText, ManifestCommit, Quotas

_MAJOR: Final = FORMAT_VERSION.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBaseline:
    """A baseline as read from a file."""

    cluster_id: ForeignText | None
    cluster_name: ForeignText | None
    commit: str | None
    entities: Mapping[Entity, Quotas]


def baseline_to_json(desired: DesiredState, cluster: ClusterIdentity, source: ManifestCommit) -> dict[str, Json]:
    """The document, the same bytes for the same state, cluster and commit."""
    rows: list[Json] = [
        {
            "entity": dict(entity_to_json(entity)),
            "quotas": {key.value: value_to_json(quota.value) for key, quota in sorted(declared.quotas.items())},
        }
        for entity, declared in sorted(desired.entities.items(), key=lambda item: item[0].sort_key)
    ]
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(cluster),
        "source": {"commit": source.commit, "dirty": source.dirty},
        "entities": rows,
        "digest": _digest(cluster.id, rows),
    }


def read_baseline(text: str, *, name: str) -> RecordedBaseline:
    """Parse a baseline document. Raises ``BaselineError`` for one of another version, and for anything that is none."""
    try:
        document = json.loads(text)
        version = str(document["format_version"])
        if version.partition(".")[0] != _MAJOR:
            msg = f"{name} is a baseline of format {version}, and this version reads format {_MAJOR}; record it again"
            raise BaselineError(msg)
        cluster = document["cluster"]
        if document["digest"] != _digest(cluster["id"], document["entities"]):
            msg = f"{name} is not as it was recorded: its entities do not give its digest; record it again"
            raise BaselineError(msg)
        rows = document["entities"]
        identity = ClusterIdentity(name=cluster["name"], id=cluster["id"])
        return RecordedBaseline(
            cluster_id=identity.id,
            cluster_name=identity.name,
            commit=document["source"]["commit"],
            entities={entity_from_json(row["entity"]): _quotas(row["quotas"]) for row in rows},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"{name} is not a baseline written by 'apply --record-baseline': {type(error).__name__}: {error}"
        raise BaselineError(msg) from error


def _quotas(values: Mapping[str, Any]) -> Quotas:
    return {key: float(value) for key, value in values.items()}


def _digest(cluster_id: str | None, rows: Json) -> str:
    canonical: Json = {"format": _MAJOR, "cluster": cluster_id, "entities": rows}
    return "sha256:" + hashlib.sha256(canonical_bytes(canonical)).hexdigest()
