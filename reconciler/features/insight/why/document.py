"""An incident as a JSON document (``schemas/why.v1.schema.json``)."""

from __future__ import annotations

import datetime
from typing import Final

from reconciler.documents import bucket_tags
from reconciler.features.insight.why.incident import (
    IncidentGroup,
    IncidentReport,
    IncidentStep,
    LimitOrigin,
    MissingEvidence,
    RecordedThrottles,
)
from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json
from reconciler.model import Member

SCHEMA: Final = "why"


def incident_to_json(report: IncidentReport) -> dict[str, Json]:
    """The document of ``why.v1``: times in UTC, rates and limits in the unit of their key, throttles in milliseconds."""
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
        "seconds_over": report.seconds_over,
        "assumed": report.assumed,
        "recorded": None if report.recorded is None else _recorded(report.recorded),
        "groups": [_group(group) for group in report.groups],
        "limits": {
            key: {"value": value_to_json(value), "source": entity_to_json(entity)}
            for key, (value, entity) in report.limits.items()
        },
        "evidence": list(report.evidence),
        "missing": [_missing(evidence) for evidence in report.missing],
        "steps": [_step(step) for step in report.steps],
    }


def _optional(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment_to_json(moment)


def _recorded(throttles: RecordedThrottles) -> dict[str, Json]:
    return {
        "source": throttles.source,
        "requests": throttles.requests,
        "refused": throttles.refused,
        "seconds": throttles.seconds,
        "samples": throttles.samples,
        "longest_ms": throttles.longest_ms,
        "sum_ms": throttles.sum_ms,
        "brokers": list(throttles.brokers),
        "keys": list(throttles.keys),
    }


def _group(group: IncidentGroup) -> dict[str, Json]:
    return {
        "bucket": dict(bucket_tags(group.name)),
        "key": group.key,
        "broker": group.broker,
        "entity": None if group.entity is None else entity_to_json(group.entity),
        "limit": value_to_json(group.limit),
        "since": moment_to_json(group.since),
        "until": moment_to_json(group.until),
        "verdict": group.verdict.value,
        "cause": group.is_cause,
        "first": _optional(group.first),
        "last": _optional(group.last),
        "seconds_over": group.seconds_over,
        "active_seconds": group.active_seconds,
        "peak": value_to_json(group.peak),
        "peak_bound": group.peak_bound.value,
        "would_pass": value_to_json(group.would_pass),
        "recommended": value_to_json(group.recommended),
        "reason": group.reason,
        "members": [_member(member) for member in group.members],
        "origin": None if group.origin is None else _origin(group.origin),
    }


def _member(member: Member) -> dict[str, Json]:
    return {
        "user": member.user,
        "client_id": member.client_id,
        "share": member.share,
        "share_of_excess": member.share_of_excess,
        "requests": member.requests,
    }


def _origin(origin: LimitOrigin) -> dict[str, Json]:
    return {
        "file": origin.file,
        "line": origin.line,
        "commit": origin.commit,
        "committed": moment_to_json(origin.committed),
        "author": origin.author,
        "subject": origin.subject,
        "before": value_to_json(origin.before),
        "applied": _optional(origin.applied),
    }


def _missing(evidence: MissingEvidence) -> dict[str, Json]:
    return {"what": evidence.what, "because": evidence.because, "remedy": evidence.remedy}


def _step(step: IncidentStep) -> dict[str, Json]:
    return {"title": step.title, "command": step.command, "file": step.file, "line": step.line, "text": step.text}
