"""The apply report as a versioned JSON document (``schemas/apply-report.v1.schema.json``)."""

from __future__ import annotations

from typing import Final

from reconciler.errors import ReconcilerError, RefusedError
from reconciler.formats import Json, cluster_to_json, entity_to_json, finding_to_json, value_to_json
from reconciler.model import ApplyReport, ApplyResult, ChangeOutcome, ChangeStatus, ClusterIdentity

_FORMAT_VERSION: Final = "1.1"


def report_to_json(report: ApplyReport) -> dict[str, Json]:
    """The whole report, with the values before, from which a run can be undone."""
    return {
        "format_version": _FORMAT_VERSION,
        "cluster": cluster_to_json(report.cluster),
        "digest": report.digest,
        "result": report.result.value,
        "failure_reason": report.failure_reason,
        "message": report.message,
        "validate_only": report.validate_only,
        "verified": report.verified,
        "summary": {status.value: report.count(status) for status in ChangeStatus},
        "changes": [_outcome_to_json(outcome) for outcome in report.outcomes],
        "findings": [finding_to_json(finding) for finding in report.findings],
    }


def failure_to_json(error: BaseException, *, cluster: ClusterIdentity, validate_only: bool) -> dict[str, Json]:
    """The report of a run that an error ended before there was a plan to write, or anything written."""
    return {
        "format_version": _FORMAT_VERSION,
        "cluster": cluster_to_json(cluster),
        "digest": None,
        "result": (ApplyResult.REFUSED if isinstance(error, RefusedError) else ApplyResult.FAILED).value,
        "failure_reason": reason_of(error),
        "message": str(error) or reason_of(error),
        "validate_only": validate_only,
        "verified": False,
        "summary": dict.fromkeys((status.value for status in ChangeStatus), 0),
        "changes": [],
    }


def reason_of(error: BaseException) -> str:
    """The ``failure_reason`` of a run that an error ended."""
    if isinstance(error, ReconcilerError):
        return error.failure_reason
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "internal"


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
