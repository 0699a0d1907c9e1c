"""The backtest: recorded traffic and two sets of quotas in, verdicts and where they come from out."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.collector import pause_collector
from reconciler.model import (
    BacktestReport,
    BucketVerdict,
    Coverage,
    ExpectedBrokers,
    Form,
    GroupCounts,
    Provenance,
    RateSeries,
    RowPlace,
    UnreadableLines,
)
from reconciler.traffic.judging.by_seconds import Grid, Lines, SecondsLimits, groups_to_plot, rate_series
from reconciler.traffic.judging.exact import JudgedRequest, smaller_account
from reconciler.traffic.judging.findings import capacity_findings, reason_findings, throttle_findings, unkept_findings
from reconciler.traffic.judging.grouping import Grouping, Series, quota_tables
from reconciler.traffic.judging.history_gaps import add_gaps, holes_of, kind_assumptions
from reconciler.traffic.judging.judged_quotas import (
    changed_quotas,
    judged_quotas,
    unjudged_changes,
    unjudged_findings,
    unused_quotas,
)
from reconciler.traffic.judging.recommendations import quota_fits
from reconciler.traffic.judging.verdicts import moment, target_numbers, worth_a_plot
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kernels.second_sums import proves
from reconciler.traffic.kinds import Kind
from reconciler.traffic.quota_groups import QuotaGroups, ReportParts, form_of
from reconciler.traffic.sources.normal_form import DUPLICATE
from reconciler.traffic.traffic_source import BacktestRequest, ReplayJudge, RequestSource, TrafficSource, gap_minutes


class Backtest:
    """One run: ``report`` judges, ``request_lines`` then gives every request."""

    @pause_collector()
    def __init__(self, recorded: TrafficSource, question: BacktestRequest) -> None:
        self._recorded = recorded
        self._question = question
        brokers = {member.broker for member in recorded.series}
        tables = quota_tables(question.current, question.proposed, question.broker.rule, brokers)
        self._groups = QuotaGroups(recorded, *tables, of_controller=smaller_account(recorded.series))
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
        question, recorded = self._question, self._recorded
        form = form_of(question, has_requests=isinstance(recorded, ReplayJudge))
        provenance = provenance_of(question, recorded, form, self._holes)
        rows = self._plotted(self._groups.judge(question, provenance))
        evidence = recorded.evidence(question, self._groups.tables, provenance)
        verdicts = evidence.merge_into(rows)
        parts = ReportParts.of(verdicts, self._groups, question, evidence.rows)
        return report_of(question, recorded, provenance, parts, verdicts)

    def request_lines(self) -> Iterator[str]:
        """JSON lines, one a charged request under the proposed quotas, in the order of charging."""
        if not isinstance(self._recorded, RequestSource):
            raise TypeError("this traffic has no requests")
        broker = self._question.broker
        judged = self._recorded.requests(self._grouping, broker.window, broker.controller_window)
        grouping = self._grouping
        twice = {member for target in self._groups.accounted_twice for member in grouping.targets[target].members}
        for row in judged:
            if row.series not in twice:
                yield _request_line(row, self._recorded.series)

    @functools.cached_property
    def _holes(self) -> Mapping[int, Integers]:
        return recording_holes(self._recorded)

    def _plotted(self, verdicts: Sequence[BucketVerdict]) -> tuple[BucketVerdict, ...]:
        """The worst ones with their rates over time, where cells of whole seconds can give them."""
        shown = worth_a_plot(verdicts, self._question.plots)
        if not shown:
            return tuple(verdicts)
        series = self.rates(shown, Grid.over(self._recorded.facts.coverage))
        return tuple(
            verdict if (of_time := series.get(verdict.place)) is None else replace(verdict, rates=of_time) for verdict in verdicts
        )

    def rates(self, shown: Sequence[BucketVerdict], grid: Grid) -> dict[RowPlace, RateSeries | None]:
        """By place the rates of these verdicts over time; nothing where whole seconds prove nothing."""
        recorded, grouping, window = self._recorded, self._grouping, self._question.broker.window
        if not shown or not proves(window):
            return {}
        number_of = target_numbers(grouping)
        # What only means show has no seconds.
        targets = {place: number_of[place] for verdict in shown if (place := verdict.place) in number_of}
        groups = groups_to_plot(grouping, set(targets.values()))
        points = recorded.rates(grouping, groups, Lines(SecondsLimits.of(grouping.groups, window), grid))
        brokers = {place: grouping.targets[target].broker for place, target in targets.items()}
        return {
            place: rate_series(grouping, target, points, grid, self._holes.get(brokers[place]))
            for place, target in targets.items()
        }


def report_of(
    question: BacktestRequest,
    recorded: TrafficSource,
    provenance: Provenance,
    parts: ReportParts,
    verdicts: Sequence[BucketVerdict],
) -> BacktestReport:
    """The report of all shards together. ``verdicts``: all rows, or the worst."""
    unused = () if question.calls_back else unused_quotas(parts.used, question.declared)
    kinds = {client.kind for client in (*recorded.series, *(mean.series for mean in recorded.means))}
    unjudged = unjudged_changes(parts.limiting, question.change, unused, kinds)
    capacity = tuple(use for _, use in sorted(parts.capacity.items()))
    judged = None if question.calls_back else judged_quotas(changed_quotas(*question.change), parts.states, unjudged)
    assumed = assumptions_of(question, recorded, provenance.form, is_unlimited=parts.is_unlimited)
    return BacktestReport(
        provenance=replace(provenance, series=parts.series, assumptions=assumed),
        verdicts=tuple(verdicts),
        group_counts=None if len(verdicts) == parts.rows else GroupCounts.of_groups(parts.groups, rows=parts.rows),
        unjudged=unjudged,
        judged=judged,
        unused=unused,
        findings=(
            *throttle_findings(parts.hits, question.sources, of_requests=isinstance(recorded, ReplayJudge)),
            *unkept_findings(parts.unkept, question.sources),
            *reason_findings(parts.reasons),
            *capacity_findings(capacity),
            *unjudged_findings(unjudged, question.sources),
        ),
        fits=quota_fits(parts.limited, source=provenance.source),
        capacity=capacity,
        notes=recorded.facts.notes,
    )


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


def recording_holes(recorded: TrafficSource) -> dict[int, Integers]:
    """By broker the holes of its recording, as ``holes_of`` has them."""
    facts = recorded.facts
    return holes_of(facts.coverage, recorded.minutes(), gap_minutes(facts.gaps))


def recorded_coverage(recorded: TrafficSource) -> tuple[Coverage, ...]:
    """What each broker's own recording has and lacks."""
    return add_gaps(recorded.facts.coverage, recording_holes(recorded))


