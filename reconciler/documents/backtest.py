"""Backtest reports as JSON documents (``schemas/backtest.v2.schema.json``)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Final

from reconciler.documents.backtest_headline import headline
from reconciler.documents.backtest_metrics import (
    counts_to_json,
    group_counts_from_json,
    judged_from_json,
    judged_to_json,
    metrics_from_json,
    metrics_to_json,
    observations_to_json,
)
from reconciler.documents.bucket_names import bucket_from_tags, bucket_tags
from reconciler.documents.findings import finding_from_json, finding_to_json
from reconciler.documents.reading import (
    FieldError,
    checked,
    items_from_json,
    moment_from_json,
    number_from_json,
    optional_entity,
    read_document,
    value_from_json,
    within,
)
from reconciler.documents.simulation import simulation_from_json, simulation_to_json
from reconciler.formats import Json, entity_from_json, entity_to_json, value_to_json
from reconciler.model import (
    Advice,
    BacktestReport,
    BucketVerdict,
    CapacityUse,
    Coverage,
    FailedBucket,
    Fit,
    Form,
    Member,
    NotJudged,
    Observations,
    PeakBound,
    PeakRate,
    Provenance,
    QuotaFit,
    RateSeries,
    RecordedGroup,
    Regrouped,
    ReplayCounts,
    RowLimits,
    RuleOutcome,
    SecondsOver,
    UnjudgedChange,
    UnusedQuota,
    UnusedReason,
    Verdict,
)

SCHEMA: Final = "backtest"
_FORMAT_VERSION: Final = "2.3"


def backtest_to_json(report: BacktestReport) -> dict[str, Json]:
    """The document of ``backtest.v2``: limits and rates in the unit of their key, times in UTC.

    Equal reports give equal documents.
    """
    return {
        "format_version": _FORMAT_VERSION,
        "cluster": report.cluster,
        "summary": _summary_to_json(report),
        "rules": [_rule_to_json(rule) for rule in report.rules],
        "provenance": _provenance_to_json(report.provenance),
        "verdicts": [_verdict_to_json(verdict) for verdict in report.verdicts],
        "unjudged": [unjudged_to_json(change) for change in report.unjudged],
        "unused": [
            {"entity": entity_to_json(u.entity), "key": u.key, "value": value_to_json(u.value), "reason": u.reason.value}
            for u in report.unused
        ],
        "fits": [_fit_to_json(fit) for fit in report.fits],
        "capacity": [_capacity_to_json(use) for use in report.capacity],
        "notes": list(report.notes),
        "findings": [finding_to_json(finding) for finding in report.findings],
        **({} if report.simulation is None else {"simulation": simulation_to_json(report.simulation)}),
    }


def _summary_to_json(report: BacktestReport) -> dict[str, Json]:
    counts = report.counts
    return {
        "headline": headline(report)[0],
        "buckets": counts.groups,
        "rows": counts.rows,
        "changed": counts_to_json(counts.changed),
        "unchanged": counts_to_json(counts.unchanged),
        "unjudged": len(report.unjudged),
        "quotas": judged_to_json(report.judged),
        "refused": report.refused,
    }


def unjudged_to_json(change: UnjudgedChange) -> dict[str, Json]:
    """One change without recorded traffic."""
    return {
        "entity": entity_to_json(change.entity),
        "key": change.key,
        "limit_before": value_to_json(change.before),
        "limit_after": value_to_json(change.after),
        "verdict": Verdict.INCONCLUSIVE.value,
        "reason": change.reason.value,
    }


def _rule_to_json(rule: RuleOutcome) -> dict[str, Json]:
    place = rule.span
    return {
        "rule": rule.words,
        "reason": rule.reason,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "failed": [
            {
                "bucket": {**bucket_tags(bucket.bucket)},
                "key": bucket.key,
                "broker": bucket.broker,
                "verdict": bucket.verdict.value,
                "seconds": bucket.seconds,
                "owners": list(bucket.owners),
            }
            for bucket in rule.failed
        ],
        "unjudged": [unjudged_to_json(change) for change in rule.unjudged],
    }


def _fit_to_json(fit: QuotaFit) -> dict[str, Json]:
    return {
        "entity": entity_to_json(fit.entity),
        "key": fit.key,
        "limit": value_to_json(fit.limit),
        "fit": fit.fit.value,
        "share": fit.share,
        "buckets": fit.buckets,
        "fullest": {**bucket_tags(fit.fullest)},
        "broker": fit.broker,
    }


def _capacity_to_json(use: CapacityUse) -> dict[str, Json]:
    return {
        "broker": use.broker,
        "key": use.key,
        "capacity": value_to_json(use.capacity),
        "limits_before": value_to_json(use.before),
        "limits_after": value_to_json(use.after),
        "buckets": use.buckets,
        "unlimited": use.unlimited,
    }


def _provenance_to_json(provenance: Provenance) -> dict[str, Json]:
    return {
        "source": provenance.source,
        "form": provenance.form.value,
        "files": list(provenance.files),
        "semantics": provenance.semantics,
        "span": {"from": _time_to_json(provenance.start), "to": _time_to_json(provenance.end)},
        "coverage": [
            {
                "broker": c.broker,
                "requests": c.requests,
                "from": _time_to_json(c.start),
                "to": _time_to_json(c.end),
                "hours": c.minutes // 60,
                "hours_missing": c.minutes_missing // 60,
                "minutes": c.minutes,
                "minutes_missing": c.minutes_missing,
                "first_missing": _time_to_json(c.first_missing),
            }
            for c in provenance.coverage
        ],
        "requests": provenance.requests,
        "series": provenance.series,
        "throttled_then": provenance.throttled_then,
        "not_charged": dict(provenance.not_charged),
        "observations": [observations_to_json(observations) for observations in provenance.observations],
        "unreadable": {"lines": provenance.unreadable, "samples": list(provenance.unreadable_samples)},
        "current_known": provenance.current_known,
        "assumptions": list(provenance.assumptions),
    }


def _verdict_to_json(verdict: BucketVerdict) -> dict[str, Json]:
    replay = verdict.replay
    return {
        "bucket": {**bucket_tags(verdict.name)},
        "key": verdict.key,
        "broker": verdict.broker,
        "entity": None if verdict.limits.entity is None else entity_to_json(verdict.limits.entity),
        "limit_before": value_to_json(verdict.limits.lowest_before),
        "limits_before": [value_to_json(limit) for limit in verdict.limits.before],
        "limit_after": value_to_json(verdict.limits.after),
        "changed": verdict.changed,
        "verdict": verdict.verdict.value,
        "reason": verdict.reason,
        "requests": verdict.recorded.requests,
        "uncharged": verdict.recorded.uncharged,
        "throttled_before": None if replay is None else replay.before,
        "throttled_after": None if replay is None else replay.throttled,
        "active_seconds": verdict.over.active,
        "seconds_certain": verdict.over.certain,
        "seconds_over": verdict.over.seconds,
        "seconds_possible": verdict.over.possible,
        "seconds_over_before": verdict.over.before,
        "share_over": verdict.over.share,
        "first": _time_to_json(verdict.over.first),
        "longest_s": verdict.over.longest_s,
        "longest_from": _time_to_json(verdict.over.longest_from),
        "peak": verdict.peak.rate,
        "peak_bound": verdict.peak.bound.value,
        "censored": verdict.recorded.censored,
        "headroom": value_to_json(verdict.headroom),
        "p999": verdict.peak.p999,
        "safe": value_to_json(verdict.advice.safe),
        "safe_p999": value_to_json(verdict.advice.safe_p999),
        "recommended": value_to_json(verdict.advice.recommended),
        "recommended_reason": verdict.advice.reason,
        "margin": verdict.advice.margin,
        "margin_reason": verdict.advice.margin_reason,
        "regrouped": verdict.limits.regrouped.value,
        "entities_before": [entity_to_json(entity) for entity in verdict.limits.entities_before],
        "buckets_before": [{**bucket_tags(name)} for name in verdict.limits.buckets_before],
        "members": [_member_to_json(member) for member in verdict.recorded.members],
        "refused": None if replay is None else replay.refused,
        "partly_refused": None if replay is None else replay.partly_refused,
        "undecided": verdict.undecided,
        "rates": None if verdict.rates is None else _rates_to_json(verdict.rates),
        "metrics": metrics_to_json(verdict.metrics),
    }


def _rates_to_json(rates: RateSeries) -> dict[str, Json]:
    return {
        "from": _time_to_json(rates.start),
        "step_s": rates.step_s,
        "rate": list(rates.rate),
        "upper": list(rates.upper),
        "over": list(rates.over),
        "possible": list(rates.possible),
        "over_before": None if rates.over_before is None else list(rates.over_before),
        "recorded": list(rates.recorded),
    }


def _member_to_json(member: Member) -> dict[str, Json]:
    return {
        "user": member.user,
        "client_id": member.client_id,
        "share": member.share,
        "share_of_excess": member.share_of_excess,
        "requests": member.requests,
        "limit_before": value_to_json(member.limit_before),
    }


def _time_to_json(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_backtest(text: str | bytes, *, name: str) -> BacktestReport:
    """The report of a document; ``name`` is the file's.

    Raises ``FileAccessError`` for text that is not such a document, ``DocumentVersionError`` for one of another major version.
    """
    return read_document(text, backtest_from_json, name=name, kind="a backtest report", written_by="backtest --format json")


def backtest_from_json(data: object) -> BacktestReport:
    """The inverse of ``backtest_to_json``, except for places of rules, which the document has without their columns.

    Raises ``ForeignVersionError``, and ``FieldError`` that names the field.
    """
    document = checked(data, SCHEMA)
    with within("provenance"):
        provenance = _provenance_from_json(document["provenance"])
    return BacktestReport(
        group_counts=group_counts_from_json(document["summary"], len(document["verdicts"])),
        cluster=document["cluster"],
        rules=items_from_json(document["rules"], _rule_from_json, "rules"),
        provenance=provenance,
        verdicts=items_from_json(document["verdicts"], _verdict_from_json, "verdicts"),
        unjudged=items_from_json(document["unjudged"], _unjudged_from_json, "unjudged"),
        judged=judged_from_json(document["summary"].get("quotas")),
        unused=items_from_json(document["unused"], _unused_from_json, "unused"),
        fits=items_from_json(document["fits"], _fit_from_json, "fits"),
        capacity=items_from_json(document["capacity"], _capacity_from_json, "capacity"),
        findings=items_from_json(document["findings"], finding_from_json, "findings"),
        notes=tuple(document["notes"]),
        simulation=simulation_from_json(simulation) if (simulation := document.get("simulation")) is not None else None,
    )


def _provenance_from_json(row: Mapping[str, Any]) -> Provenance:
    return Provenance(
        source=row["source"],
        form=Form(row["form"]),
        files=tuple(row["files"]),
        semantics=row["semantics"],
        start=moment_from_json(row["span"]["from"], "span.from"),
        end=moment_from_json(row["span"]["to"], "span.to"),
        coverage=items_from_json(row["coverage"], _coverage_from_json, "coverage"),
        requests=row["requests"],
        series=row["series"],
        throttled_then=row["throttled_then"],
        not_charged=dict(row["not_charged"]),
        observations=tuple(Observations(**fields) for fields in row.get("observations", ())),
        unreadable=row["unreadable"]["lines"],
        unreadable_samples=tuple(row["unreadable"]["samples"]),
        current_known=row["current_known"],
        assumptions=tuple(row["assumptions"]),
    )


def _coverage_from_json(row: Mapping[str, Any]) -> Coverage:
    return Coverage(
        broker=row["broker"],
        requests=row["requests"],
        start=moment_from_json(row["from"], "from"),
        end=moment_from_json(row["to"], "to"),
        minutes=row["minutes"],
        minutes_missing=row["minutes_missing"],
        first_missing=_time_from_json(row["first_missing"], "first_missing"),
    )


def _verdict_from_json(row: Mapping[str, Any]) -> BucketVerdict:
    rates, throttled = row["rates"], row["throttled_after"]
    return BucketVerdict(
        key=row["key"],
        broker=row["broker"],
        name=bucket_from_tags(row["bucket"]),
        undecided=row["undecided"],
        limits=RowLimits(
            entity=optional_entity(row["entity"]),
            before=tuple(value_from_json(value, f"limits_before[{i}]") for i, value in enumerate(row["limits_before"])),
            after=value_from_json(row["limit_after"], "limit_after"),
            regrouped=Regrouped(row["regrouped"]),
            entities_before=tuple(entity_from_json(entity) for entity in row["entities_before"]),
            buckets_before=tuple(bucket_from_tags(bucket_row) for bucket_row in row["buckets_before"]),
        ),
        changed=row["changed"],
        verdict=Verdict(row["verdict"]),
        reason=row["reason"],
        recorded=RecordedGroup(
            requests=row["requests"],
            members=items_from_json(row["members"], _member_from_json, "members"),
            uncharged=row["uncharged"],
            censored=row["censored"],
        ),
        over=SecondsOver(
            active=row["active_seconds"],
            certain=row["seconds_certain"],
            seconds=row["seconds_over"],
            possible=row["seconds_possible"],
            before=row["seconds_over_before"],
            first=_time_from_json(row["first"], "first"),
            longest_s=row["longest_s"],
            longest_from=_time_from_json(row["longest_from"], "longest_from"),
        ),
        peak=PeakRate(
            rate=number_from_json(row["peak"], "peak"),
            bound=PeakBound(row["peak_bound"]),
            p999=number_from_json(row["p999"], "p999"),
        ),
        replay=None
        if throttled is None
        else ReplayCounts(
            throttled=throttled,
            before=row["throttled_before"],
            refused=row["refused"],
            partly_refused=row["partly_refused"],
        ),
        metrics=metrics_from_json(row["metrics"]),
        advice=Advice(
            recommended=value_from_json(row["recommended"], "recommended"),
            reason=row["recommended_reason"],
            safe=value_from_json(row["safe"], "safe"),
            safe_p999=value_from_json(row["safe_p999"], "safe_p999"),
            margin=number_from_json(row["margin"], "margin"),
            margin_reason=row["margin_reason"],
        ),
        rates=None if rates is None else _rates_from_json(rates),
    )


def _rates_from_json(row: Mapping[str, Any]) -> RateSeries:
    return RateSeries(
        start=moment_from_json(row["from"], "rates.from"),
        step_s=row["step_s"],
        rate=tuple(row["rate"]),
        upper=tuple(row["upper"]),
        over=tuple(row["over"]),
        possible=tuple(row["possible"]),
        over_before=None if row["over_before"] is None else tuple(row["over_before"]),
        recorded=tuple(row["recorded"]),
    )


def _member_from_json(row: Mapping[str, Any]) -> Member:
    return Member(
        user=row["user"],
        client_id=row["client_id"],
        share=number_from_json(row["share"], "share"),
        requests=row["requests"],
        limit_before=value_from_json(row["limit_before"], "limit_before"),
        share_of_excess=value_from_json(row["share_of_excess"], "share_of_excess"),
    )


def _rule_from_json(row: Mapping[str, Any]) -> RuleOutcome:
    return RuleOutcome(
        words=row["rule"],
        reason=row["reason"],
        span=None,
        failed=tuple(
            FailedBucket(
                bucket=bucket_from_tags(failed["bucket"]),
                key=failed["key"],
                broker=failed["broker"],
                verdict=Verdict(failed["verdict"]),
                seconds=failed["seconds"],
                owners=tuple(failed["owners"]),
            )
            for failed in row["failed"]
        ),
        unjudged=items_from_json(row["unjudged"], _unjudged_from_json, "unjudged"),
    )


def _unjudged_from_json(row: Mapping[str, Any]) -> UnjudgedChange:
    return UnjudgedChange(
        entity=entity_from_json(row["entity"]),
        key=row["key"],
        before=value_from_json(row["limit_before"], "limit_before"),
        after=value_from_json(row["limit_after"], "limit_after"),
        reason=NotJudged(row["reason"]),
    )


def _unused_from_json(row: Mapping[str, Any]) -> UnusedQuota:
    return UnusedQuota(
        entity=entity_from_json(row["entity"]),
        key=row["key"],
        value=_given(row, "value"),
        reason=UnusedReason(row["reason"]),
    )


def _fit_from_json(row: Mapping[str, Any]) -> QuotaFit:
    return QuotaFit(
        entity=entity_from_json(row["entity"]),
        key=row["key"],
        limit=_given(row, "limit"),
        fit=Fit(row["fit"]),
        share=number_from_json(row["share"], "share"),
        buckets=row["buckets"],
        fullest=bucket_from_tags(row["fullest"]),
        broker=row["broker"],
    )


def _capacity_from_json(row: Mapping[str, Any]) -> CapacityUse:
    return CapacityUse(
        broker=row["broker"],
        key=row["key"],
        capacity=_given(row, "capacity"),
        before=value_from_json(row["limits_before"], "limits_before"),
        after=_given(row, "limits_after"),
        buckets=row["buckets"],
        unlimited=row["unlimited"],
    )


def _given(row: Mapping[str, Any], field: str) -> float:
    """A value that the schema lets be null, and that never is."""
    value = value_from_json(row[field], field)
    if value is None:
        raise FieldError(field, "must be a number, not null")
    return value


def _time_from_json(text: str | None, path: str) -> datetime.datetime | None:
    return None if text is None else moment_from_json(text, path)
