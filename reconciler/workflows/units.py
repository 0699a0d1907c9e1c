"""Numbers for each broker in place of totals, once the cluster is read: what every command does before it compares."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reconciler.errors import BackendError
from reconciler.logs import log_event
from reconciler.manifest import budget_findings, budgets_of, compute_units, finding, limit_findings
from reconciler.model import (
    BrokerFacts,
    ClusterSpec,
    CurrentState,
    DesiredState,
    Entity,
    Finding,
    LeaderSpread,
    Message,
    Proportional,
    Quotas,
    RebalancePolicy,
    compose,
    flag_part,
    in_order,
    key_part,
)
from reconciler.planning import keep_leader_parts, keep_parts
from reconciler.ports import LeaderInspector, QuotaReader
from reconciler.resolution import is_reserved
from reconciler.text import amount, count_of, list_some
from reconciler.workflows.connect import read_state
from reconciler.workflows.expiries import before_expiries
from reconciler.workflows.load import adjusted, stop_on

if TYPE_CHECKING:
    from reconciler.workflows.intent import Intent

_log: Final = logging.getLogger(__name__)
ABOVE_BUDGET: Final = "above-budget"
_SHOWN_SHARES: Final = 20
_SHOWN_PARTS: Final = 6
_EVEN: Final = 1.05
"""A leader distribution with a larger factor is worth a note."""


def read_for(intent: Intent, reader: QuotaReader) -> CurrentState:
    """The cluster's quotas, and for totals also which brokers lead partitions. Raises ``BackendError``."""
    current = read_state(intent.spec, reader)
    return with_leaders(current, reader) if intent.desired.with_units else current


def needs_leaders(desired: DesiredState) -> bool:
    """Whether a value is in proportion to the leaders of partitions."""
    return any(
        isinstance(written.unit, Proportional)
        for entity in desired.with_units
        for written in desired.entities[entity].units.values()
    )


def with_leaders(current: CurrentState, reader: QuotaReader) -> CurrentState:
    """The state with which brokers lead partitions, where the reader can report that; a note when it does not answer."""
    if not isinstance(reader, LeaderInspector):
        return current
    try:
        leaders = reader.leader_spread()
    except BackendError as error:
        note = compose("Which brokers lead partitions is not known: {error}", error=str(error))
        return replace(current, notes=(*current.notes, note))
    return current if leaders is None else replace(current, leaders=leaders)


def divide_totals(intent: Intent, current: CurrentState | None) -> Intent:
    """The intent with a number for each broker in place of every total; for one whose ``desired`` has units.

    Raises ``ManifestError`` for totals that cannot be divided, and when the brokers are not known.
    """
    facts = BrokerFacts() if current is None else BrokerFacts(brokers=current.brokers, leaders=current.leaders)
    desired, wrong = compute_units(intent.desired, facts)
    findings = in_order((*_known(intent), *adjusted(tuple(_wrong(intent, desired, wrong)), intent.loaded.repository.lint)))
    stop_on(findings, intent.fail_on)
    notes: list[Message] = []
    if current is not None:
        desired, notes = _kept_parts(intent, desired, current)
    log_event(
        _log,
        "totals divided",
        level=logging.INFO,
        cluster=intent.spec.name,
        entities=len(intent.desired.with_units),
        brokers=list(facts.brokers),
    )
    notes += proportional_notes(desired, facts.brokers)
    return replace(intent, desired=desired, findings=findings, notes=(*intent.notes, *notes), has_totals=True)


def _known(intent: Intent) -> tuple[Finding, ...]:
    """Budgets are judged once more, with the parts of totals."""
    if not intent.loaded.repository.budgets:
        return intent.findings
    return tuple(finding for finding in intent.findings if finding.id != ABOVE_BUDGET)


def _wrong(intent: Intent, desired: DesiredState, wrong: Sequence[Finding]) -> Iterator[Finding]:
    yield from wrong or _unknown_brokers(desired)
    repository, spec = intent.loaded.repository, intent.spec
    yield from limit_findings([desired.entities[entity] for entity in intent.desired.with_units], repository.limits, spec)
    if repository.budgets:
        yield from budget_findings(budgets_of(repository.budgets, spec), tuple(desired.entities.values()), spec)


def _kept_parts(intent: Intent, desired: DesiredState, current: CurrentState) -> tuple[DesiredState, list[Message]]:
    """Parts for other brokers stay under ``rebalance: never``, and under ``confirm`` where no person attends."""
    policy, kept, by_leaders = intent.spec.rebalance, 0, 0
    if policy is RebalancePolicy.NEVER or (policy is RebalancePolicy.CONFIRM and not intent.attended):
        desired, kept = keep_parts(desired, current.entities)
        desired, by_leaders = keep_leader_parts(desired, current.entities)
    return desired, list(_notes(intent.spec, current, kept, by_leaders))