def provenance_of(question: BacktestRequest, recorded: TrafficSource, form: Form, holes: Mapping[int, Integers]) -> Provenance:
    """Without the number of series and assumptions, which only judged shards show. ``holes``: from ``recording_holes``."""
    facts = recorded.facts
    return Provenance(
        source=facts.source,
        form=form,
        files=facts.files,
        semantics=f"Kafka {question.broker.window.era.value}",
        coverage=add_gaps(facts.coverage, holes),
        requests=facts.requests,
        series=0,
        throttled_then=facts.throttled_then,
        not_charged=facts.not_charged,
        observations=facts.observations,
        expected=ExpectedBrokers(named=facts.named_brokers, in_cluster=question.brokers),
        request_step=facts.request_step,
        unreadable=UnreadableLines(lines=facts.unreadable, samples=facts.unreadable_samples),
        current_known=question.current is not None,
    )


def assumptions_of(question: BacktestRequest, recorded: TrafficSource, form: Form, *, is_unlimited: bool) -> tuple[str, ...]:
    """What the verdicts rest on, as sentences without their end marks. ``is_unlimited``: some quota group has no limit."""
    broker, facts = question.broker, recorded.facts
    window = broker.window
    assumptions = [
        (
            f"brokers work as Kafka {window.era.value} ({broker.version_from}), with {window.samples} samples of "
            f"{window.sample_ms / 1000:g} s (quota.window.num and quota.window.size.seconds from {broker.settings_from})"
        ),
        (
            "open loop: every request arrives when it was recorded, although a throttled client would have sent later. So "
            "throttled seconds are counted, and throttle times are never added up"
        ),
        *broker.rule.assumptions(is_unlimited=is_unlimited),
        "broker clocks are as their logs show, to the millisecond",
    ]
    assumptions += facts.assumptions
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
            f"{'. --exact judges every request' if isinstance(recorded, ReplayJudge) else ''}"
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
        broker.controller_window,
        of_requests=isinstance(recorded, ReplayJudge),
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
