"""The backtest: recorded traffic and two sets of quotas in, verdicts out."""

from __future__ import annotations

import datetime
import functools
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.collector import pause_collector
from reconciler.logs import timed_event
from reconciler.model import (
    CONTROLLER,
    BacktestReport,
    BucketVerdict,
    Coverage,
    Entity,
    Form,
    HistoryNeeds,
    JudgedQuotas,
    Provenance,
    RateSeries,
    RowPlace,
    Span,
    UnjudgedChange,
    UnusedQuota,
)
from reconciler.resolution import QuotaTable
from reconciler.traffic.judging.by_seconds import Grid, Lines, groups_to_plot, rate_series
from reconciler.traffic.judging.exact import JudgedRequest
from reconciler.traffic.judging.findings import UnkeptLimits, report_findings, throttle_findings
from reconciler.traffic.judging.grouping import (
    BrokerRule,
    Grouping,
    Series,
    Tables,
    has_unlimited,
    quota_tables,
)
from reconciler.traffic.judging.history_gaps import add_gaps, holes_of, kind_assumptions
from reconciler.traffic.judging.judged_quotas import (
    changed_quotas,
    judged_quotas,
    rows_of_quotas,
    unjudged_changes,
    unjudged_findings,
    unused_quotas,
)
from reconciler.traffic.judging.mean_verdicts import MeanVerdicts, judge_means
from reconciler.traffic.judging.metric_advice import recommend_from_metrics
from reconciler.traffic.judging.mutations import smaller_account
from reconciler.traffic.judging.recommendations import capacity_uses, quota_fits
from reconciler.traffic.judging.verdicts import (
    enrich_verdicts,
    moment,
    target_numbers,
    worth_a_plot,
)
from reconciler.traffic.judging.violation_verdicts import judge_violations
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Integers, Window
from reconciler.traffic.kernels.second_sums import proves
from reconciler.traffic.kinds import Kind
from reconciler.traffic.quota_groups import QuotaGroups
from reconciler.traffic.recording_gaps import gap_minutes
from reconciler.traffic.sources.normal_form import DUPLICATE
from reconciler.traffic.traffic_source import (
    RequestSource,
    TrafficSource,
)
from reconciler.traffic.violation_traffic import ViolationTraffic

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """What is asked: the quotas before (``None``: not known) and after, and which broker is modelled."""

    current: QuotaTable | None
    proposed: QuotaTable
    declared: QuotaTable
    """The part of ``proposed`` that manifests declare. Unused quotas are reported of this part."""
    sources: Mapping[tuple[Entity, str], Span] = field(default_factory=dict)
    window: Window = DEFAULT_WINDOW
    controller_window: Window = DEFAULT_WINDOW
    """``controller.quota.window.num`` and ``.size.seconds``: a token bucket has at most so many seconds of its limit."""
    settings_from: str = "Kafka's defaults"
    """Where the two windows' settings were taken from."""
    rule: BrokerRule = field(default_factory=BrokerRule)
    version_from: str = "no Kafka version was given"
    log_timezone: str = "UTC"
    exact: bool = False
    """Judge every request, where they are known."""
    unchanged: bool = False
    """Judge limits that stay, too, also where only per-second totals are known."""
    in_effect: bool = False
    """The proposed quotas are those that were in effect when the traffic was recorded."""
    needs: HistoryNeeds = field(default_factory=lambda: HistoryNeeds(hours=0.0))
    """How much history a clear verdict needs. Built in: any length, since the length to ask for is a matter of policy."""
    capacity: Mapping[str, float] = field(default_factory=dict)
    """What one broker can do, by quota key."""
    brokers: tuple[int, ...] = ()
    """Ids of the cluster's brokers when its quotas were read; empty: not known."""
    plots: int = 0
    """Of how many buckets, the worst ones, the rate over time is wanted."""


