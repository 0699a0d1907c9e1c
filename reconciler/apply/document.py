"""The apply report as a versioned JSON document (``schemas/apply-report.v1.schema.json``)."""

from __future__ import annotations

from reconciler.formats.canonical import FORMAT_VERSION, Json, cluster_to_json, entity_to_json, value_to_json
from reconciler.model.report import ApplyReport, ChangeOutcome, ChangeStatus


def report_to_json(report: ApplyReport) -> dict[str, Json]:
    """The whole report, with the values before, from which a run can be undone."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster_to_json(report.cluster),
        "digest": report.digest,
        "result": report.result.value,
        "failure_reason": report.failure_reason,
        "message": report.message,
        "validate_only": report.validate_only,
        "verified": report.verified,
        "summary": {status.value: report.count(status) for status in ChangeStatus},
        "changes": [_outcome_to_json(outcome) for outcome in report.outcomes],
    }


def _outcome_to_json(outcome: ChangeOutcome) -> dict[str, Json]:
    change = outcome.change
    reached: dict[str, Json] = {}
    if outcome.reached:
        reached["reached"] = {key: [value_to_json(one) for one in values] for key, values in sorted(outcome.reached.items())}
    return {
        "entity": entity_to_json(change.entity),
        "action": change.action.value,
        "keys": {k.key: {"before": value_to_json(k.before), "after": value_to_json(k.after)} for k in change.keys},
        "status": outcome.status.value,
        "error_code": outcome.error_code,
        "error": outcome.error,
        **reached,
    }
