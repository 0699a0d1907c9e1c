"""Backtest reports as documents: limits and rates in the unit of their key, times in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler.documents.backtest_headline import headline
from reconciler.documents.codec import row
from reconciler.documents.document import VALUES, Document
from reconciler.model import (
    Advice,
    BacktestReport,
    BucketVerdict,
    Count,
    Coverage,
    JudgedQuotas,
    PeakRate,
    Provenance,
    RecordedGroup,
    ReplayCounts,
    RowLimits,
    RuleOutcome,
    SecondsOver,
    Verdict,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsByVerdict:
    """Numbers of quota groups by their worst verdict."""

    buckets: Count
    """All of them."""
    throttled: Count
    """Those that would have been throttled."""
    possible: Count
    """Those that might have been throttled."""
    clear: Count
    """Those that would not have been throttled."""
    inconclusive: Count
    """Those of which the history does not show enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestSummary:
    """The answer and numbers."""

    headline: str
    """The answer in one or two sentences."""
    buckets: Count
    """Quota groups with recorded traffic. Each counts once, by its worst broker."""
    rows: Count
    """Rows of verdicts, one for each quota group on each broker."""
    changed: GroupsByVerdict
    """Quota groups whose limit this change alters."""
    unchanged: GroupsByVerdict
    """Quota groups whose limit stays: what is throttled here is over its limit already."""
    unjudged: Count
    """Changed quotas that limit no recorded traffic. They are not among the buckets."""
    quotas: JudgedQuotas | None
    """Changed quotas, each an entity and a key. ``None``: not known, as where a quota callback decides."""
    refused: bool
    """A rule of the policy fails."""


def summary_of_report(report: BacktestReport) -> BacktestSummary:
    """The answer and numbers."""
    counts = report.counts
    return BacktestSummary(
        headline=headline(report)[0],
        buckets=counts.groups,
        rows=counts.rows,
        changed=_by_verdict(counts.changed),
        unchanged=_by_verdict(counts.unchanged),
        unjudged=len(report.unjudged),
        quotas=report.judged,
        refused=report.refused,
    )


def _by_verdict(counts: Mapping[Verdict, int]) -> GroupsByVerdict:
    return GroupsByVerdict(buckets=sum(counts.values()), **{each.value: counts.get(each, 0) for each in Verdict})


def report_of(*, summary: BacktestSummary, **given: Any) -> BacktestReport:
    """Return the report of a document, whose counts are those of its verdicts."""
    return BacktestReport(judged=summary.quotas, **given)


BACKTEST: Final = Document(
    cls=BacktestReport,
    name="backtest",
    title="kafka-quotas backtest",
    codec=VALUES.extended(
        {
            BacktestReport: row(
                "cluster summary rules provenance verdicts unjudged unused notes findings situation?",
                summary=summary_of_report,
                build=report_of,
            ),
            Advice: row("recommended recommended_reason=reason safe margin"),
            BucketVerdict: row(
                "bucket=name key broker *limits changed verdict reason *recorded *replay? *over *peak headroom *advice undecided "
                "rates metrics"
            ),
            Coverage: row("broker requests from=start to=end minutes minutes_missing first_missing"),
            PeakRate: row("peak=rate peak_bound=bound"),
            Provenance: row(
                "source form files semantics from=start to=end coverage requests series throttled_then not_charged "
                "observations unreadable current_known assumptions spark?"
            ),
            RecordedGroup: row("requests uncharged censored members"),
            ReplayCounts: row("throttled_before=before throttled_after=throttled refused"),
            RowLimits: row(
                "entity limit_before=lowest_before limits_before=before limit_after=after entities_before buckets_before"
            ),
            RuleOutcome: row("rule=words reason *span? failed unjudged"),
            SecondsOver: row(
                "active_seconds=active seconds_certain=certain seconds_over=seconds seconds_possible=possible "
                "seconds_over_before=before share_over=share first longest_s longest_from"
            ),
        }
    ),
    called="a backtest report written by 'backtest --format json'",
)
