"""A backtest in another situation: recorded traffic on other brokers, or more of it, judged under the quotas of then."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from reconciler.errors import FileAccessError, UsageError
from reconciler.logs import timed_event
from reconciler.manifest import compute_units
from reconciler.model import (
    CONTROLLER,
    BacktestReport,
    BrokerFacts,
    BrokerLoad,
    BrokerShare,
    BucketName,
    BucketVerdict,
    CurrentState,
    Entity,
    LeaderSpread,
    RecordedBrokers,
    SimulatedLimit,
    Simulation,
    Standings,
    StandingVerdict,
    Verdict,
    escaped,
    group_verdicts,
    in_order,
    worst_of_buckets,
)
from reconciler.planning import (
    BrokerChange,
    moved_leaders,
    parse_leaders,
    same_brokers,
    with_broker_count,
    with_leaders,
    without_brokers,
)
from reconciler.ports import Progress
from reconciler.text import count_of
from reconciler.workflows.backtest import (
    BacktestOptions,
    Proposal,
    apply_rules,
    backtest_request,
    callback_notes,
    fetch_samples,
    open_recorded,
    proposal_of,
    proposal_of_settings,
    set_quotas,
)
from reconciler.workflows.intent import Intent
from reconciler.workflows.load import adjusted, stop_on
from reconciler.workflows.units import needs_leaders

if TYPE_CHECKING:
    from reconciler.traffic import Backtest, BacktestRequest, Series, TrafficSource

_log: Final = logging.getLogger(__name__)
_ONE_BROKER: Final = (0,)
_WORST_FIRST: Final = (Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR)
_OVER: Final = (Verdict.THROTTLED, Verdict.POSSIBLE)
_Client: TypeAlias = "tuple[str, str | None, str | None, str | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What differs from the recorded history. At most one of ``brokers``, ``without`` and ``leaders``."""

    brokers: int | None = None
    without: tuple[int, ...] = ()
    leaders: Path | None = None
    factor: float = 1.0
    settings: Mapping[Entity, Mapping[str, float]] = field(default_factory=dict)

    @property
    def is_given(self) -> bool:
        """Whether the traffic differs."""
        return self.brokers is not None or bool(self.without) or self.leaders is not None or self.factor != 1.0

    def require_one_way(self) -> None:
        """Raise ``UsageError`` when two ways of changing brokers are given."""
        ways = [
            name
            for name, given in (
                ("--brokers", self.brokers is not None),
                ("--without-broker", bool(self.without)),
                ("--leaders", self.leaders is not None),
            )
            if given
        ]
        if len(ways) > 1:
            raise UsageError(f"{ways[0]} and {ways[1]} exclude each other. Give one of them")


