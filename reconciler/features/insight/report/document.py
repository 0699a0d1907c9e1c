"""The state of all clusters as a versioned JSON document (``schemas/report.v2.schema.json``): what the page shows."""

from __future__ import annotations

import dataclasses
from typing import Final

from reconciler.documents import expiry_to_json, finding_to_json, span_to_json, unit_to_json
from reconciler.features.insight.headroom.document import loads_to_json
from reconciler.features.insight.report.overview import BudgetUse, ClusterOverview, EntityOverview, Overview
from reconciler.features.insight.runs import RunRecord
from reconciler.formats import Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json
from reconciler.model import Quotas

SCHEMA: Final = "report"
_FORMAT_VERSION: Final = "2.4"


def overview_to_json(overview: Overview) -> dict[str, Json]:
    """The whole report; the times are all that differs between two on equal inputs."""
    return {
        "format_version": _FORMAT_VERSION,
        "at": moment_to_json(overview.at),
        "tool": {"name": "kafka-quotas", "version": overview.version},
        "source": {"commit": overview.source.commit, "dirty": overview.source.dirty},
        "clusters": [_cluster(cluster) for cluster in overview.clusters],
        "runs": [_run(run) for run in overview.runs] if overview.audited else None,
        "runs_left_out": overview.runs_left_out,
        "notes": list(overview.notes),
    }


def _cluster(cluster_overview: ClusterOverview) -> Json:
    failure, baseline, observed = cluster_overview.failure, cluster_overview.baseline, cluster_overview.observed
    return {
        "cluster": cluster_to_json(cluster_overview.cluster),
        "errored": failure is not None and not failure.skipped,
        "skipped": failure is not None and failure.skipped,
        "failure_reason": failure.failure_reason if failure else None,
        "message": failure.message if failure else None,
        "observed": {"at": moment_to_json(observed.at), "from": observed.origin.value} if observed else None,
        "prune": cluster_overview.prune,
        "complete": cluster_overview.complete,
        "baseline": {"kind": baseline.kind.value, "name": baseline.name, "commit": baseline.commit} if baseline else None,
        "differs": cluster_overview.differs,
        "summary": {
            "declared": cluster_overview.declared,
            "live": cluster_overview.live,
            "drift": {drift.value: count for drift, count in cluster_overview.counts.items()} if observed else None,
        },
        "quota_callback": cluster_overview.callback,
        "static_defaults": dict(cluster_overview.static_defaults),
        "entities": [_entity(entity) for entity in cluster_overview.entities],
        **({"budgets": [_budget(budget) for budget in cluster_overview.budgets]} if cluster_overview.budgets else {}),
        "loads": None if cluster_overview.loads is None else loads_to_json(cluster_overview.loads),
        "notes": list(cluster_overview.notes),
        "findings": [finding_to_json(finding) for finding in cluster_overview.findings],
    }


def _entity(entity_overview: EntityOverview) -> Json:
    units, expiries = entity_overview.units, entity_overview.expiries
    return {
        "entity": entity_to_json(entity_overview.entity),
        "class": entity_overview.drift.value if entity_overview.drift else None,
        "declared": _quotas(entity_overview.declared),
        "live": _quotas(entity_overview.live),
        "baseline": _quotas(entity_overview.baseline),
        "owner": entity_overview.owner,
        "note": entity_overview.note,
        "source": span_to_json(entity_overview.source) if entity_overview.source else None,
        "protected": entity_overview.protected,
        "in_scope": entity_overview.in_scope,
        **({"expiries": {key: expiry_to_json(each)["expiry"] for key, each in sorted(expiries.items())}} if expiries else {}),
        **({"declared_as": {key: unit_to_json(unit) for key, unit in sorted(units.items())}} if units else {}),
    }


def _budget(budget: BudgetUse) -> Json:
    return {
        "owner": budget.owner,
        "key": budget.key,
        "budget": value_to_json(budget.budget),
        "allocated": value_to_json(budget.allocated),
        "free": value_to_json(budget.free),
        "used": None if budget.used is None else value_to_json(budget.used),
        "entities": budget.entities,
    }


def _quotas(quotas: Quotas | None) -> Json:
    return None if quotas is None else {key: value_to_json(value) for key, value in sorted(quotas.items())}


def _run(run: RunRecord) -> Json:
    return {
        "file": run.file,
        "started": moment_to_json(run.started),
        "ended": moment_to_json(run.ended),
        "command": run.command,
        "cluster": cluster_to_json(run.cluster),
        "result": run.result,
        "failure_reason": run.failure_reason,
        "verified": run.verified,
        "validate_only": run.validate_only,
        "summary": dataclasses.asdict(run.counts),
        "accepted": list(run.accepted),
        "principal": run.principal,
        "os_user": run.os_user,
        "source": {"commit": run.source.commit, "dirty": run.source.dirty},
    }
