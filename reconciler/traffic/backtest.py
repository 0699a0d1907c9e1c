"""The backtest: recorded traffic and two sets of quotas in, verdicts and where they come from out."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.collector import pause_collector
from reconciler.errors import TrafficError, UsageError
from reconciler.logs import timed_event
from reconciler.model import (
    BacktestReport,
    BucketVerdict,
    Coverage,
    ExpectedRecording,
    Finding,
    Form,
    JudgedQuotas,
    Provenance,
    RateSeries,
    RowPlace,
    UnjudgedChange,
    UnreadableLines,
    UnusedQuota,
    Verdict,
)
from reconciler.traffic.judging.by_seconds import Grid, Lines, groups_to_plot, rate_series
from reconciler.traffic.judging.exact import JudgedRequest, Work, smaller_account, targets_of_account
from reconciler.traffic.judging.findings import reason_findings, throttle_findings, unkept_findings, unkept_limits, with_unkept
from reconciler.traffic.judging.grouping import Series, Tables, group_series, groups_before, quota_tables
from reconciler.traffic.judging.history_gaps import SHORTEST_S, add_gaps, holes_of, kind_assumptions
from reconciler.traffic.judging.judged_quotas import (
    Quota,
    changed_quotas,
    judged_quotas,
    rows_of_quotas,
    unjudged_changes,
    unjudged_findings,
    unused_quotas,
)
from reconciler.traffic.judging.verdicts import (
    enrich_verdicts,
    is_changed,
    moment,
    target_numbers,
    target_verdicts,
    withhold_clear,
    worth_a_plot,
)
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kernels.second_sums import LONGEST_PROVEN_S, proves
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.request_traffic import RequestTraffic, TrafficSource
from reconciler.traffic.sources.normal_form import DUPLICATE
from reconciler.traffic.traffic_source import BacktestRequest, gap_minutes

_log: Final = logging.getLogger(__name__)


class Backtest:
    """One run: ``report`` judges, ``request_lines`` then gives every request."""

    @pause_collector()
    def __init__(self, recorded: TrafficSource, question: BacktestRequest) -> None:
        """Raise ``UsageError`` when single requests are asked about and not known."""
        if question.exact and not isinstance(recorded, RequestTraffic):
            raise UsageError("--exact needs single requests, and this traffic has per-second totals: leave --exact out")
        self._recorded = recorded
        self._question = question
        self._kinds = {client.kind for client in recorded.series}
        kinds = self._kinds | {gauge.series.kind for gauge in recorded.gauges}
        brokers = {client.broker for client in recorded.series}
        before, after = quota_tables(question.current, question.proposed, question.broker.rule, brokers, kinds)
        self._tables: Sequence[Tables] = (after,) if before is None else (before, after)
        with timed_event(_log, "clients grouped", clients=len(recorded.series)) as event:
            self._grouping = group_series(recorded.series, before, after)
            event |= {"targets": len(self._grouping.targets), "groups": len(self._grouping.groups)}
        self._accounted_twice: frozenset[int] = frozenset()
        """Numbers of targets whose traffic another target has, too."""
        if Kind.MUTATION in self._kinds and (of_controller := smaller_account(recorded.series)) is not None:
            self._accounted_twice = targets_of_account(self._grouping, of_controller=of_controller)
        self._holes: Mapping[int, Integers] = {}
        replays = isinstance(recorded, RequestTraffic) and (question.exact or not proves(question.broker.window))
        self._form = Form.EXACT if replays else Form.SECONDS

    @pause_collector()
    def report(self) -> BacktestReport:
        """Verdicts, unused quotas, findings and where they come from."""
        question, recorded, grouping = self._question, self._recorded, self._grouping
        form = self._form
        self._holes = recording_holes(recorded)
        provenance = provenance_of(question, recorded, form, self._holes)
        with timed_event(_log, "traffic judged", level=logging.INFO, form=form.value) as event:
            decided = self._decided()
            event["verdicts"] = len(decided)
        ways_of: Mapping[int, Mapping[str, str]] = {}
        if limited := {target: row for target, row in decided.items() if row.limits.after is not None}:
            ways_of = unkept_limits(limited, recorded.series, grouping, question.broker.window)
            decided |= {target: with_unkept(decided[target], ways) for target, ways in ways_of.items()}
        verdicts = enrich_verdicts(decided, grouping, provenance, question.needs)
        if question.plots:
            verdicts = self._plotted(verdicts)
        rows = rows_of_quotas(recorded.series, grouping, self._tables)
        of_metrics: Mapping[Quota, Collection[RowPlace]] = {}
        if recorded.gauges:
            evidence = recorded.evidence(question, self._tables, provenance)
            verdicts, of_metrics = evidence.merge_into(verdicts), evidence.rows
            for quota, places in of_metrics.items():
                rows.setdefault(quota, set()).update(places)
        unkept = {decided[target].place: ways for target, ways in ways_of.items()}
        is_doubted = unkept or any(row.verdict is not Verdict.CLEAR for row in verdicts)
        unused, unjudged, judged = self._of_quotas(verdicts, rows, of_metrics)
        is_unlimited = any(target.after.value is None for target in grouping.targets)
        assumed = assumptions_of(question, recorded, form, is_unlimited=is_unlimited)
        return BacktestReport(
            provenance=replace(provenance, series=len(recorded.series), assumptions=assumed),
            verdicts=verdicts,
            unjudged=unjudged,
            judged=judged,
            unused=unused,
            findings=(
                *(self._findings(verdicts, unkept) if is_doubted else ()),
                *(unjudged_findings(unjudged, question.sources) if unjudged else ()),
            ),
            notes=recorded.facts.notes,
        )

    def _of_quotas(
        self, verdicts: Sequence[BucketVerdict], rows: Mapping[Quota, Collection[RowPlace]], of_metrics: Collection[Quota]
    ) -> tuple[tuple[UnusedQuota, ...], tuple[UnjudgedChange, ...], JudgedQuotas | None]:
        """Return quotas without recorded clients, changes that were not judged, and how many of them were.

        ``rows``: by quota those whose clients it limits. ``of_metrics``: the quotas of clients of metrics.
        """
        question, recorded = self._question, self._recorded
        changed, kinds = changed_quotas(*question.change), self._kinds | {gauge.series.kind for gauge in recorded.gauges}
        if question.calls_back:
            # Which quota a callback computed a limit from is its own affair.
            unknown = {kind.key.value for kind in self._kinds - {Kind.CONNECTION}}
            changed = [quota for quota in changed if quota[1] not in unknown]
            return (), unjudged_changes(changed, rows, question.change, (), kinds), None
        unused = unused_quotas(recorded.series, self._grouping, self._tables[-1], of_metrics, question.declared)
        unjudged = unjudged_changes(changed, rows, question.change, unused, kinds)
        return unused, unjudged, judged_quotas(changed, rows, verdicts, unjudged)

    def _findings(self, verdicts: Sequence[BucketVerdict], unkept: Mapping[RowPlace, Mapping[str, str]]) -> Iterator[Finding]:
        """``verdicts``: worst first. ``unkept``: by row whose limit a broker does not keep, how."""
        sources = self._question.sources
        yield from throttle_findings(verdicts, sources, of_requests=isinstance(self._recorded, RequestTraffic))
        yield from unkept_findings(verdicts, unkept, sources)
        yield from reason_findings(verdicts)

    def _decided(self) -> dict[int, BucketVerdict]:
        source, grouping, question = self._recorded, self._grouping, self._question
        window = question.broker.window
        everything = isinstance(source, RequestTraffic) or question.unchanged
        wanted = set(range(len(grouping.groups))) if everything else self._touched()
        mutations = {number for number in wanted if grouping.groups[number].kind is Kind.MUTATION}
        if self._form is Form.EXACT and isinstance(source, RequestTraffic):
            judged = source.exactly(grouping, window)
        elif wanted - mutations and not proves(window):
            raise TrafficError(
                f"per-second totals prove nothing about {window.samples} samples of {window.sample_ms / 1000:g} s: "
                f"quota.window.num has to be above 1, and both together at most {LONGEST_PROVEN_S} s. Give single requests "
                "instead: logs, or the canonical traffic schema"
            )
        else:
            judged = source.by_seconds(grouping, wanted - mutations, window)
        verdicts = target_verdicts(judged, source.series, grouping, window, stated=source.facts.states_throttles)
        if mutations:
            verdicts |= source.mutations(grouping, mutations, question.broker.controller_window)
        if any(client.unplaced or client.uncounted for client in source.series):
            verdicts = withhold_clear(verdicts, wanted, source.series, grouping)
        return {target: verdict for target, verdict in verdicts.items() if target not in self._accounted_twice}

    def _touched(self) -> set[int]:
        """The groups of what changes; without known earlier quotas, of everything that is limited."""
        grouping = self._grouping
        changed = [index for index in range(len(grouping.targets)) if is_changed(index, grouping)]
        return {group for index in changed for group in (index, *groups_before(grouping, index))}

    def request_lines(self) -> Iterator[str]:
        """JSON lines, one a charged request under the proposed quotas, in the order of charging."""
        if not isinstance(self._recorded, RequestTraffic):
            raise TypeError("this traffic has no requests")
        broker = self._question.broker
        judged = self._recorded.requests(self._grouping, broker.window, broker.controller_window)
        twice = {member for target in self._accounted_twice for member in self._grouping.targets[target].members}
        for row in judged:
            if row.series not in twice:
                yield _request_line(row, self._recorded.series)

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
        """Return the rates of these verdicts over time, by place; none where whole seconds prove nothing."""
        recorded, grouping, window = self._recorded, self._grouping, self._question.broker.window
        if not shown or not proves(window):
            return {}
        number_of = target_numbers(grouping)
        # What only samples show has no seconds.
        targets = {place: number_of[place] for verdict in shown if (place := verdict.place) in number_of}
        groups = groups_to_plot(grouping, set(targets.values()))
        points = recorded.rates(grouping, groups, Lines(Work.of(grouping.groups, window), grid))
        brokers = {place: grouping.targets[target].broker for place, target in targets.items()}
        return {
            place: rate_series(grouping, target, points, grid, self._holes.get(brokers[place]))
            for place, target in targets.items()
        }


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
    """Return the holes of each broker's recording, as ``holes_of`` has them; none of a history that is too short for one."""
    facts = recorded.facts
    moments = [moment for part in facts.coverage for moment in (part.start, part.end)]
    if not facts.gaps and (not moments or (max(moments) - min(moments)).total_seconds() <= SHORTEST_S):
        return {}
    return holes_of(facts.coverage, recorded.minutes(), gap_minutes(facts.gaps) if facts.gaps else None)


