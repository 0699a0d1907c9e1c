"""Guards about which entities change."""

from __future__ import annotations

from reconciler.model import KNOWN_KEYS, Entity, Prune, Reason, any_matches, display_name
from reconciler.policy.situation import SHOWN, Measurement, Situation, counted, listed


def default_entity(situation: Situation) -> Measurement:
    """A change to a default entity reaches every client that has no quota of its own."""
    touched = tuple(c.entity for c in situation.changes if c.entity.has_default)
    return Measurement(
        entities=touched,
        measured=counted(len(touched)),
        limit="0 entities",
        why=f"it changes {listed(touched)}, which reaches every client there without a quota of its own",
    )


def protected_entity(situation: Situation) -> Measurement:
    """A change to an entity on the cluster's protected list, which is kept apart from what it protects."""
    protected = situation.spec.protected
    touched = tuple(c.entity for c in situation.changes if any_matches(protected, c.entity))
    return Measurement(
        entities=touched,
        measured=counted(len(touched)),
        limit="0 entities",
        why=f"it changes {listed(touched)}, which the cluster protects",
        set_in=situation.spec.place("protected") if protected else None,
    )


def prune(situation: Situation) -> Measurement:
    """Whole entities that no manifest declares, under ``prune: confirm``."""
    gone: tuple[Entity, ...] = ()
    if situation.spec.prune is Prune.CONFIRM:
        gone = tuple(c.entity for c in situation.changes if any(k.reason is Reason.ENTITY_NOT_IN_MANIFEST for k in c.keys))
    return Measurement(
        entities=gone,
        measured=counted(len(gone)),
        limit="0 entities",
        why=f"no manifest declares {listed(gone)}, so pruning would remove {'it' if len(gone) == 1 else 'them'}",
        set_in=situation.spec.place("prune"),
    )


def scope_overlap(situation: Situation) -> Measurement:
    """A change to what another Cluster document, for the same real cluster, declares too: the two would undo each other."""
    contested = tuple(c.entity for c in situation.changes if c.entity in situation.claimed_elsewhere)
    others = ", ".join(sorted({display_name(situation.claimed_elsewhere[entity]) for entity in contested}))
    return Measurement(
        entities=contested,
        measured=counted(len(contested)),
        limit="0 entities",
        why=f"{listed(contested)} is declared for {others} too, which is the same cluster",
        set_in=situation.spec.place("scope"),
    )


def managed_entity(situation: Situation) -> Measurement:
    """A change by hand (with alter) to an entity that manifests manage: the next apply undoes it, or no manifest shows it."""
    by_hand = tuple(c.entity for c in situation.changes if c.entity in situation.managed)
    place, why = None, ""
    for entity in by_hand[:1]:
        owned = situation.managed[entity]
        place = owned.place
        cluster = display_name(situation.spec.name) if situation.spec.name else "the manifests"
        where = f" ({place})" if place else ""
        why = (
            f"{entity} is declared by a manifest{where}, which the next apply goes by; change it there"
            if owned.declared
            else f"{entity} is in the scope of {cluster}{where}, whose quotas come from manifests; declare it there"
        )
    return Measurement(entities=by_hand, measured=counted(len(by_hand)), limit="0 entities", why=why, set_in=place)


def unknown_current_keys(situation: Situation) -> Measurement:
    """Declared entities on which the cluster holds keys that this version does not know. Such keys are never written."""
    limit = situation.spec.guards.unknown_current_keys
    live = situation.current.entities
    found = tuple(e for e in situation.desired.entities if not KNOWN_KEYS.issuperset(live.get(e, ())))
    keys = ", ".join(sorted({display_name(key) for e in found for key in live[e].keys() - KNOWN_KEYS})[:SHOWN])
    exceeds = limit.count is None or len(found) > limit.count
    return Measurement(
        entities=found if exceeds else (),
        measured=counted(len(found)),
        limit="none, it only warns" if limit.count is None else counted(limit.count),
        why=f"the cluster has keys that this version does not know ({keys}) on {listed(found)}; they stay as they are",
        set_in=limit.set_in,
        only_warns=limit.count is None,
    )