def run_situation(
    request: Situation,
    intent: Intent | None,
    current: CurrentState | None,
    options: BacktestOptions,
    *,
    progress: Progress | None = None,
) -> BacktestReport:
    """The report about the changed history, with the situation in ``simulation``. Quotas are judged as they then are.

    ``intent``: ``None`` without manifests. Raises ``UsageError``, also for a change that the history does not allow,
    ``MissingDependencyError``, ``TrafficError``, ``UntrustedError``, and ``FileAccessError`` for a file of leaders that cannot be
    used.
    """
    from reconciler.traffic import Backtest, TrafficMoves, move_traffic, recorded_coverage, require_arrow

    require_arrow()
    # Which brokers there are is known when the history is open. Which kinds have a limit does not depend on it.
    about = _proposal(request, intent, current, _ONE_BROKER)
    options, notes = fetch_samples(about, options, progress=progress)
    with open_recorded(about, options, progress=progress) as recorded:
        change = _broker_change(request, recorded, about.brokers)
        leaders = moved_leaders(about.leaders, change) if about.leaders is not None else None
        then = replace(_proposal(request, intent, current, change.after, leaders), leaders=leaders)
        today = current.entities if current is not None else _proposal(None, intent, None, change.before).proposed
        proposal = replace(then, current=today, notes=(*then.notes, *notes), brokers=())
        question = replace(backtest_request(proposal, options), unchanged=True)
        standing = backtest_request(replace(proposal, leaders=about.leaders), options).broker
        proposal = replace(proposal, notes=(*proposal.notes, *callback_notes(proposal, question, options)))
        moves = TrafficMoves(
            shares=change.shares,
            factor=request.factor,
            also=change.after if change.stands_for is not None else (),
        )
        moved = move_traffic(recorded, moves)
        if progress is not None:
            progress.step("judging")
        with timed_event(_log, "simulation judged", brokers=list(change.after), factor=request.factor):
            run = Backtest(moved, question)
            report = run.report()
            texts = _texts(intent, change.after, leaders, request)
            kept = _kept_totals(then.proposed, today, texts)
            at_once = None if kept is None else Backtest(moved, replace(question, proposed=kept)).report()
        after_apply = report
        if at_once is not None:
            report = _worse_of(at_once, after_apply)
        recording = recorded_coverage(recorded)
        simulation = Simulation(
            title=_title(request, change),
            assumptions=tuple(_assumptions(request, intent, change, moved)),
            brokers_before=change.before,
            brokers_after=change.after,
            factor=request.factor,
            spread=change.spread,
            leaders_file=None if request.leaders is None else str(request.leaders),
            shares=tuple(
                BrokerShare(source=source, target=target, share=share)
                for source, row in sorted(change.shares.items())
                for target, share in row
            ),
            stands_for=change.stands_for,
            recorded=RecordedBrokers(
                brokers=tuple(part.broker for part in recording if part.broker != CONTROLLER),
                gaps=tuple(words for part in recording if (words := part.gap_words) is not None),
            ),
            limits=_limits(today, then.proposed, texts),
            loads=tuple(_loads(recorded, moved, change)),
            standings=Standings(
                today=_today(report, run, recorded, replace(question, broker=standing), moved),
                at_once=_standings(at_once, texts),
                after_apply=_standings(after_apply if at_once is not None else None, texts),
            ),
        )
    return apply_rules(replace(report, simulation=simulation), proposal)


def _broker_change(request: Situation, recorded: TrafficSource, known: Collection[int]) -> BrokerChange:
    brokers = {part.broker for part in recorded.facts.coverage if part.broker != CONTROLLER} | set(known)
    if request.brokers is not None:
        return with_broker_count(brokers, request.brokers)
    if request.without:
        return without_brokers(brokers, set(request.without))
    if request.leaders is not None:
        return with_leaders(
            brokers, parse_leaders(_text_of(request.leaders), name=str(request.leaders)), name=_shown(request.leaders)
        )
    return same_brokers(brokers)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FileAccessError(f"{escaped(str(path))} cannot be read: {reason}") from error


def _shown(path: Path) -> str:
    return escaped(path.name)


def _proposal(
    request: Situation | None,
    intent: Intent | None,
    current: CurrentState | None,
    brokers: tuple[int, ...],
    leaders: LeaderSpread | None = None,
) -> Proposal:
    """The quotas with totals divided among these brokers, and without a request without those of ``--set``.

    ``leaders``: of partitions; ``None``: those of the current state.
    """
    spread = leaders if leaders is not None or current is None else current.leaders
    proposal = proposal_of_settings({}, current) if intent is None else proposal_of(_at(intent, brokers, spread), current)
    return proposal if request is None else set_quotas(proposal, request.settings)


def _at(intent: Intent, brokers: tuple[int, ...], leaders: LeaderSpread | None) -> Intent:
    """As ``divide_totals``, for brokers that no cluster has. Raises ``ManifestError`` for totals that cannot be divided."""
    desired, wrong = compute_units(intent.desired, BrokerFacts(brokers=brokers, leaders=leaders))
    stop_on(in_order(adjusted(wrong, intent.loaded.repository.lint)), intent.fail_on)
    return replace(intent, desired=desired)


def _title(request: Situation, change: BrokerChange) -> str:
    parts = [change.title] if change.title else []
    if request.factor != 1.0:
        parts.append(f"with {request.factor:g} times the traffic")
    if request.settings:
        parts.append("with the quotas of --set")
    words = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    return words[0].upper() + words[1:]