def declared_values(desired: DesiredState, current: CurrentState | None) -> dict[Entity, Quotas]:
    """The values of an earlier state of the manifests, as the brokers of now would have them; entities without any key too.

    A value that the cluster has for another number of brokers, or that has expired since, is what that state was applied as.
    """
    if current is not None and desired.with_units:
        desired, _ = compute_units(desired, BrokerFacts(brokers=current.brokers, leaders=current.leaders))
        desired, _ = keep_parts(desired, current.entities)
        desired, _ = keep_leader_parts(desired, current.entities)
    if current is not None:
        desired = before_expiries(desired, current.entities)
    return {
        entity: {key.value: quota.value for key, quota in declared.quotas.items()}
        for entity, declared in desired.entities.items()
    }


def _unknown_brokers(desired: DesiredState) -> Iterator[Finding]:
    left = [desired.entities[entity] for entity in desired.with_units if desired.entities[entity].units]
    for declared in left[:1]:
        entity = declared.entity
        key, written = next(iter(declared.units.items()))
        message = compose(
            "the brokers of the cluster are not known, so this total cannot be divided ({count} with one). Read the cluster, or "
            "record its snapshot again with {command}",
            count=count_of(len(left), "entity", "entities"),
            command=flag_part("kafka-quotas export --snapshot"),
        )
        yield finding("unknown-brokers", message, written.source, entity=entity, key=key.value)


def _notes(spec: ClusterSpec, current: CurrentState, kept: int, kept_by_leaders: int) -> Iterator[Message]:
    if kept_by_leaders:
        yield compose(
            "{values} computed for other leaders of partitions and {stay}, because of {policy}.",
            values=f"{count_of(kept_by_leaders, 'value')} {'was' if kept_by_leaders == 1 else 'were'}",
            stay="stays" if kept_by_leaders == 1 else "stay",
            policy=flag_part(f"rebalance: {spec.rebalance.value}"),
        )
    if kept:
        yield compose(
            "{values} computed for another number of brokers than {brokers} and {stay}, because of {policy}.",
            values=f"{count_of(kept, 'value')} {'was' if kept == 1 else 'were'}",
            brokers=len(current.brokers),
            stay="stays" if kept == 1 else "stay",
            policy=flag_part(f"rebalance: {spec.rebalance.value}"),
        )
    if current.leaders is not None:
        yield from _leader_notes(current.leaders, len(current.brokers))


def _leader_notes(leaders: LeaderSpread, brokers: int) -> Iterator[Message]:
    if leaders.absent:
        names = ", ".join(map(str, leaders.absent))
        yield compose(
            "{brokers} {have} replicas and {are} not up. Totals are divided among the {count} that are.",
            brokers=f"Broker {names}" if len(leaders.absent) == 1 else f"Brokers {names}",
            have="has" if len(leaders.absent) == 1 else "have",
            are="is" if len(leaders.absent) == 1 else "are",
            count=brokers,
        )
    missed = leaders.largest_share(brokers)
    if missed is None:
        yield compose("No partition has a leader that can be seen, so the spread of the clients over the brokers is not known.")
    elif missed > _EVEN:
        broker, count = max(leaders.partitions, key=lambda pair: (pair[1], -pair[0]))
        led = sum(partitions for _, partitions in leaders.partitions)
        yield compose(
            "A client can miss its total by a factor of {factor}: broker {broker} leads {share} % of the partitions, and its "
            "part of a total is {part} %. A client that uses all partitions alike reaches {reached} % of its total.",
            factor=f"{missed:.3g}",
            broker=str(broker),
            share=f"{count * 100 / led:.0f}",
            part=f"{100 / brokers:.0f}",
            reached=f"{100 / missed:.0f}",
        )


def proportional_notes(desired: DesiredState, brokers: tuple[int, ...]) -> Iterator[Message]:
    """One note about the first value in proportion to leaders. Without the plugin of groups it names the loss."""
    units = [
        (declared.entity, key, quota.unit)
        for declared in desired.entities.values()
        for key, quota in declared.quotas.items()
        if isinstance(quota.unit, Proportional) and quota.unit.leaders is not None
    ]
    if not units:
        return
    entity, key, unit = units[0]
    more = "" if len(units) == 1 else f" (and {count_of(len(units) - 1, 'other value')})"
    leaders, partitions = dict(unit.leaders or ()), unit.partitions or 1
    if any(map(is_reserved, desired.entities)):
        parts = [(broker, unit.value * max(1, leaders.get(broker, 0)) / partitions) for broker in brokers]
        yield compose(
            "The plugin of groups gives each broker its own part of {key} of {entity}{more}: {parts}.",
            key=key_part(key.value),
            entity=entity,
            more=more,
            parts=list_some([f"broker {broker} {amount(key.value, part)}" for broker, part in parts], _SHOWN_PARTS),
        )
        return
    yield compose(
        "{key} of {entity}{more} is one number for all brokers: the largest part. Brokers that lead fewer partitions enforce it, "
        "too, so {count} together allow {factor} times the total. The plugin of groups gives each broker its own part.",
        key=key_part(key.value),
        entity=entity,
        more=more,
        count=count_of(len(brokers), "broker"),
        factor=f"{len(brokers) * unit.most / partitions:.3g}",
    )
