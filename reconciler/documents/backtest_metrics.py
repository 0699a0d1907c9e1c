"""Parts of a backtest's document: results of metrics, meanings of rows, and numbers of judged changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.documents.reading import number_from_json, value_from_json
from reconciler.formats import Json, value_to_json
from reconciler.model import GroupCounts, JudgedQuotas, MetricSamples, MetricSemantics, Observations, Verdict


def observations_to_json(observations: Observations) -> dict[str, Json]:
    """Rows of one meaning."""
    return {
        "semantics": observations.semantics,
        "rows": observations.rows,
        "series": observations.series,
        "every_s": observations.every_s,
        "throttled_then": observations.throttled_then,
    }


def metrics_to_json(metrics: MetricSamples | None) -> Json:
    """What metrics show of a quota group."""
    if metrics is None:
        return None
    return {
        "semantics": metrics.semantics.value,
        "samples": metrics.samples,
        "samples_over": metrics.over,
        "samples_over_before": metrics.over_before,
        "share_over": None if metrics.over is None else [metrics.share_low, metrics.share_high],
        "highest": metrics.highest,
        "every_s": metrics.every_s,
        "window_s": metrics.window_s,
        "moments": metrics.moments if metrics.semantics is MetricSemantics.GAUGE else None,
        "throttled_then": metrics.throttled_then,
        "most": value_to_json(metrics.most),
        "factor": metrics.factor,
    }


def metrics_from_json(row: Mapping[str, Any] | None) -> MetricSamples | None:
    """The inverse of ``metrics_to_json``; older documents have none."""
    if row is None:
        return None
    low, high = row["share_over"] or (0.0, 1.0)
    return MetricSamples(
        semantics=MetricSemantics(row["semantics"]),
        samples=row["samples"],
        highest=number_from_json(row["highest"], "metrics.highest"),
        every_s=row["every_s"],
        window_s=row["window_s"],
        over=row["samples_over"],
        over_before=row["samples_over_before"],
        share_low=low,
        share_high=high,
        throttled_then=row["throttled_then"],
        most=value_from_json(row["most"], "metrics.most"),
        factor=row["factor"],
    )


def judged_to_json(judged: JudgedQuotas | None) -> Json:
    """How many changed quotas were judged."""
    if judged is None:
        return None
    return {
        "changed": judged.changed,
        "judged": judged.judged,
        "without_traffic": judged.without_traffic,
        "too_little": judged.too_little,
    }


def judged_from_json(row: Mapping[str, Any] | None) -> JudgedQuotas | None:
    """The inverse of ``judged_to_json``; older documents have none."""
    if row is None:
        return None
    return JudgedQuotas(changed=row["changed"], judged=row["judged"], without_traffic=row["without_traffic"])


def counts_to_json(counts: Mapping[Verdict, int]) -> dict[str, Json]:
    """Quota groups, in all and by verdict."""
    return {"buckets": sum(counts.values()), **{verdict.value: counts.get(verdict, 0) for verdict in Verdict}}


def group_counts_from_json(summary: Mapping[str, Any], listed: int) -> GroupCounts | None:
    """``None`` where all rows are listed."""
    if summary.get("rows", listed) == listed:
        return None
    changed, unchanged = ({verdict: summary[name][verdict.value] for verdict in Verdict} for name in ("changed", "unchanged"))
    return GroupCounts(changed=changed, unchanged=unchanged, rows=summary["rows"])