def _assumptions(request: Situation, intent: Intent | None, change: BrokerChange, moved: TrafficSource) -> Iterable[str]:
    from reconciler.traffic import Kind

    yield from change.assumptions
    if intent is not None and needs_leaders(intent.desired) and change.shares:
        yield (
            "totals in proportion to leaders follow the leaders of today, which move as the traffic does: the partitions of a "
            "broker go to the others one after the other"
        )
    if intent is not None and intent.desired.with_units and len(change.before) != len(change.after):
        yield (
            "totals of the cluster are judged twice, and the worse verdict counts: with the number that each broker keeps until "
            f"the next apply, and divided among {count_of(len(change.after), 'broker')} instead of {len(change.before):,}, as "
            "that apply writes them"
        )
    if request.factor != 1.0:
        yield (
            f"all recorded amounts are multiplied by {request.factor:g}: bytes, request times, partitions and connections. "
            "They come at the recorded times"
        )
    if change.shares and any(client.kind is Kind.MUTATION for client in moved.series):
        yield "mutations stay where they were recorded, since the active controller counts them"
    if change.shares and any(client.kind is Kind.CONNECTION for client in moved.series):
        yield "connections are divided like bytes. A client that is connected to the other brokers already opens fewer"


def _texts(
    intent: Intent | None, brokers: tuple[int, ...], leaders: LeaderSpread | None, request: Situation
) -> Mapping[tuple[Entity, str], str]:
    """The texts of values that are computed, such as totals, where ``--set`` does not replace them."""
    if intent is None:
        return {}
    return {
        (entity, key.value): quota.text
        for entity, declared in _at(intent, brokers, leaders).desired.entities.items()
        for key, quota in declared.quotas.items()
        if quota.unit is not None and key.value not in request.settings.get(entity, {})
    }


def _kept_totals(
    then: Mapping[Entity, Mapping[str, float]],
    today: Mapping[Entity, Mapping[str, float]],
    computed: Mapping[tuple[Entity, str], str],
) -> Mapping[Entity, Mapping[str, float]] | None:
    """The quotas with the numbers that brokers keep until the next apply; ``None``: computed values do not change."""
    kept = {entity: dict(values) for entity, values in then.items()}
    for entity, key in computed:
        kept.setdefault(entity, {}).pop(key, None)
        if (before := today.get(entity, {}).get(key)) is not None:
            kept[entity][key] = before
    made = {entity: values for entity, values in kept.items() if values}
    return None if made == {entity: dict(values) for entity, values in then.items() if values} else made


def _worse_of(at_once: BacktestReport, after_apply: BacktestReport) -> BacktestReport:
    """The report after the apply, with each quota group that is worse before it, and what is found then."""
    groups = {group.worst.group: group for group in group_verdicts(after_apply.verdicts)}
    for group in group_verdicts(at_once.verdicts):
        if group.worst.limits.after is None:
            continue
        known = groups.get(group.worst.group)
        if known is None or _badness(group.worst) > _badness(known.worst):
            groups[group.worst.group] = group
    rows = sorted((row for group in groups.values() for row in group.rows), key=_badness, reverse=True)
    findings = dict.fromkeys((*at_once.findings, *after_apply.findings))
    return replace(after_apply, verdicts=tuple(rows), findings=tuple(findings))


def _badness(row: BucketVerdict) -> tuple[int, float]:
    """The worse verdict first, then the fuller limit."""
    return -_WORST_FIRST.index(row.verdict), row.peak.rate / row.limits.after if row.limits.after else 0.0


def _standings(report: BacktestReport | None, computed: Mapping[tuple[Entity, str], str]) -> tuple[StandingVerdict, ...]:
    """The verdicts of the quota groups whose limit is computed."""
    if report is None:
        return ()
    rows = worst_of_buckets(
        [row for row in report.verdicts if row.limits.entity is not None and (row.limits.entity, row.key) in computed]
    )
    return tuple(StandingVerdict(bucket=row.name, key=row.key, verdict=row.verdict) for row in rows)


