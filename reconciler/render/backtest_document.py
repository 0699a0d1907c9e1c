"""A backtest's result as a versioned JSON document (``schemas/backtest.v1.schema.json``)."""

from __future__ import annotations

import datetime

from reconciler.formats.canonical import FORMAT_VERSION, Json, entity_to_json, value_to_json
from reconciler.formats.finding_json import finding_to_json
from reconciler.model.backtest import BacktestReport, BucketVerdict, Member, Provenance, Waiting


def backtest_to_json(report: BacktestReport) -> dict[str, Json]:
    """The whole report; equal inputs give equal bytes."""
    return {
        "format_version": FORMAT_VERSION,
        "provenance": _provenance(report.provenance),
        "verdicts": [_verdict(verdict) for verdict in report.verdicts],
        "unused": [
            {"entity": entity_to_json(u.entity), "key": u.key, "value": value_to_json(u.value), "reason": u.reason.value}
            for u in report.unused
        ],
        "findings": [finding_to_json(finding) for finding in report.findings],
    }


def _provenance(provenance: Provenance) -> dict[str, Json]:
    return {
        "source": provenance.source,
        "form": provenance.form.value,
        "files": list(provenance.files),
        "semantics": provenance.semantics,
        "span": {"from": _time(provenance.start), "to": _time(provenance.end)},
        "coverage": [
            {"broker": c.broker, "requests": c.requests, "from": _time(c.start), "to": _time(c.end)} for c in provenance.coverage
        ],
        "requests": provenance.requests,
        "series": provenance.series,
        "censored": provenance.censored,
        "throttled_then": provenance.throttled_then,
        "not_charged": dict(provenance.not_charged),
        "unreadable": {"lines": provenance.unreadable, "samples": list(provenance.unreadable_samples)},
        "current_known": provenance.current_known,
        "assumptions": list(provenance.assumptions),
    }


def _verdict(verdict: BucketVerdict) -> dict[str, Json]:
    return {
        "bucket": _bucket(verdict),
        "key": verdict.key,
        "broker": verdict.broker,
        "entity": None if verdict.entity is None else entity_to_json(verdict.entity),
        "limit_before": value_to_json(verdict.limit_before),
        "limits_before": [value_to_json(limit) for limit in verdict.limits_before],
        "limit_after": value_to_json(verdict.limit_after),
        "changed": verdict.changed,
        "verdict": verdict.verdict.value,
        "requests": verdict.requests,
        "throttled_before": verdict.throttled_before,
        "throttled_after": verdict.throttled,
        "active_seconds": verdict.active_seconds,
        "seconds_certain": verdict.seconds_certain,
        "seconds_over": verdict.seconds_over,
        "seconds_possible": verdict.seconds_possible,
        "seconds_over_before": verdict.seconds_over_before,
        "share_over": verdict.share_over,
        "first": _time(verdict.first),
        "longest_s": verdict.longest_s,
        "longest_from": _time(verdict.longest_from),
        "peak": verdict.peak,
        "headroom": value_to_json(verdict.headroom),
        "recommended": value_to_json(verdict.recommended),
        "recommended_reason": verdict.recommended_reason,
        "members": [_member(member) for member in verdict.members],
        "refused": verdict.refused,
        "partly_refused": verdict.partly_refused,
        "undecided": verdict.undecided,
        "waiting": None if verdict.waiting is None else _waiting(verdict.waiting),
    }


def _bucket(verdict: BucketVerdict) -> dict[str, Json]:
    tags = {"user": verdict.user, "client-id": verdict.client_id, **dict(verdict.tags)}
    return {tag: name for tag, name in tags.items() if name}


def _waiting(waiting: Waiting) -> dict[str, Json]:
    return {
        "connections": waiting.connections,
        "requests": waiting.requests,
        "complete": waiting.complete,
        "throughput": waiting.throughput,
        "throughput_of_limit": waiting.throughput_of_limit,
        "waited": waiting.waited,
        "wait_median_s": waiting.wait_median_s,
        "wait_longest_s": waiting.wait_longest_s,
        "behind_longest_s": waiting.behind_longest_s,
        "pulse_of_limit": waiting.pulse_of_limit,
        "pulse_s": waiting.pulse_s,
        "pulse_every_s": waiting.pulse_every_s,
    }


def _member(member: Member) -> dict[str, Json]:
    return {
        "user": member.user,
        "client_id": member.client_id,
        "share": member.share,
        "share_of_excess": member.share_of_excess,
        "requests": member.requests,
        "limit_before": value_to_json(member.limit_before),
    }


def _time(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
