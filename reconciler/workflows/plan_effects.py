"""The effects of a plan: which known clients move to other limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.model import NOT_ASKED, Change, ClusterSpec, CurrentState, Effect, Plan, PlanEffects, compose, display_name
from reconciler.planning import quotas_after
from reconciler.resolution import GROUP_CALLBACK, GroupedQuotas, effects_between, unclear_effects
from reconciler.workflows.connect import with_facts


def with_effects(plan: Plan, current: CurrentState, *, source: object, spec: ClusterSpec | None = None) -> Plan:
    """The plan with its effects on the clients that its entities name.

    ``source`` is what ``current`` was read from: when it can know that the brokers resolve quotas with code of their own, the
    effects are unknown. Where it cannot, the callback of ``spec`` counts.
    """
    current = with_facts(current, source)
    callback: str | None = current.cluster.quota_callback
    notes = _assumed(current.callback_unknown)
    if notes and spec is not None and spec.brokers.callback is not None:
        callback = spec.brokers.callback.name
    before, changed = current.entities, quotas_after(current.entities, plan.changes)
    if callback == GROUP_CALLBACK:
        notes = (compose("Effects on members of a group show its limit, which they share. Members by a prefix are not listed."),)
        before, changed = GroupedQuotas(before).quotas, GroupedQuotas(changed).quotas
    elif callback is not None:
        reason = (
            f"the brokers resolve quotas with their own client.quota.callback.class, {display_name(callback)}. "
            "The limit of a client is not known"
        )
        return replace(plan, effects=PlanEffects(unknown=reason))
    effects = effects_between(before, changed)
    if earlier := tuple(_as_before(plan.changes)):
        alone = quotas_after(current.entities, earlier)
        alone = GroupedQuotas(alone).quotas if callback == GROUP_CALLBACK else alone
        effects = _marked(effects, effects_between(before, alone).effects)
    unclear = unclear_effects(before, changed)
    if unclear and effects == PlanEffects():
        # Nothing else moves, so "no effect" would be said of just the address whose effect is not known.
        effects, unclear = PlanEffects(unknown="; ".join(unclear)), ()
    about = (f"effects on an address are unknown: {reason}" for reason in unclear)
    return replace(plan, effects=effects, notes=(*plan.notes, *notes, *about))


def _as_before(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes that a plan of the base has, too."""
    for change in changes:
        if keys := tuple(key for key in change.keys if key.as_before):
            yield replace(change, keys=keys)


def _marked(effects: PlanEffects, earlier: Iterable[Effect]) -> PlanEffects:
    """The effects, of which those are marked that the changes of the base have alone."""
    known = frozenset(earlier)
    return replace(effects, effects=tuple(replace(each, as_before=each in known) for each in effects.effects))


def _assumed(callback_unknown: str | None) -> tuple[str, ...]:
    """A note when the brokers' callback class is not known."""
    assumed = "effects assume that brokers resolve quotas as Kafka does"
    match callback_unknown:
        case None:
            return ()
        case _ if callback_unknown == NOT_ASKED:
            return (f"{assumed}. It was not read whether they have a client.quota.callback.class",)
        case _:
            return (f"{assumed}. No broker answered whether they have a client.quota.callback.class: {callback_unknown}",)