class Backtest:
    """One run: ``report`` judges, ``request_lines`` then gives every request."""

    @pause_collector()
    def __init__(self, recorded: TrafficSource, question: BacktestRequest) -> None:
        self._recorded = recorded
        self._question = question
        brokers = {member.broker for member in recorded.series}
        before, after = quota_tables(question.current, question.proposed, question.rule, brokers)
        self._tables: tuple[Tables, ...] = (after,) if before is None else (before, after)
        self._groups = QuotaGroups(recorded, before, after, of_controller=smaller_account(recorded.series))
        self._grouping = self._groups.grouping

    @property
    def grouping(self) -> Grouping:
        """The quota groups of the traffic's clients."""
        return self._grouping

    @property
    def reported_targets(self) -> tuple[int, ...]:
        """The numbers of the targets whose traffic is not accounted for in another one."""
        return self._groups.reported_targets

    @pause_collector()
    def report(self) -> BacktestReport:
        """Verdicts, unused quotas, findings and where they come from."""
        question, series = self._question, self._recorded.series
        with timed_event(_log, "traffic judged", level=logging.INFO) as event:
            form, decided = self._groups.judge(
                question.window, question.controller_window, exact=question.exact, unchanged=question.unchanged
            )
            event |= {"form": form.value, "verdicts": len(decided)}
        provenance = self._with_gaps(
            provenance_of(question, self._recorded, form, series=len(series), is_unlimited=has_unlimited(self._grouping))
        )
        unkept = UnkeptLimits.of(series, self._grouping, question.window)
        enriched = enrich_verdicts(unkept.verdicts(decided), self._grouping, provenance, question.needs)
        means = self._of_means(provenance)
        of_requests = self._plotted(enriched)
        verdicts = means.merge_into(of_requests)
        capacity = capacity_uses(self._grouping, question.capacity)
        # Which quota a callback computed a limit from is its own affair.
        unused = () if question.rule.callback else unused_quotas(series, question.declared, question.proposed)
        unjudged = tuple(change for change in self._unjudged(unused) if (change.entity, change.key) not in means.rows)
        return BacktestReport(
            provenance=provenance,
            verdicts=verdicts,
            unjudged=unjudged,
            judged=self._judged_quotas(means, verdicts, unjudged),
            unused=tuple(quota for quota in unused if (quota.entity, quota.key) not in means.rows),
            findings=(
                *throttle_findings(verdicts, question.sources, of_requests=isinstance(self._recorded, RequestSource)),
                *unkept.findings(of_requests, self._grouping, question.sources),
                *report_findings(verdicts, capacity),
                *unjudged_findings(unjudged, question.sources),
            ),
            # Means do not show how full a quota group is most of the time.
            fits=quota_fits(of_requests, source=provenance.source),
            capacity=capacity,
        )

    def request_lines(self) -> Iterator[str]:
        """JSON lines, one a charged request under the proposed quotas, in the order of charging."""
        if not isinstance(self._recorded, RequestSource):
            raise TypeError("this traffic has no requests")
        question = self._question
        judged = self._recorded.requests(self._grouping, question.window, question.controller_window)
        grouping = self._grouping
        twice = {member for target in self._groups.accounted_twice for member in grouping.targets[target].members}
        for row in judged:
            if row.series not in twice:
                yield _request_line(row, self._recorded.series)

    @functools.cached_property
    def _holes(self) -> Mapping[int, Integers]:
        recorded = self._recorded
        return holes_of(recorded.facts.coverage, recorded.minutes(), gap_minutes(recorded.facts.gaps))

    def _of_means(self, provenance: Provenance) -> MeanVerdicts:
        question, after = self._question, self._tables[-1]
        before = self._tables[0] if len(self._tables) > 1 else None
        recorded = self._recorded
        if isinstance(recorded, ViolationTraffic):
            return judge_violations(recorded.throttles, before, after, in_effect=question.in_effect)
        of_then = after if before is None and question.in_effect else before
        judged = judge_means(recorded.means, of_then, after, question.window, recorded.sample_counts)
        brokers = sum(coverage.broker != CONTROLLER for coverage in provenance.coverage)
        days = (provenance.end - provenance.start).total_seconds() / 86_400
        advised = recommend_from_metrics(judged.verdicts, incomplete=judged.incomplete, days=days, brokers=brokers)
        return replace(judged, verdicts=advised)

    def _unjudged(self, unused: Sequence[UnusedQuota]) -> tuple[UnjudgedChange, ...]:
        question = self._question
        quotas = question.current, question.proposed if question.current is not None else question.declared
        callback = question.rule.callback is not None
        recorded = self._recorded
        kinds = {member.kind for member in (*recorded.series, *(mean.series for mean in recorded.means))}
        return unjudged_changes(recorded.series, self._grouping, () if callback else self._tables, quotas, unused, kinds)

    def _judged_quotas(
        self, means: MeanVerdicts, verdicts: Sequence[BucketVerdict], unjudged: Sequence[UnjudgedChange]
    ) -> JudgedQuotas | None:
        """``None`` where a quota callback decides: which entity it takes a limit from is not known."""
        question = self._question
        if question.rule.callback is not None:
            return None
        rows = rows_of_quotas(self._recorded.series, self._grouping, self._tables)
        for quota, places in means.rows.items():
            rows.setdefault(quota, set()).update(places)
        after = question.declared if question.current is None else question.proposed
        return judged_quotas(changed_quotas(question.current, after), rows, verdicts, unjudged)

    def _with_gaps(self, provenance: Provenance) -> Provenance:
        return replace(provenance, coverage=add_gaps(provenance.coverage, self._holes))

    def _plotted(self, verdicts: Sequence[BucketVerdict]) -> tuple[BucketVerdict, ...]:
        """The worst ones with their rates over time, where cells of whole seconds can give them."""
        shown = worth_a_plot(verdicts, self._question.plots)
        series = self.rates(shown, Grid.over(self._recorded.facts.coverage)) if shown else {}
        return tuple(
            verdict if (of_time := series.get(verdict.place)) is None else replace(verdict, rates=of_time) for verdict in verdicts
        )

    def rates(self, shown: Sequence[BucketVerdict], grid: Grid) -> dict[RowPlace, RateSeries | None]:
        """By place the rates of these verdicts over time; nothing where whole seconds prove nothing."""
        recorded, grouping, window = self._recorded, self._grouping, self._question.window
        if not shown or not proves(window):
            return {}
        number_of = target_numbers(grouping)
        # What only means show has no seconds.
        targets = {place: number_of[place] for verdict in shown if (place := verdict.place) in number_of}
        groups = groups_to_plot(grouping, set(targets.values()))
        points = recorded.rates(grouping, groups, Lines.of(grouping, window, grid))
        brokers = {place: grouping.targets[target].broker for place, target in targets.items()}
        return {
            place: rate_series(grouping, target, points, grid, self._holes.get(brokers[place]))
            for place, target in targets.items()
        }


