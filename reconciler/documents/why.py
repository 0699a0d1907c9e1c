"""An incident as a JSON document (``schemas/why.v1.schema.json``)."""

from __future__ import annotations

import datetime
from typing import Final

from reconciler.documents.backtest import bucket_tags
from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json
from reconciler.model import (
    IncidentGroup,
    IncidentReport,
    IncidentStep,
    LimitOrigin,
    LoggedThrottles,
    Member,
    MissingEvidence,
)

SCHEMA: Final = "why"


def incident_to_json(report: IncidentReport) -> dict[str, Json]:
    """The document; times are UTC."""
    return {
        "format_version": FORMAT_VERSION,
        "client": entity_to_json(report.client),
        "cluster": cluster_to_json(report.cluster),
        "asked": {
            "at": _optional(report.at),
            "since": moment_to_json(report.since),
            "until": moment_to_json(report.until),
        },
        "answer": report.answer.value,
        "begin": _optional(report.begin),
        "end": _optional(report.end),
        "begins_earlier": report.begins_earlier,
        "goes_on": report.goes_on,
        "other_incidents": report.other_incidents,
        "logged": None if report.logged is None else _logged(report.logged),
        "groups": [_group(one) for one in report.groups],
        "limits": {
            key: {"value": value_to_json(value), "source": entity_to_json(entity)}
            for key, (value, entity) in report.limits.items()
        },
        "evidence": list(report.evidence),
        "missing": [_missing(one) for one in report.missing],
        "steps": [_step(one) for one in report.steps],
    }


def _optional(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment_to_json(moment)


def _logged(one: LoggedThrottles) -> dict[str, Json]:
    return {"requests": one.requests, "longest_ms": one.longest_ms, "sum_ms": one.sum_ms, "brokers": list(one.brokers)}


def _group(one: IncidentGroup) -> dict[str, Json]:
    return {
        "bucket": dict(bucket_tags(one.name)),
        "key": one.key,
        "broker": one.broker,
        "entity": None if one.entity is None else entity_to_json(one.entity),
        "limit": value_to_json(one.limit),
        "verdict": one.verdict.value,
        "cause": one.is_cause,
        "first": _optional(one.first),
        "last": _optional(one.last),
        "seconds_over": one.seconds_over,
        "active_seconds": one.active_seconds,
        "peak": value_to_json(one.peak),
        "peak_bound": one.peak_bound.value,
        "would_pass": value_to_json(one.would_pass),
        "recommended": value_to_json(one.recommended),
        "reason": one.reason,
        "members": [_member(member) for member in one.members],
        "origin": None if one.origin is None else _origin(one.origin),
    }


def _member(one: Member) -> dict[str, Json]:
    return {
        "user": one.user,
        "client_id": one.client_id,
        "share": one.share,
        "share_of_excess": one.share_of_excess,
        "requests": one.requests,
    }


def _origin(one: LimitOrigin) -> dict[str, Json]:
    return {
        "file": one.file,
        "line": one.line,
        "commit": one.commit,
        "committed": moment_to_json(one.committed),
        "author": one.author,
        "subject": one.subject,
        "before": value_to_json(one.before),
        "applied": _optional(one.applied),
    }


def _missing(one: MissingEvidence) -> dict[str, Json]:
    return {"what": one.what, "because": one.because, "remedy": one.remedy}


def _step(one: IncidentStep) -> dict[str, Json]:
    return {"title": one.title, "command": one.command, "file": one.file, "line": one.line, "text": one.text}