def _limits(
    today: Mapping[Entity, Mapping[str, float]],
    then: Mapping[Entity, Mapping[str, float]],
    declared: Mapping[tuple[Entity, str], str],
) -> tuple[SimulatedLimit, ...]:
    pairs = ((entity, today.get(entity, {}), then.get(entity, {})) for entity in today.keys() | then.keys())
    changed = [
        SimulatedLimit(entity=entity, key=key, before=before.get(key), after=after.get(key), declared=declared.get((entity, key)))
        for entity, before, after in pairs
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    ]
    return tuple(sorted(changed, key=lambda limit: (limit.entity.sort_key, limit.key)))


def _seconds(source: TrafficSource) -> float:
    coverage = source.facts.coverage
    span = max(part.end for part in coverage) - min(part.start for part in coverage)
    return max(1.0, span.total_seconds())


def _loads(recorded: TrafficSource, moved: TrafficSource, change: BrokerChange) -> Iterable[BrokerLoad]:
    seconds = _seconds(recorded)
    before, after = _by_broker(recorded.series, seconds), _by_broker(moved.series, seconds)
    if change.stands_for is not None:
        alike = {key: rate for (broker, key), rate in after.items() if broker == change.stands_for}
        after = {(broker, key): rate for broker in change.after for key, rate in alike.items()}
    keys = sorted({key for _, key in before.keys() | after.keys()})
    for broker in sorted(set(change.before) | set(change.after)):
        for key in keys:
            was = before.get((broker, key), 0.0) if broker in change.before else None
            becomes = after.get((broker, key), 0.0) if broker in change.after else None
            yield BrokerLoad(broker=broker, key=key, before=was, after=becomes)


def _by_broker(series: Iterable[Series], seconds: float) -> dict[tuple[int, str], float]:
    rates: dict[tuple[int, str], float] = defaultdict(float)
    for client in series:
        if client.broker != CONTROLLER:
            rates[client.broker, client.kind.key.value] += client.amount / client.kind.amounts_a_unit / seconds
    return dict(rates)


def _today(
    report: BacktestReport, run: Backtest, recorded: TrafficSource, question: BacktestRequest, moved: TrafficSource
) -> tuple[StandingVerdict, ...]:
    """What the quota groups that are over a limit then are today: only their clients are judged once more."""
    from reconciler.traffic import Backtest, TrafficMoves, move_traffic

    over = {(row.key, row.name) for row in report.verdicts if row.verdict in _OVER and row.metrics is None}
    clients = _clients_of(over, run, moved)
    series = [client for client in recorded.series if _identity(client) in clients]
    if not series:
        return ()
    part = move_traffic(recorded, TrafficMoves(), series)
    assert question.current is not None
    earlier = replace(question, current=None, proposed=question.current, declared={}, plots=0)
    rows = worst_of_buckets(Backtest(part, earlier).report().verdicts)
    known = {(row.key, row.name): row for row in rows}
    return tuple(_standing(key, name, known.get((key, name))) for key, name in sorted(over))


def _standing(key: str, name: BucketName, row: BucketVerdict | None) -> StandingVerdict:
    return StandingVerdict(
        bucket=name, key=key, verdict=Verdict.CLEAR if row is None or row.limits.after is None else row.verdict
    )


def _clients_of(over: Collection[tuple[str, BucketName]], run: Backtest, moved: TrafficSource) -> set[_Client]:
    """The clients of these quota groups, and all that share a limit with one of them today."""
    grouping, series = run.grouping, moved.series
    members = {
        member
        for target in grouping.targets
        if (
            target.kind.key.value,
            BucketName(user=target.bucket.user, client_id=target.bucket.client_id, other=target.bucket.other),
        )
        in over
        for member in target.members
    }
    shared = {
        (series[member].kind, before.bucket) for member in members if (before := grouping.before_of_series[member]) is not None
    }
    members |= {
        number
        for number, before in enumerate(grouping.before_of_series)
        if before is not None and (series[number].kind, before.bucket) in shared
    }
    return {_identity(series[member]) for member in members}


def _identity(client: Series) -> _Client:
    return client.kind.value, client.user, client.client_id, client.ip
