"""Numbers for each broker in place of totals, once the cluster is read: what every command does before it compares."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reconciler.errors import BackendError
from reconciler.logs import log_event
from reconciler.manifest import budget_findings, budgets_of, compute_units, finding, limit_findings
from reconciler.model import (
    BrokerFacts,
    Change,
    ClusterSpec,
    CurrentState,
    DeclaredExpiry,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    Finding,
    LeaderSpread,
    Message,
    Proportional,
    QuotaKey,
    Quotas,
    RebalancePolicy,
    ValueExpiry,
    compose,
    flag_part,
    in_order,
    key_part,
    name_part,
    same_value,
)
from reconciler.planning import keep_parts
from reconciler.ports import LeaderInspector, QuotaReader
from reconciler.resolution import GROUP_CALLBACK, ProportionalTotal, QuotaView, is_reserved, stored_rule
from reconciler.text import count_of, moment_text
from reconciler.workflows.load import adjusted, stop_on
from reconciler.workflows.trusted import Before

if TYPE_CHECKING:
    from reconciler.workflows.intent import Intent

_log: Final = logging.getLogger(__name__)
ABOVE_BUDGET: Final = "above-budget"
_SHOWN_PARTS: Final = 6
_EVEN: Final = 1.05
"""A leader distribution with a larger factor is worth a note."""


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
        desired, kept, by_leaders = keep_parts(desired, current.entities)
    return desired, list(_notes(intent.spec, current, kept, by_leaders))


def declared_values(desired: DesiredState, current: CurrentState | None) -> dict[Entity, Quotas]:
    """The values of an earlier state of the manifests, as the brokers of now would have them; entities without any key too.

    A value that the cluster has for another number of brokers, or that has expired since, is what that state was applied as.
    """
    if current is not None and desired.with_units:
        desired, _ = compute_units(desired, BrokerFacts(brokers=current.brokers, leaders=current.leaders))
        desired, *_ = keep_parts(desired, current.entities)
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
    others = {"other leaders of partitions": kept_by_leaders, f"another number of brokers than {len(current.brokers)}": kept}
    for other, count in others.items():
        if count:
            yield compose(
                "{values} computed for {other} and {stay}, because of {policy}.",
                values=count_of(count, "value was", "values were"),
                other=other,
                stay="stays" if count == 1 else "stay",
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
    partitions = unit.partitions or 1
    if any(map(is_reserved, desired.entities)):
        yield compose(
            "The plugin of groups gives each broker its own part of {key} of {entity}{more}.",
            key=key_part(key.value),
            entity=entity,
            more=more,
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


_GIVING_LEADERS: Final = ((4, 0), (5, 0))
"""The first release whose brokers give callbacks the leaders in KRaft mode, and the first that no longer does (KIP-1200)."""


def uses_leaders(intent: Intent | None, callback: str | None) -> bool:
    """Whether limits depend on the leaders of partitions. ``callback``: the class that the command line names."""
    written = intent.spec.brokers.callback if intent is not None else None
    names = {callback, written.name if written is not None else None}
    return GROUP_CALLBACK in names or (intent is not None and needs_leaders(intent.desired))


def known_leaders(spread: LeaderSpread | None, release: tuple[int, int] | None) -> LeaderSpread | None:
    """The leaders as brokers of this release give them to a callback. ``release``: ``None`` when it is not known."""
    if spread is None or not spread.by_topic or not _gives_leaders(release):
        return None
    return spread


def leader_notes(
    quotas: Mapping[Entity, Mapping[str, float]], leaders: LeaderSpread | None, release: tuple[int, int] | None
) -> Iterator[Message]:
    """One note where the plugin has totals in proportion to leaders: whose leaders count, or why none are known."""
    if not any(isinstance(stored_rule(entity), ProportionalTotal) for entity in quotas if is_reserved(entity)):
        return
    if leaders is not None:
        how = "the leaders of today on each broker. The history does not have the leaders of its own time"
    else:
        how = "the stored number on all brokers, which is the largest part: " + (
            "the leaders of partitions are not known. Read the live cluster with --bootstrap-server"
            if _gives_leaders(release)
            else "brokers of this Kafka version do not give the plugin the leaders"
        )
    yield compose("Totals in proportion to leaders are judged by {how}.", how=how)


def _gives_leaders(release: tuple[int, int] | None) -> bool:
    first, last = _GIVING_LEADERS
    return release is None or first <= release < last


def accepted_fallbacks(changes: Iterable[Change], before: Before | None, current: CurrentState) -> frozenset[tuple[Entity, str]]:
    """The keys that fall back as the manifests declared before the expiry, where the cluster has exactly the expired value.

    ``before``: the base of a pull request. What follows an expired value is new to the reviewer where the base has another.
    """
    fallbacks = [(change.entity, key) for change in changes for key in change.keys if key.is_fallback]
    if before is None or not fallbacks:
        return frozenset((entity, key.key) for entity, key in fallbacks)
    base, _ = compute_units(before.desired, BrokerFacts(brokers=current.brokers, leaders=current.leaders))
    return frozenset(
        (entity, key.key) for entity, key in fallbacks if same_value(key.after, _fallback_at(base, entity, QuotaKey(key.key)))
    )


def _fallback_at(base: DesiredState, entity: Entity, key: QuotaKey) -> float | None:
    """Return the value that follows an expired one in a state; NaN, which no manifest declares, when none expired."""
    declared = base.entities.get(entity)
    if declared is None or (expiry := declared.expiries.get(key)) is None or not expiry.expired:
        return float("nan")
    quota = declared.quotas.get(key)
    return None if quota is None else quota.value


def fallback_notes(fallbacks: frozenset[tuple[Entity, str]]) -> Iterator[Message]:
    """A sentence when guards pass fallbacks."""
    if fallbacks:
        yield compose(
            "{values} back because of the expiry in the manifests. Guards take that as reviewed.",
            values=count_of(len(fallbacks), "value falls", "values fall"),
        )


def judged_notes(desired: DesiredState) -> Iterator[Message]:
    """A sentence of a backtest about values that will expire: it judges those of the moment."""
    following = [each.at for declared in desired.entities.values() for each in declared.expiries.values() if not each.expired]
    if following:
        yield compose(
            "Judged before an expiry: {values}, first on {when}. What follows was not checked. To check it, declare it without "
            "{until}.",
            values=count_of(len(following), "value expires", "values expire"),
            when=name_part(moment_text(min(following))),
            until=flag_part("until"),
        )


def live_expiries(desired: DesiredState, live: CurrentState | QuotaView) -> dict[tuple[Entity, str], ValueExpiry]:
    """Return the expiries of values that apply, by entity and key: declared ones, and expired ones that are still there."""
    brokers = BrokerFacts(brokers=live.brokers, leaders=live.leaders)
    computed = compute_units(desired, brokers)[0] if desired.with_units else desired
    return {
        (entity, key.value): expiry.of_value
        for entity, declared in computed.entities.items()
        for key, expiry in declared.expiries.items()
        if (temporary := _temporary(declared, key, expiry)) is not None
        and same_value(live.entities.get(entity, {}).get(key.value), temporary)
    }


def _temporary(declared: DesiredEntity, key: QuotaKey, expiry: DeclaredExpiry) -> float | None:
    """The value that applies for a while only; ``None`` where it could not be computed."""
    quota = expiry.other if expiry.expired else declared.quotas.get(key)
    return quota.value if isinstance(quota, DesiredQuota) else None


def before_expiries(desired: DesiredState, live: Mapping[Entity, Quotas]) -> DesiredState:
    """The state with each expired value that the cluster still has: what it was applied as."""
    entities: dict[Entity, DesiredEntity] = {}
    for entity, declared in desired.entities.items():
        kept = {
            key: expiry.other
            for key, expiry in declared.expiries.items()
            if expiry.expired
            and isinstance(expiry.other, DesiredQuota)
            and same_value(expiry.other.value, live.get(entity, {}).get(key.value))
        }
        if kept:
            entities[entity] = replace(declared, quotas={**declared.quotas, **kept})
    return replace(desired, entities={**desired.entities, **entities}) if entities else desired
