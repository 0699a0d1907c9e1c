"""Drift as a versioned JSON document (``schemas/drift.v2.schema.json``)."""

from __future__ import annotations

from typing import Final

from reconciler.documents.expiry import expiry_to_json
from reconciler.documents.findings import finding_to_json, span_to_json
from reconciler.documents.units import unit_to_json
from reconciler.formats import Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json
from reconciler.model import BaselineOrigin, Drift, EntityDrift, KeyDrift, Limit

SCHEMA: Final = "drift"
DRIFT_FORMAT_VERSION: Final = "2.1"


def drift_to_json(drift: Drift) -> dict[str, Json]:
    """The whole comparison; ``observed.at`` is the only thing in it that differs between two runs on equal inputs."""
    return {
        "format_version": DRIFT_FORMAT_VERSION,
        "cluster": cluster_to_json(drift.cluster),
        "source": {"commit": drift.source.commit, "dirty": drift.source.dirty},
        "observed": {"at": moment_to_json(drift.observed.at), "from": drift.observed.origin.value},
        "complete": drift.complete,
        "prune": drift.prune.value,
        "baseline": _origin(drift.baseline),
        "differs": drift.differs,
        "summary": {**{each.value.replace("-", "_"): count for each, count in drift.counts.items()}, "ignored": drift.ignored},
        "entities": [_entity(entity) for entity in drift.entities],
        "notes": list(drift.notes),
        "findings": [finding_to_json(finding) for finding in drift.findings],
    }


def _origin(origin: BaselineOrigin | None) -> Json:
    return None if origin is None else {"kind": origin.kind.value, "name": origin.name, "commit": origin.commit}


def _entity(entity_drift: EntityDrift) -> Json:
    return {
        "entity": dict(entity_to_json(entity_drift.entity)),
        "class": entity_drift.drift.value,
        "declared": entity_drift.declared,
        "in_scope": entity_drift.in_scope,
        "keys": {key.key: _key(key) for key in entity_drift.keys},
        "source": span_to_json(entity_drift.source) if entity_drift.source else None,
    }


def _key(key: KeyDrift) -> Json:
    return {
        "desired": value_to_json(key.desired),
        "baseline": value_to_json(key.baseline),
        "live": value_to_json(key.live),
        "source": span_to_json(key.source) if key.source else None,
        "overrides": _limit(key.overrides) if key.overrides else None,
        **({} if key.unit is None else {"declared": unit_to_json(key.unit)}),
        **({} if key.brokers_before is None else {"brokers_before": key.brokers_before}),
        **expiry_to_json(key.expiry),
    }


def _limit(limit: Limit) -> Json:
    return {"entity": dict(entity_to_json(limit.entity)), "value": value_to_json(limit.value), "level": limit.level}
