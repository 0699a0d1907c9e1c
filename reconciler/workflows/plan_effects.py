"""The effects of a plan: which known clients its changes move to other limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.errors import BackendError
from reconciler.model import Change, CurrentState, Entity, Plan, PlanEffects, Quotas, display_name
from reconciler.ports import CallbackInspector
from reconciler.resolution import effects_between, unclear_effects


def with_effects(plan: Plan, current: CurrentState, *, source: object, traffic: Iterable[tuple[str, str]] = ()) -> Plan:
    """The plan with its effects on the clients that its entities name, and on ``traffic``'s pairs of user and client id.

    ``source`` is what ``current`` was read from: when it can tell that the brokers resolve quotas with code of their own, the
    effects are unknown, and a note says so.
    """
    callback, notes = _callback(source)
    if callback is not None:
        reason = (
            f"the brokers resolve quotas with their own client.quota.callback.class, {display_name(callback)}; "
            "which limit a client gets is not known"
        )
        return replace(plan, effects=PlanEffects(unknown=reason), notes=(*plan.notes, f"effects are unknown: {reason}"))
    changed = after(current.entities, plan.changes)
    effects = effects_between(current.entities, changed, traffic=traffic)
    unclear = unclear_effects(current.entities, changed)
    if unclear and effects == PlanEffects():
        # Nothing else moves, so "no effect" would be said of just the address whose effect is not known.
        effects, unclear = PlanEffects(unknown="; ".join(unclear)), ()
    about = (f"effects on an address are unknown: {reason}" for reason in unclear)
    return replace(plan, effects=effects, notes=(*plan.notes, *notes, *about))


def after(entities: Mapping[Entity, Quotas], changes: Iterable[Change]) -> dict[Entity, Quotas]:
    """What a cluster holds once the changes are written."""
    found = dict(entities)
    for change in changes:
        quotas = dict(found.pop(change.entity, {}))
        for key in change.keys:
            quotas.pop(key.key, None)
            if key.after is not None:
                quotas[key.key] = key.after
        if quotas:
            found[change.entity] = quotas
    return found


def _callback(source: object) -> tuple[str | None, tuple[str, ...]]:
    """The class, if any, and a note when nobody could tell."""
    assumed = "effects assume that brokers resolve quotas as Kafka does"
    if not isinstance(source, CallbackInspector):
        return None, (f"{assumed}; it was not read whether they have a client.quota.callback.class",)
    try:
        return source.quota_callback(), ()
    except BackendError as error:
        return None, (f"{assumed}; no broker told whether they have a client.quota.callback.class: {error}",)
