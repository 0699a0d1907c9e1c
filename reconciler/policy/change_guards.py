"""Guards about changes: which entities change, and how much changes at once."""

from __future__ import annotations

from reconciler.model import (
    KNOWN_KEYS,
    Action,
    Entity,
    KeyChange,
    Message,
    Prune,
    Reason,
    RebalancePolicy,
    any_matches,
    compose,
    display_name,
    join_messages,
    key_part,
    name_part,
)
from reconciler.policy.guard_context import SHOWN, GuardContext, Measurement, entity_count, name_entities, share, trip_on_any
from reconciler.text import amount_part, moment_text


def default_entity(context: GuardContext) -> Measurement:
    """A change to a default entity reaches every client that has no quota of its own."""
    changes = tuple(change for change in context.new_changes() if change.entity.has_default)
    touched = tuple(change.entity for change in changes)
    if all(change.action is Action.DELETE for change in changes):
        words = "Removes {names}. Every client there without its own quota loses that limit."
    else:
        words = "Changes {names}. Every client there without its own quota is affected."
    return trip_on_any(touched, why=compose(words, names=name_entities(touched)))


def protected_entity(context: GuardContext) -> Measurement:
    """A change to an entity on the cluster's protected list, which is kept apart from what it protects."""
    protected = context.spec.safety.protected
    touched = tuple(c.entity for c in context.new_changes() if any_matches(protected, c.entity))
    return trip_on_any(
        touched,
        why=compose("Changes {names}, which the Cluster manifest protects.", names=name_entities(touched)),
        set_in=context.spec.place("protected") if protected else None,
    )


def prune(context: GuardContext) -> Measurement:
    """Whole entities that no manifest declares, under ``prune: confirm``."""
    gone: tuple[Entity, ...] = ()
    if context.spec.prune is Prune.CONFIRM:
        gone = tuple(c.entity for c in context.changes if any(k.reason is Reason.ENTITY_NOT_IN_MANIFEST for k in c.keys))
    return trip_on_any(
        gone,
        why=compose(
            "No manifest declares {names}. Pruning would remove {them}.",
            names=name_entities(gone),
            them="its limits" if len(gone) == 1 else "their limits",
        ),
        set_in=context.spec.place("prune"),
    )


def rebalance(context: GuardContext) -> Measurement:
    """Parts of a total that change because brokers came or went, under ``rebalance: confirm``."""
    moved: tuple[Entity, ...] = ()
    if context.spec.rebalance is RebalancePolicy.CONFIRM:
        moved = tuple(c.entity for c in context.changes if any(k.brokers_before is not None for k in c.keys))
    return trip_on_any(
        moved,
        why=compose(
            "The number of brokers changed. Each broker would get another part of the total of {names}.",
            names=name_entities(moved),
        ),
        set_in=context.spec.place("rebalance"),
    )


def scope_overlap(context: GuardContext) -> Measurement:
    """A change to what another Cluster manifest, for the same real cluster, declares too: the two would undo each other."""
    contested = tuple(c.entity for c in context.changes if c.entity in context.claimed_elsewhere)
    others = sorted({display_name(context.claimed_elsewhere[entity]) for entity in contested})
    return trip_on_any(
        contested,
        why=compose(
            "The manifests also declare {names} for {others}, which is the same cluster.",
            names=name_entities(contested),
            others=join_messages(Message([name_part(other)]) for other in others),
        ),
        set_in=context.spec.place("scope"),
    )


def managed_entity(context: GuardContext) -> Measurement:
    """A change by hand (with alter) to an entity that manifests manage: the next apply undoes it, or no manifest shows it."""
    by_hand = tuple(c.entity for c in context.changes if c.entity in context.managed)
    place, why = None, compose("")
    for entity in by_hand[:1]:
        owned = context.managed[entity]
        place = owned.place
        cluster = name_part(display_name(context.spec.name)) if context.spec.name else "the manifests"
        where = compose(" ({place})", place=place) if place else ""
        why = (
            compose(
                "A manifest declares {entity}{where}. The next apply restores the declared values. Change the manifest instead.",
                entity=entity,
                where=where,
            )
            if owned.declared
            else compose(
                "{entity} is in the scope of {cluster}{where}, whose quotas come from manifests. Declare it in a manifest.",
                entity=entity,
                cluster=cluster,
                where=where,
            )
        )
    return trip_on_any(by_hand, why=why, set_in=place)