def recorded_coverage(recorded: TrafficSource) -> tuple[Coverage, ...]:
    """What each broker's own recording has and lacks."""
    facts = recorded.facts
    return add_gaps(facts.coverage, holes_of(facts.coverage, recorded.minutes(), gap_minutes(facts.gaps)))


def provenance_of(
    question: BacktestRequest, recorded: TrafficSource, form: Form, *, series: int, is_unlimited: bool
) -> Provenance:
    """``series``: their number. ``is_unlimited``: some quota group has no limit."""
    facts = recorded.facts
    return Provenance(
        source=facts.source,
        form=form,
        files=facts.files,
        semantics=f"Kafka {question.window.era.value}",
        start=min(coverage.start for coverage in facts.coverage),
        end=max(coverage.end for coverage in facts.coverage),
        coverage=facts.coverage,
        requests=facts.requests,
        series=series,
        throttled_then=facts.throttled_then,
        not_charged=facts.not_charged,
        observations=facts.observations,
        named_brokers=facts.named_brokers,
        cluster_brokers=question.brokers,
        request_step=facts.request_step,
        unreadable=facts.unreadable,
        unreadable_samples=facts.unreadable_samples,
        current_known=question.current is not None,
        assumptions=_assumptions(question, recorded, form, is_unlimited=is_unlimited),
    )


