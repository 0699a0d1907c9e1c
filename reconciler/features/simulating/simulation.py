"""A backtest in another situation: recorded traffic on the brokers that are left, or more of it.

A total of the cluster (``clusterTotal``) is judged with the number that each broker keeps until the next apply, which divides it
again: among fewer brokers, none gets less.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from reconciler.errors import UsageError
from reconciler.logs import timed_event
from reconciler.manifest import compute_units
from reconciler.model import CONTROLLER, BacktestReport, BrokerFacts, CurrentState, Entity, LeaderSpread, in_order
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.text import list_some
from reconciler.workflows import (
    BacktestOptions,
    Intent,
    Proposal,
    adjusted,
    apply_rules,
    backtest_request,
    callback_notes,
    fetch_samples,
    open_recorded,
    proposal_of,
    proposal_of_settings,
    set_quotas,
    stop_on,
)

if TYPE_CHECKING:
    from reconciler.features.simulating.moved_traffic import TrafficMoves
    from reconciler.traffic import TrafficSource

_log: Final = logging.getLogger(__name__)
_ONE_BROKER: Final = (0,)
_SHOWN: Final = 6
_Table: TypeAlias = Mapping[Entity, Mapping[str, float]]


def moves_without(brokers: Collection[int], lost: Collection[int], factor: float) -> TrafficMoves:
    """The traffic of lost brokers on the others of ``brokers``. Raises ``UsageError``."""
    from reconciler.features.simulating.moved_traffic import TrafficMoves

    before = sorted(brokers)
    unknown = sorted(set(lost) - set(before))
    if unknown:
        names = ", ".join(map(str, before[:_SHOWN]))
        raise UsageError(f"--without-broker {unknown[0]}: the history has no such broker. Its brokers are {names}")
    left = tuple(broker for broker in before if broker not in lost)
    if lost and not left:
        raise UsageError("--without-broker names every broker of the history. Leave one")
    return TrafficMoves(lost=frozenset(lost), left=left, factor=factor)


def _named(brokers: Sequence[int]) -> str:
    names = [str(broker) for broker in brokers]
    if len(names) == 1:
        return f"broker {names[0]}"
    if len(names) > _SHOWN:
        return f"brokers {list_some(names, _SHOWN)}"
    return f"brokers {', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What differs from the recorded history."""

    without: tuple[int, ...] = ()
    factor: float = 1.0
    settings: _Table = field(default_factory=dict)


def simulate(
    situation: Situation,
    intent: Intent | None,
    current: CurrentState | None,
    options: BacktestOptions,
    *,
    progress: Progress = NO_PROGRESS,
) -> BacktestReport:
    """The report about the changed history. ``intent``: ``None`` without manifests.

    Raises ``UsageError``, also for a change that the history does not allow, ``MissingDependencyError``, ``TrafficError`` and
    ``UntrustedError``.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    from reconciler.features.simulating.moved_traffic import MovedTraffic
    from reconciler.traffic import Backtest, recorded_coverage

    # Which brokers there are is known when the history is open. Which kinds have a limit does not depend on it.
    about = _proposal(situation, intent, current, _ONE_BROKER)
    options, notes = fetch_samples(about, options, progress=progress)
    with open_recorded(about, options, progress=progress) as recorded:
        seen = {part.broker for part in recorded.facts.coverage if part.broker != CONTROLLER}
        before = tuple(sorted(seen | set(about.brokers)))
        moves = moves_without(before, situation.without, situation.factor)
        today = current.entities if current is not None else _proposal(None, intent, None, before).proposed
        proposal = replace(_proposal(situation, intent, current, before), current=today, brokers=())
        question = replace(backtest_request(proposal, options), unchanged=True)
        context = (*_assumptions(moves, intent, recorded), *callback_notes(proposal, question, options), *notes)
        moved = MovedTraffic(recorded, moves)
        progress.step("judging")
        with timed_event(_log, "simulation judged", brokers=list(moves.left), factor=situation.factor):
            report = Backtest(moved, question).report()
        holes = [part.gap_words for part in recorded_coverage(recorded) if moves.lost and part.minutes_missing]
        gaps = (f"{hole}. Brokers that take over its traffic lack it for that time" for hole in holes)
        noted = replace(proposal, notes=(*context, *gaps, *proposal.notes))
    return apply_rules(replace(report, situation=_title(moves)), noted)


def _proposal(
    situation: Situation | None, intent: Intent | None, current: CurrentState | None, brokers: tuple[int, ...]
) -> Proposal:
    """The quotas with totals divided among these brokers, and without a situation without those of ``--set``."""
    spread = None if current is None else current.leaders
    proposal = proposal_of_settings({}, current) if intent is None else proposal_of(_at(intent, brokers, spread), current)
    return proposal if situation is None else set_quotas(proposal, situation.settings)


def _at(intent: Intent, brokers: tuple[int, ...], leaders: LeaderSpread | None) -> Intent:
    """Divide totals among brokers that no cluster has. Raises ``ManifestError`` for totals that cannot be divided."""
    desired, wrong = compute_units(intent.desired, BrokerFacts(brokers=brokers, leaders=leaders))
    stop_on(in_order(adjusted(wrong, intent.loaded.repository.lint)), intent.fail_on)
    return replace(intent, desired=desired)


def _title(moves: TrafficMoves) -> str:
    parts = [f"without {_named(sorted(moves.lost))}"] if moves.lost else []
    if moves.factor != 1.0:
        parts.append(f"with {moves.factor:g} times the traffic")
    words = " and ".join(parts)
    return words[0].upper() + words[1:]


def _assumptions(moves: TrafficMoves, intent: Intent | None, recorded: TrafficSource) -> Iterator[str]:
    from reconciler.traffic import Kind

    if moves.lost:
        part = f"{100 / len(moves.left):.3g} % each" if len(moves.left) > 1 else "all of it"
        lost, left = _named(sorted(moves.lost)), _named(moves.left)
        yield f"each client's traffic of {lost} moves to {left} in equal parts, {part}, second by second"
        yield "the history has no topics, so it is not known which leaders move where. A broker that gets more leaders gets more"
        yield "clients send what they sent, at the same times. What they send anew after the loss is not simulated"
        if intent is not None and intent.desired.with_units:
            yield "a total of the cluster is judged with the number that each broker keeps until the next apply divides it again"
    if moves.factor != 1.0:
        yield (
            f"all recorded amounts are multiplied by {moves.factor:g}: bytes, request times, partitions and connections. "
            "They come at the recorded times"
        )
    kinds = {client.kind for client in recorded.series}
    if moves.lost and Kind.MUTATION in kinds:
        yield "mutations stay where they were recorded, since the active controller counts them"
    if moves.lost and Kind.CONNECTION in kinds:
        yield "connections are divided like bytes. A client that is connected to the other brokers already opens fewer"