def unknown_current_keys(context: GuardContext) -> Measurement:
    """Declared entities on which the cluster has keys that this version does not know. Such keys are never written."""
    limit = context.spec.safety.guards.unknown_current_keys
    live = context.current.entities
    entities = tuple(e for e in context.desired.entities if not KNOWN_KEYS.issuperset(live.get(e, ())))
    keys = sorted({display_name(key) for e in entities for key in live[e].keys() - KNOWN_KEYS})[:SHOWN]
    exceeds = limit.count is None or len(entities) > limit.count
    return Measurement(
        entities=entities if exceeds else (),
        measured=entity_count(len(entities)),
        limit="none, it only warns" if limit.count is None else entity_count(limit.count),
        why=compose(
            "The cluster has keys that this version does not know ({keys}) on {names}. They stay as they are.",
            keys=join_messages(Message([key_part(key)]) for key in keys),
            names=name_entities(entities),
        ),
        set_in=limit.set_in,
        only_warns=limit.count is None,
    )


def empty_desired_state(context: GuardContext) -> Measurement:
    """Manifests that declare nothing, where pruning would then remove everything: rather a wrong folder than an intention."""
    declared = sum(1 for d in context.desired.entities.values() if d.quotas)
    removed = tuple(c.entity for c in context.new_changes() if c.action is Action.DELETE) if declared == 0 else ()
    return Measurement(
        entities=removed,
        measured=f"{entity_count(declared)} declared",
        limit="at least 1 declared",
        why=compose("The manifests declare no quota. All {count} in scope would be removed.", count=entity_count(len(removed))),
        set_in=None,
    )


def too_many_removals(context: GuardContext) -> Measurement:
    """Many entities lose a limit at once; a removed limit falls back to the next level, or to none.

    The percentage does not apply to one entity alone, nor to a small cluster: there every removal is a large share.
    """
    limit = context.spec.safety.guards.too_many_removals
    losing = tuple(c.entity for c in context.new_changes() if any(k.after is None for k in c.keys))
    percent, affected = share(losing, context)
    shares = len(losing) > 1 and context.live_in_scope() > limit.minimum
    if context.of_all_owners:
        # A few removals of many owners are many; only a large share of the whole cluster is an accident.
        exceeds, within = len(losing) > limit.count and percent > limit.percent, f"{limit.percent:.3g} % and "
    else:
        exceeds = len(losing) > limit.count or (shares and percent > limit.percent)
        within = f"{limit.percent:.3g} % or " if shares else ""
    return Measurement(
        entities=losing if exceeds else (),
        measured=affected,
        limit=f"{within}{entity_count(limit.count)}",
        why=compose("{affected} in scope would lose limits: {names}.", affected=affected, names=name_entities(losing)),
        set_in=limit.set_in,
    )


def too_many_changes(context: GuardContext) -> Measurement:
    """Many of the cluster's entities change at once. New entities are not entity_count: they are not part of what exists."""
    limit = context.spec.safety.guards.too_many_changes
    touched = tuple(c.entity for c in context.new_changes() if any(k.before is not None for k in c.keys))
    percent, affected = share(touched, context)
    exceeds = len(touched) > limit.count and percent > limit.percent
    return Measurement(
        entities=touched if exceeds else (),
        measured=affected,
        limit=f"{limit.percent:.3g} % and {entity_count(limit.count)}",
        why=compose("{affected} in scope would change: {names}.", affected=affected, names=name_entities(touched)),
        set_in=limit.set_in,
    )


def large_reduction(context: GuardContext) -> Measurement:
    """A new value far below the current one, most often a slip of the unit. Removed keys are for ``too-many-removals``."""
    limit = context.spec.safety.guards.large_reduction
    reduced = [(c.entity, k) for c in context.new_changes() for k in c.keys if _ratio(k) < limit.of(k.key)]
    if not reduced:
        return Measurement(
            entities=(),
            measured="none",
            limit=f"{100 * limit.factor:.3g} % of the current value",
            why=compose(""),
            set_in=limit.set_in,
        )
    entity, key = min(reduced, key=lambda pair: _ratio(pair[1]))
    touched = tuple(dict.fromkeys(entity for entity, _ in reduced))
    more = f" {entity_count(len(touched))} in all." if len(touched) > 1 else ""
    return Measurement(
        entities=touched,
        measured=f"{100 * _ratio(key):.3g} %",
        limit=f"{100 * limit.of(key.key):.3g} % of the current value",
        why=compose(
            "Cuts {key} for {entity} from {before} to {after}{when}.{more}",
            key=key_part(key.key),
            entity=entity,
            before=amount_part(key.key, key.before),
            after=amount_part(key.key, _lowest(key)),
            when=f" on {moment_text(key.expiry.at)}" if key.expiry is not None and _lowest(key) != key.after else "",
            more=more,
        ),
        set_in=limit.set_in,
    )


def _ratio(key: KeyChange) -> float:
    """New over old; 1 where there is not both, or the old value is none that a limit can have."""
    lowest = _lowest(key)
    if key.before is None or lowest is None or not key.before > 0:
        return 1.0
    return lowest / key.before


def _lowest(key: KeyChange) -> float | None:
    """The new value, or what follows when that expires: no guard measures that change again."""
    later = key.expiry.other if key.expiry is not None and not key.expiry.expired else None
    return later if later is not None and key.after is not None and later < key.after else key.after
