"""Apply reports as JSON documents (``schemas/apply-report.v1.schema.json``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler.documents.findings import finding_from_json, finding_to_json
from reconciler.documents.plan import key_change_from_json, keys_from_json, require_digest
from reconciler.documents.reading import (
    FieldError,
    T,
    checked,
    cluster_from_json,
    items_from_json,
    number_from_json,
    read_document,
)
from reconciler.errors import GuardRefusedError, ReconcilerError, RefusedError
from reconciler.formats import Json, cluster_to_json, entity_from_json, entity_to_json, field_path, value_to_json
from reconciler.model import (
    KNOWN_KEYS,
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    KeyChange,
    Reason,
    WithheldOwner,
)

SCHEMA: Final = "apply-report"

_FORMAT_VERSION: Final = "1.4"


def apply_report_to_json(report: ApplyReport) -> dict[str, Json]:
    """The document of ``apply-report.v1``, with the values before each change, from which ``revert`` undoes a run."""
    return {
        "format_version": _FORMAT_VERSION,
        "cluster": cluster_to_json(report.cluster),
        "digest": report.digest,
        "result": report.result.value,
        "failure_reason": report.failure_reason,
        "message": report.message,
        "validate_only": report.validate_only,
        "verified": report.verified,
        "seconds": report.seconds,
        "brokers": report.brokers,
        "summary": {status.value: report.count(status) for status in ChangeStatus},
        "changes": [_outcome_to_json(outcome) for outcome in report.outcomes],
        "findings": [finding_to_json(finding) for finding in report.findings],
        **({} if not report.withheld else {"withheld": [_withheld_to_json(each) for each in report.withheld]}),
    }


def _withheld_to_json(withheld: WithheldOwner) -> dict[str, Json]:
    return {
        "owner": withheld.owner,
        "entities": [entity_to_json(change.entity) for change in withheld.changes],
        "reasons": [
            {"kind": reason.kind, **({} if reason.id is None else {"id": reason.id}), "message": str.__str__(reason.message)}
            for reason in withheld.reasons
        ],
    }


def failed_apply_to_json(error: BaseException, *, cluster: ClusterIdentity, validate_only: bool) -> dict[str, Json]:
    """The report of a run that an error ended before there was a plan to write, or anything written."""
    return {
        "format_version": _FORMAT_VERSION,
        "cluster": cluster_to_json(cluster),
        "digest": None,
        "result": (ApplyResult.REFUSED if isinstance(error, RefusedError) else ApplyResult.FAILED).value,
        "failure_reason": failure_reason_of(error),
        "message": str(error) or failure_reason_of(error),
        "validate_only": validate_only,
        "verified": False,
        "summary": dict.fromkeys((status.value for status in ChangeStatus), 0),
        "changes": [],
        **({"guards": list(error.guard_ids)} if isinstance(error, GuardRefusedError) else {}),
    }


def failure_reason_of(error: BaseException) -> str:
    """The ``failure_reason`` of a run that an error ended."""
    if isinstance(error, ReconcilerError):
        return error.failure_reason
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "internal"


def _outcome_to_json(outcome: ChangeOutcome) -> dict[str, Json]:
    change = outcome.change
    reached: dict[str, Json] = {}
    if outcome.reached:
        reached["reached"] = {key: [value_to_json(value) for value in values] for key, values in sorted(outcome.reached.items())}
    return {
        "entity": entity_to_json(change.entity),
        "action": change.action.value,
        "keys": {k.key: {"before": value_to_json(k.before), "after": value_to_json(k.after)} for k in change.keys},
        "status": outcome.status.value,
        "error_code": outcome.error_code,
        "error": outcome.error,
        **reached,
    }


def read_apply_report(text: str, *, name: str) -> ApplyReport:
    """The report of a document; ``name`` is the file's.

    Raises ``FileAccessError`` for text that is not such a document, ``DocumentVersionError`` for one of another major version,
    and ``AlteredDocumentError`` for one whose digest is not that of its own changes.
    """
    report = _read(text, apply_report_from_json, name)
    require_digest(report.digest, report.cluster.id, [outcome.change for outcome in report.outcomes], name=name)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySummary:
    """How a run ended; also of one that ended before it had a plan, whose report has no digest."""

    result: ApplyResult
    counts: Mapping[ChangeStatus, int]
    verified: bool
    validate_only: bool
    failure_reason: str | None
    message: str | None
    seconds: float | None = None
    brokers: int | None = None
    withheld: tuple[tuple[str | None, int], ...] = ()
    """Owners whose changes were not written, and how many entities these are."""
    cluster: str | None = None
    outcomes: tuple[ChangeOutcome, ...] = ()
    guards: tuple[str, ...] = ()
    """Those that refused the run."""


def read_apply_summary(text: str, *, name: str) -> ApplySummary:
    """How the run of an apply report ended. Raises ``FileAccessError`` for text that is not such a document."""
    document = _read(text, lambda data: checked(data, SCHEMA), name)
    return ApplySummary(
        result=ApplyResult(document["result"]),
        counts={status: document["summary"][status.value] for status in ChangeStatus},
        verified=document["verified"],
        validate_only=document["validate_only"],
        failure_reason=document["failure_reason"],
        message=document["message"],
        seconds=document.get("seconds"),
        brokers=document.get("brokers"),
        withheld=tuple((row["owner"], len(row["entities"])) for row in document.get("withheld", ())),
        cluster=document["cluster"]["name"],
        outcomes=items_from_json(document["changes"], _outcome_from_json, "changes"),
        guards=tuple(document.get("guards", ())),
    )


def _read(text: str, build: Callable[[Any], T], name: str) -> T:
    return read_document(text, build, name=name, kind="an apply report", written_by="apply --report")


def apply_report_from_json(data: object) -> ApplyReport:
    """The inverse of ``apply_report_to_json``, except for guards, reasons and withheld changes.

    Raises ``ForeignVersionError``, and ``FieldError`` that names the field.
    """
    document = checked(data, SCHEMA)
    if document["digest"] is None:
        raise FieldError("digest", "is null: the run ended before anything was written")
    report = ApplyReport(
        cluster=cluster_from_json(document["cluster"]),
        digest=document["digest"],
        result=ApplyResult(document["result"]),
        outcomes=items_from_json(document["changes"], _outcome_from_json, "changes"),
        verified=document["verified"],
        failure_reason=document["failure_reason"],
        message=document["message"],
        validate_only=document["validate_only"],
        seconds=document.get("seconds"),
        brokers=document.get("brokers"),
        findings=items_from_json(document.get("findings", []), finding_from_json, "findings"),
    )
    if len({outcome.change.entity for outcome in report.outcomes}) != len(report.outcomes):
        raise FieldError("changes", "has an entity twice")
    for status in ChangeStatus:
        if document["summary"][status.value] != report.count(status):
            problem = f"must be {report.count(status)}, the number of changes with this status"
            raise FieldError(f"summary.{status}", problem)
    return report


def _outcome_from_json(row: Mapping[str, Any]) -> ChangeOutcome:
    change = Change(
        entity=entity_from_json(row["entity"]),
        action=Action(row["action"]),
        keys=keys_from_json(row["keys"], _key_from_json),
    )
    return ChangeOutcome(
        change=change,
        status=ChangeStatus(row["status"]),
        error_code=row["error_code"],
        error=row["error"],
        reached=_reached_from_json(row["reached"], change) if "reached" in row else {},
    )


def _key_from_json(row: Mapping[str, Any], key: str) -> KeyChange:
    if key not in KNOWN_KEYS:
        raise FieldError("", "must be a quota key that this version writes")
    return key_change_from_json(row, key, reason=Reason.VALUE_DIFFERS)


def _reached_from_json(row: Mapping[str, Any], change: Change) -> dict[str, tuple[float, ...]]:
    if not row.keys() <= {key.key for key in change.keys}:
        raise FieldError("reached", "must have values of keys of the same change")
    return {
        key: tuple(number_from_json(value, field_path(("reached", key, index))) for index, value in enumerate(values))
        for key, values in row.items()
    }
