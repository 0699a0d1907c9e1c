"""One line of an audit file: who changed what cluster when, and how it ended (``schemas/audit.v1.schema.json``).

It has counts and the digest, no entities and no values: those are in the report.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from typing import Final

from reconciler.documents.apply_report import failure_reason_of
from reconciler.errors import RefusedError
from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, moment_to_json
from reconciler.model import ApplyReport, ApplyResult, ChangeStatus, ClusterIdentity, GuardStatus, ManifestCommit

SCHEMA: Final = "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """What is known of a run, however it ends. ``principal``: the name that the client's own settings give, if any."""

    command: str
    started: datetime.datetime
    os_user: str
    principal: str | None = None
    source: ManifestCommit = field(default_factory=ManifestCommit)
    cluster: ClusterIdentity = field(default_factory=ClusterIdentity)
    """As far as known before the cluster answered."""
    validate_only: bool = False


def audit_to_json(run: AuditedRun, report: ApplyReport, *, at: datetime.datetime) -> dict[str, Json]:
    """The audit line (``audit.v1``) of a run that ended with a report; ``at`` is its end, in UTC."""
    counts: dict[str, Json] = {status.value: report.count(status) for status in ChangeStatus}
    accepted = sorted(guard.id for guard in report.guards if guard.status is GuardStatus.ACCEPTED)
    return {
        **_head(run, at),
        "cluster": cluster_to_json(report.cluster),
        "digest": report.digest,
        "accepted": list(accepted),
        "summary": counts,
        "verified": report.verified,
        "result": report.result.value,
        "failure_reason": report.failure_reason,
        **({} if not report.withheld else {"withheld": [each.owner for each in report.withheld]}),
    }


def failed_audit_to_json(run: AuditedRun, error: BaseException, *, at: datetime.datetime) -> dict[str, Json]:
    """The audit line (``audit.v1``) of a run that ended with an error before it wrote anything; ``at`` is its end, in UTC."""
    return {
        **_head(run, at),
        "cluster": cluster_to_json(run.cluster),
        "digest": None,
        "accepted": [],
        "summary": dict.fromkeys((status.value for status in ChangeStatus), 0),
        "verified": False,
        "result": (ApplyResult.REFUSED if isinstance(error, RefusedError) else ApplyResult.FAILED).value,
        "failure_reason": failure_reason_of(error),
    }


def audit_text(record: dict[str, Json]) -> str:
    """The record as one line without its end; ASCII only, so no name can break it."""
    return json.dumps(record, separators=(", ", ": "), ensure_ascii=True, allow_nan=False)


def _head(run: AuditedRun, at: datetime.datetime) -> dict[str, Json]:
    return {
        "format_version": FORMAT_VERSION,
        "started": moment_to_json(run.started),
        "ended": moment_to_json(at),
        "command": run.command,
        "principal": run.principal,
        "os_user": run.os_user,
        "source": {"commit": run.source.commit, "dirty": run.source.dirty},
        "validate_only": run.validate_only,
    }
