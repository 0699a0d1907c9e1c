"""Where the verdicts of a backtest come from, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model import Coverage, ExpectedBrokers, Form, Provenance, UnreadableLines
from reconciler.traffic.backtest_request import BacktestRequest
from reconciler.traffic.judging.history_gaps import add_gaps, holes_of, kind_assumptions
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.sources.normal_form import DUPLICATE
from reconciler.traffic.traffic_source import ReplayJudge, TrafficSource, gap_minutes


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
