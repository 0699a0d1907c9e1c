"""What recorded traffic shows of every declared quota, and of the proposed ones: one opened traffic, judged twice."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from reconciler.features.manifest_edits import clusters_of_values
from reconciler.features.rightsizing.proposals import ChangeBounds, propose
from reconciler.features.rightsizing.sizing import ChangedOutcome, QuotaUse, SizedQuota, Sizing, judge_use
from reconciler.manifest import SizingRules
from reconciler.model import (
    DEFAULT,
    BacktestReport,
    BucketVerdict,
    CurrentState,
    Entity,
    ManifestCommit,
    Provenance,
    QuotaKey,
    Span,
    Verdict,
)
from reconciler.ports import Progress
from reconciler.text import count_of
from reconciler.traffic import Backtest, broker_loss_factor, doubt_of_history
from reconciler.workflows import (
    BacktestOptions,
    Intent,
    backtest_request,
    divide_totals,
    fetch_samples,
    open_recorded,
    proposal_of,
    set_quotas,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingReport:
    """All declared quotas of a cluster, the worst first."""

    cluster: str | None
    """The name of the Cluster manifest."""
    history: Provenance
    """What was read."""
    rules: SizingRules
    """When a limit is changed."""
    quotas: tuple[SizedQuota, ...]
    """The worst first."""
    notes: tuple[str, ...] = ()
    """What to know about the traffic."""
    commit: ManifestCommit

    @property
    def proposed(self) -> tuple[SizedQuota, ...]:
        """The quotas whose values change."""
        return tuple(quota for quota in self.quotas if quota.is_proposed)


def size_cluster(
    intent: Intent,
    current: CurrentState | None,
    options: BacktestOptions,
    *,
    changed_at: Callable[[Span], datetime.datetime | None],
    progress: Progress,
) -> SizingReport:
    """Judge every declared quota of a cluster, and every proposed value by the same traffic.

    ``current``: the quotas that the cluster has now, if they are known. ``changed_at``: when the value at a place was written;
    ``None``: not known, or long ago. Raises what ``run_backtest`` raises.
    """
    if intent.desired.with_units:
        intent = divide_totals(intent, current)
    proposal = proposal_of(intent, current)
    options, notes = fetch_samples(proposal, options, progress=progress)
    request = replace(backtest_request(proposal, options), plots=0)
    in_effect = replace(request, current=None, in_effect=True, needs=replace(request.needs, hours=0.0))
    with open_recorded(proposal, options, by_seconds=not request.exact, progress=progress) as recorded:
        progress.step("judging the declared limits")
        report = Backtest(recorded, in_effect).report()
        history = report.provenance
        shared = clusters_of_values(intent.loaded, but=intent.spec.name)
        bounds = ChangeBounds(intent=intent, end=history.end, shared=shared, changed_at=changed_at)
        missing = doubt_of_history(history, in_effect.needs)
        quotas = propose(_judged(intent, report, missing, calls_back=in_effect.calls_back), bounds)
        if changes := _changes(quotas):
            progress.step("judging the proposed limits")
            after = set_quotas(proposal, changes)
            changed = replace(in_effect, current=proposal.proposed, proposed=after.proposed, declared=after.declared)
            quotas = _with_outcomes(quotas, Backtest(recorded, changed).report())
    unread = history.unreadable.lines
    return SizingReport(
        cluster=intent.spec.name,
        history=history,
        rules=intent.loaded.repository.rightsize,
        quotas=tuple(sorted(quotas, key=lambda quota: quota.urgency)),
        notes=(*notes, *report.notes, *([f"{count_of(unread, 'row')} of the history cannot be read"] if unread else [])),
        commit=proposal.commit,
    )


def _judged(intent: Intent, report: BacktestReport, missing: str | None, *, calls_back: bool) -> list[SizedQuota]:
    history = report.provenance
    uses = quota_uses(report, calls_back=calls_back, brokers=history.brokers)
    rules, excluded = intent.loaded.repository.rightsize, _excluded(intent)
    unknown = QuotaUse(doubt="a quota callback decides which quota limits a client" if calls_back else None)
    sized = []
    for entity, declared in intent.desired.entities.items():
        of_default = any(name is DEFAULT for _, name in entity.parts)
        for key, quota in declared.quotas.items():
            use = uses.get((entity, key), unknown)
            sizing, reason, value = judge_use(key, quota.value, use, history, rules, of_default=of_default, missing=missing)
            if entity in excluded:
                sizing, reason, value = Sizing.EXCLUDED, excluded[entity], None
            sized.append(
                SizedQuota(
                    entity=entity,
                    key=key,
                    limit=quota.value,
                    owner=declared.owner,
                    source=quota.source,
                    sizing=sizing,
                    reason=reason,
                    use=use,
                    value=value,
                )
            )
    return sized


def _excluded(intent: Intent) -> dict[Entity, str]:
    """The entities of entries with ``rightsize: never``, with their notes."""
    return {
        entry.declared.entity: entry.declared.note or ""
        for document in intent.loaded.documents
        if document.clusters is None or document.clusters.chooses(intent.spec)
        for entry in document.entries
        if not entry.rightsize
    }


def quota_uses(report: BacktestReport, *, calls_back: bool, brokers: int) -> dict[tuple[Entity, QuotaKey], QuotaUse]:
    """Return what the traffic shows of each declared quota with traffic, and of each that no client uses.

    ``report``: judged under the limits in effect, without earlier ones. ``brokers``: how many have recorded traffic.
    """
    rows: dict[tuple[Entity, QuotaKey], list[BucketVerdict]] = {}
    for row in report.verdicts:
        if row.limits.entity is not None and row.limits.after is not None and not calls_back:
            rows.setdefault((row.limits.entity, QuotaKey(row.key)), []).append(row)
    uses = {quota: _use(some, broker_loss_factor(quota[1], brokers)) for quota, some in rows.items()}
    for each in report.unused:
        uses.setdefault((each.entity, QuotaKey(each.key)), QuotaUse(unused=each.reason))
    return uses


def _use(rows: list[BucketVerdict], loss: float) -> QuotaUse:
    """Return what the rows show of the one quota that limits them.

    ``rows``: the worst first. ``loss``: the factor that the loss of a broker adds to each.
    """
    fullest = max(rows, key=_highest)
    unadvised = next((row for row in rows if row.advice.recommended is None), None)
    neediest = max(rows, key=lambda row: row.advice.recommended or 0.0)
    safe = [row.advice.safe for row in rows if row.advice.safe is not None]
    doubted = next((row for row in rows if _is_doubted(row)), None)
    return QuotaUse(
        groups=len({row.group for row in rows}),
        highest=_highest(fullest),
        fullest=fullest.name,
        needed=None if unadvised is not None else neediest.advice.recommended,
        tight=max(_highest(row) * (1 + row.advice.margin) / loss for row in rows),
        safe=max(safe) if len(safe) == len(rows) else None,
        reason=neediest.advice.reason if unadvised is None else unadvised.advice.reason or unadvised.reason,
        verdict=rows[0].verdict,
        over=max(row.over.share for row in rows),
        was_throttled=any(row.recorded.censored or row.recorded.throttled for row in rows),
        doubt=None if doubted is None else doubted.reason or "a request may have been throttled",
        first=min((row.recorded.first for row in rows if row.recorded.first is not None), default=None),
        last=max((row.recorded.last for row in rows if row.recorded.last is not None), default=None),
    )


def _highest(row: BucketVerdict) -> float:
    """The least limit that throttles nothing on this broker, or the highest sample where only metrics are known."""
    return row.peak.least_safe if row.metrics is None or row.recorded.requests else row.metrics.highest


def _is_doubted(row: BucketVerdict) -> bool:
    """Samples of metrics never prove that nothing was throttled. The margin of their recommended value is for that."""
    has_margin = row.metrics is not None and not row.recorded.requests and row.metrics.factor is not None
    return row.verdict is not Verdict.CLEAR and not (has_margin and row.verdict is Verdict.INCONCLUSIVE)


def _changes(quotas: Iterable[SizedQuota]) -> dict[Entity, dict[str, float]]:
    changes: dict[Entity, dict[str, float]] = {}
    for quota in quotas:
        if quota.value is not None and quota.left is None:
            changes.setdefault(quota.entity, {})[quota.key.value] = quota.value
    return changes


def _with_outcomes(quotas: Iterable[SizedQuota], report: BacktestReport) -> tuple[SizedQuota, ...]:
    outcomes: dict[tuple[Entity, str], ChangedOutcome] = {}
    for row in report.verdicts:
        if row.limits.entity is not None and row.changed:
            worst = outcomes.get((row.limits.entity, row.key)) or ChangedOutcome(verdict=row.verdict, reason=row.reason)
            outcomes[row.limits.entity, row.key] = replace(worst, over=max(worst.over, row.over.share))
    return tuple(
        replace(quota, outcome=outcomes.get((quota.entity, quota.key.value))) if quota.is_proposed else quota for quota in quotas
    )