def _assumptions(question: BacktestRequest, recorded: TrafficSource, form: Form, *, is_unlimited: bool) -> tuple[str, ...]:
    window, facts = question.window, recorded.facts
    assumptions = [
        (
            f"brokers work as Kafka {window.era.value} ({question.version_from}), with {window.samples} samples of "
            f"{window.sample_ms / 1000:g} s (quota.window.num and quota.window.size.seconds from {question.settings_from})"
        ),
        (
            "open loop: every request arrives when it was recorded, although a throttled client would have sent later. So "
            "throttled seconds are counted, and throttle times are never added up"
        ),
        *question.rule.assumptions(is_unlimited=is_unlimited),
        "broker clocks are as their logs show, to the millisecond",
    ]
    if isinstance(recorded, ViolationTraffic):
        assumptions.append(
            "a violation log has throttles and no traffic. A line proves that the quotas of that time throttled its quota group, "
            "and they are taken to be the current ones. It judges no changed limit, and a time without a line proves nothing"
        )
    if recorded.means:
        assumptions.append(
            "a sample of a broker's own rate shows what the broker compares with a limit at that moment. Intervals of shares "
            f"take samples as independent, those closer than {window.expiry_ms / 1000:g} s as fewer. After a restart the first "
            f"{window.expiry_ms / 1000:g} s read low. An average over a time shows no short throttle"
        )
    if question.current is not None and any(mean.is_gauge for mean in recorded.means):
        assumptions.append(
            "the current quotas were in effect when these samples were recorded: a series with a client-id alone is that "
            "client-id's quota group, a series with a user alone the user's"
        )
    if recorded.series and form is Form.SECONDS:
        assumptions.append(
            "judged from sums of whole seconds: a second is certainly over, possibly over or clear, whatever the requests in it"
            f"{'. --exact judges every request' if isinstance(recorded, RequestSource) else ''}"
        )
    elif recorded.series:
        assumptions.append(
            f"a fetch carries at most {window.fetch_cap(1)} seconds of its limit, as a broker asks no more of its log"
        )
    assumptions.append(f"log times without an offset are in {question.log_timezone}")
    assumptions += kind_assumptions(
        recorded.series,
        question.proposed,
        window,
        question.controller_window,
        of_requests=isinstance(recorded, RequestSource),
        source=facts.source,
    )
    if copies := facts.not_charged.get(DUPLICATE):
        assumptions.append(
            f"{copies} lines have the connection, number and time of another line (copied or repeated logs): counted once"
        )
    if question.current is None:
        assumptions.append("the current quotas are not known (no snapshot was given): nothing is compared with them")
    if facts.throttled_then:
        assumptions.append(
            f"quotas throttled {facts.throttled_then:,} requests of this history when it was recorded. What a quota refused has "
            "no size. Peaks, safe and recommended values of these clients are lower bounds"
        )
    return tuple(assumptions)


def _request_line(row: JudgedRequest, series: Sequence[Series]) -> str:
    client = series[row.series]
    unit = client.kind.amounts_a_unit
    at = moment(row.ts_us)
    document: dict[str, object] = {
        "ts": at.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "broker": client.broker,
        "connection": row.connection,
        "correlation_id": row.correlation_id,
        "user": client.user,
        "client_id": client.client_id,
        "key": client.kind.key.value,
        "amount": row.amount,
        "rate": None if row.rate is None else row.rate / unit,
        "limit": None if row.limit is None else row.limit / unit,
        "throttle_ms": row.throttle_ms,
        "recorded_throttle_ms": row.recorded_throttle_ms,
    }
    if client.kind is Kind.CONNECTION:
        document |= {"user": None, "client_id": None, "ip": client.ip}
    if row.refused is not None:
        document["refused"] = row.refused
    return json.dumps(document, ensure_ascii=True)
