"""A backtest's result as a versioned JSON document (``schemas/backtest.v1.schema.json``)."""

from __future__ import annotations

import datetime

from reconciler.formats import FORMAT_VERSION, Json, entity_to_json, finding_to_json, value_to_json
from reconciler.model import (
    BacktestReport,
    BucketName,
    BucketVerdict,
    CapacityUse,
    Member,
    Provenance,
    QuotaFit,
    RateSeries,
    RuleOutcome,
    UnjudgedChange,
    Verdict,
    Waiting,
    worst_of_buckets,
)
from reconciler.render.backtest_words import headline


def backtest_to_json(report: BacktestReport) -> dict[str, Json]:
    """The whole report; equal inputs give equal bytes."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": report.cluster,
        "summary": _summary(report),
        "rules": [_rule(rule) for rule in report.rules],
        "provenance": _provenance(report.provenance),
        "verdicts": [_verdict(verdict) for verdict in report.verdicts],
        "unjudged": [unjudged_to_json(one) for one in report.unjudged],
        "unused": [
            {"entity": entity_to_json(u.entity), "key": u.key, "value": value_to_json(u.value), "reason": u.reason.value}
            for u in report.unused
        ],
        "fits": [_fit(fit) for fit in report.fits],
        "capacity": [_capacity(use) for use in report.capacity],
        "notes": list(report.notes),
        "findings": [finding_to_json(finding) for finding in report.findings],
    }


def _summary(report: BacktestReport) -> dict[str, Json]:
    found = worst_of_buckets(report.verdicts)
    counts: dict[str, Json] = {v.value: sum(one.verdict is v for one in found) for v in Verdict}
    return {
        "headline": headline(report)[0],
        "buckets": len(found),
        "changed": sum(one.changed for one in found),
        **counts,
        "unjudged": len(report.unjudged),
        "refused": report.refused,
    }


def unjudged_to_json(one: UnjudgedChange) -> dict[str, Json]:
    """One change without recorded traffic."""
    return {
        "entity": entity_to_json(one.entity),
        "key": one.key,
        "limit_before": value_to_json(one.before),
        "limit_after": value_to_json(one.after),
        "verdict": Verdict.INCONCLUSIVE.value,
        "reason": one.reason.value,
    }


def _rule(rule: RuleOutcome) -> dict[str, Json]:
    place = rule.span
    return {
        "rule": rule.words,
        "reason": rule.reason,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "failed": [
            {
                "bucket": _tags(one.bucket),
                "key": one.key,
                "broker": one.broker,
                "verdict": one.verdict.value,
                "seconds": one.seconds,
                "owners": list(one.owners),
            }
            for one in rule.failed
        ],
        "unjudged": [unjudged_to_json(one) for one in rule.unjudged],
    }


def _fit(fit: QuotaFit) -> dict[str, Json]:
    return {
        "entity": entity_to_json(fit.entity),
        "key": fit.key,
        "limit": value_to_json(fit.limit),
        "fit": fit.fit.value,
        "share": fit.share,
        "buckets": fit.buckets,
        "fullest": _tags(fit.fullest),
        "broker": fit.broker,
    }


def _capacity(use: CapacityUse) -> dict[str, Json]:
    return {
        "broker": use.broker,
        "key": use.key,
        "capacity": value_to_json(use.capacity),
        "limits_before": value_to_json(use.before),
        "limits_after": value_to_json(use.after),
        "buckets": use.buckets,
        "unlimited": use.unlimited,
    }


def _provenance(provenance: Provenance) -> dict[str, Json]:
    return {
        "source": provenance.source,
        "form": provenance.form.value,
        "files": list(provenance.files),
        "semantics": provenance.semantics,
        "span": {"from": _time(provenance.start), "to": _time(provenance.end)},
        "coverage": [
            {
                "broker": c.broker,
                "requests": c.requests,
                "from": _time(c.start),
                "to": _time(c.end),
                "hours": c.minutes // 60,
                "hours_missing": c.minutes_missing // 60,
                "minutes": c.minutes,
                "minutes_missing": c.minutes_missing,
                "first_missing": _time(c.first_missing),
            }
            for c in provenance.coverage
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
        "bucket": _tags(verdict.name),
        "key": verdict.key,
        "broker": verdict.broker,
        "entity": None if verdict.entity is None else entity_to_json(verdict.entity),
        "limit_before": value_to_json(verdict.limit_before),
        "limits_before": [value_to_json(limit) for limit in verdict.limits_before],
        "limit_after": value_to_json(verdict.limit_after),
        "changed": verdict.changed,
        "verdict": verdict.verdict.value,
        "reason": verdict.reason,
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
        "peak_bound": verdict.peak_bound.value,
        "headroom": value_to_json(verdict.headroom),
        "p999": verdict.p999,
        "safe": value_to_json(verdict.safe),
        "safe_p999": value_to_json(verdict.safe_p999),
        "recommended": value_to_json(verdict.recommended),
        "recommended_reason": verdict.recommended_reason,
        "margin": verdict.margin,
        "regrouped": verdict.regrouped.value,
        "buckets_before": [_tags(name) for name in verdict.buckets_before],
        "members": [_member(member) for member in verdict.members],
        "refused": verdict.refused,
        "partly_refused": verdict.partly_refused,
        "undecided": verdict.undecided,
        "waiting": None if verdict.waiting is None else _waiting(verdict.waiting),
        "rates": None if verdict.rates is None else _rates(verdict.rates),
    }


def _tags(bucket: BucketName) -> dict[str, Json]:
    tags = {"user": bucket.user, "client-id": bucket.client_id, **dict(bucket.other)}
    return {tag: name for tag, name in tags.items() if name}


def _rates(rates: RateSeries) -> dict[str, Json]:
    return {
        "from": _time(rates.start),
        "step_s": rates.step_s,
        "rate": list(rates.rate),
        "upper": list(rates.upper),
        "over": list(rates.over),
        "possible": list(rates.possible),
        "over_before": None if rates.over_before is None else list(rates.over_before),
        "recorded": list(rates.recorded),
    }


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