def recorded_coverage(recorded: TrafficSource) -> tuple[Coverage, ...]:
    """Return what each broker's own recording has and lacks."""
    return add_gaps(recorded.facts.coverage, recording_holes(recorded))


def provenance_of(question: BacktestRequest, recorded: TrafficSource, form: Form, holes: Mapping[int, Integers]) -> Provenance:
    """Return the provenance without series and assumptions, which the judged rows show. ``holes``: from ``recording_holes``."""
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
        expected=ExpectedRecording(named=facts.named_brokers, in_cluster=question.brokers, request_step=facts.request_step),
        unreadable=UnreadableLines(lines=facts.unreadable, samples=facts.unreadable_samples),
        current_known=question.current is not None,
    )


def assumptions_of(question: BacktestRequest, recorded: TrafficSource, form: Form, *, is_unlimited: bool) -> tuple[str, ...]:
    """Return the assumptions of the verdicts, sentences without end marks. ``is_unlimited``: some quota group has no limit."""
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
    if recorded.gauges:
        assumptions.append(
            "a sample of a broker's own rate shows what the broker compares with a limit at that moment. Intervals of shares "
            f"take samples as independent, those closer than {window.expiry_ms / 1000:g} s as fewer. After a restart the first "
            f"{window.expiry_ms / 1000:g} s read low"
        )
    if question.current is not None and recorded.gauges:
        assumptions.append(
            "the current quotas were in effect when these samples were recorded: a series with a client-id alone is that "
            "client-id's quota group, a series with a user alone the user's"
        )
    if recorded.series and form is Form.SECONDS:
        assumptions.append(
            "judged from per-second totals: a second is certainly over, possibly over or clear, whatever the requests in it"
            f"{'. --exact judges every request' if isinstance(recorded, RequestTraffic) else ''}"
        )
    elif recorded.series:
        assumptions.append(
            f"a fetch carries at most {window.fetch_cap(1)} seconds of its limit, as a broker asks no more of its log"
        )
    assumptions.append(f"log times without an offset are in {question.log_timezone}")
    if any(client.kind not in BYTES for client in recorded.series):
        assumptions += kind_assumptions(
            recorded.series,
            question.proposed,
            window,
            broker.controller_window,
            of_requests=isinstance(recorded, RequestTraffic),
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
