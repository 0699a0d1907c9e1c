"""The state of all clusters as a versioned JSON document (``schemas/report.v2.schema.json``): what the page shows."""

from __future__ import annotations

from typing import Final

from reconciler.documents.backtest import unjudged_to_json
from reconciler.documents.backtest_metrics import metrics_to_json, observations_to_json
from reconciler.documents.findings import finding_to_json, span_to_json
from reconciler.formats import Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json
from reconciler.model import BucketTraffic, ClusterOverview, EntityOverview, Overview, Quotas, RunRecord, TrafficOverview

SCHEMA: Final = "report"
_FORMAT_VERSION: Final = "2.1"


def overview_to_json(overview: Overview) -> dict[str, Json]:
    """The whole report; the times are all that differs between two on equal inputs."""
    return {
        "format_version": _FORMAT_VERSION,
        "at": moment_to_json(overview.at),
        "tool": {"name": "kafka-quotas", "version": overview.version},
        "source": {"commit": overview.source.commit, "dirty": overview.source.dirty},
        "clusters": [_cluster(one) for one in overview.clusters],
        "runs": [_run(run) for run in overview.runs] if overview.audited else None,
        "runs_left_out": overview.runs_left_out,
        "traffic": [_traffic(one) for one in overview.traffic],
        "notes": list(overview.notes),
    }


def _cluster(one: ClusterOverview) -> Json:
    failure, baseline, observed = one.failure, one.baseline, one.observed
    return {
        "cluster": cluster_to_json(one.cluster),
        "errored": failure is not None and not failure.skipped,
        "skipped": failure is not None and failure.skipped,
        "failure_reason": failure.failure_reason if failure else None,
        "message": failure.message if failure else None,
        "observed": {"at": moment_to_json(observed.at), "from": observed.origin.value} if observed else None,
        "prune": one.prune,
        "complete": one.complete,
        "baseline": {"kind": baseline.kind.value, "name": baseline.name, "commit": baseline.commit} if baseline else None,
        "differs": one.differs,
        "summary": {
            "declared": one.declared,
            "live": one.live,
            "drift": {drift.value: count for drift, count in one.counts.items()} if observed else None,
        },
        "quota_callback": one.callback,
        "static_defaults": dict(one.static_defaults),
        "entities": [_entity(entity) for entity in one.entities],
        "notes": list(one.notes),
        "findings": [finding_to_json(finding) for finding in one.findings],
    }


def _entity(one: EntityOverview) -> Json:
    return {
        "entity": entity_to_json(one.entity),
        "class": one.drift.value if one.drift else None,
        "declared": _quotas(one.declared),
        "live": _quotas(one.live),
        "baseline": _quotas(one.baseline),
        "owner": one.owner,
        "note": one.note,
        "source": span_to_json(one.source) if one.source else None,
        "protected": one.protected,
        "in_scope": one.in_scope,
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
        "summary": {
            "applied": run.applied,
            "failed": run.failed,
            "unknown": run.unknown,
            "not_attempted": run.not_attempted,
        },
        "accepted": list(run.accepted),
        "principal": run.principal,
        "os_user": run.os_user,
        "source": {"commit": run.commit, "dirty": run.dirty},
    }


def _traffic(one: TrafficOverview) -> Json:
    return {
        "file": one.file,
        "cluster": one.cluster,
        "form": one.form.value,
        "semantics": one.semantics,
        "span": {"from": moment_to_json(one.start), "to": moment_to_json(one.end)},
        "requests": one.requests,
        "current_known": one.current_known,
        "headline": one.headline,
        "buckets": [_bucket(bucket) for bucket in one.buckets],
        "unjudged": [unjudged_to_json(change) for change in one.unjudged],
        "observations": [observations_to_json(found) for found in one.observations],
    }


def _bucket(one: BucketTraffic) -> Json:
    return {
        "bucket": dict(one.bucket),
        "key": one.key,
        "broker": one.broker,
        "entity": entity_to_json(one.entity) if one.entity else None,
        "limit_before": value_to_json(one.limit_before),
        "limit_after": value_to_json(one.limit_after),
        "changed": one.changed,
        "verdict": one.verdict.value,
        "requests": one.requests,
        "active_seconds": one.active_seconds,
        "seconds_over": one.seconds_over,
        "peak": value_to_json(one.peak),
        "peak_bound": one.peak_bound.value,
        "safe": value_to_json(one.safe),
        "recommended": value_to_json(one.recommended),
        "reason": one.reason,
        "metrics": metrics_to_json(one.metrics),
    }
