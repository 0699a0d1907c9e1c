"""Drift classes: desired (D), baseline (B) and live (L) state compared entity by entity; pure, and total over all three.

For an entity that the manifests declare, or that the scope holds, the first that is true counts:

- in sync: L = D
- unapplied: L = B, and so B differs from D: merged, and not applied yet
- missing: in B, and nothing of it is live: somebody removed it
- changed: live with other values than B, or than D if B does not have it: somebody changed it
- unmanaged: in neither B nor D, and live

Without a baseline the middle three are ``differs``. Entities outside the scope are never written, so they are unmanaged, whatever
the baseline has. Values are compared as brokers do, and only for the keys that this tool knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model.cluster import Scope
from reconciler.model.drift import DriftClass, EntityDrift, KeyDrift
from reconciler.model.entity import Entity
from reconciler.model.quota import KNOWN_KEYS, QuotaKey
from reconciler.model.state import DesiredEntity, DesiredState, Quotas, same_value

_NOTHING: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that is not in sync, in canonical order, and how many entities each class has."""

    entities: tuple[EntityDrift, ...]
    counts: Mapping[DriftClass, int]


def compare(
    desired: DesiredState, live: Mapping[Entity, Quotas], baseline: Mapping[Entity, Quotas] | None, *, scope: Scope
) -> Comparison:
    """Classify every entity that any side has.

    When only some manifests were read (``desired`` is not complete), only what they declare is looked at: of the rest it is not
    known whether another manifest has it.
    """
    candidates = set(desired.entities)
    if desired.complete:
        candidates |= live.keys() | (baseline or {}).keys()
    counts = dict.fromkeys(DriftClass, 0)
    found: list[EntityDrift] = []
    for entity in candidates:
        one = _entity(entity, desired.entities.get(entity), live, baseline, scope)
        if one is None:
            continue
        counts[one.drift] += 1
        if one.drift is not DriftClass.IN_SYNC:
            found.append(one)
    return Comparison(entities=tuple(sorted(found, key=lambda one: one.entity.sort_key)), counts=counts)


def _entity(
    entity: Entity,
    declared: DesiredEntity | None,
    live: Mapping[Entity, Quotas],
    baseline: Mapping[Entity, Quotas] | None,
    scope: Scope,
) -> EntityDrift | None:
    """``None`` for an entity that is not there and shall not be."""
    owned = scope.contains(entity)
    if not owned:
        declared = None
    wanted = _wanted(declared)
    present = live.get(entity, _NOTHING)
    was = None if baseline is None or not owned else baseline.get(entity)
    drift = _classify(wanted, _known(present), was, declared=declared is not None, has_baseline=baseline is not None)
    if drift is DriftClass.IN_SYNC and not wanted and not present:
        return None
    if declared is None and (drift is DriftClass.IN_SYNC or was is None):
        drift = DriftClass.UNMANAGED
    keys = _keys(declared, wanted, present, was, everything=drift is DriftClass.UNMANAGED)
    return EntityDrift(entity=entity, drift=drift, keys=tuple(keys), source=declared.source if declared else None)


def _classify(wanted: Quotas, live: Quotas, was: Quotas | None, *, declared: bool, has_baseline: bool) -> DriftClass:
    if _equal(live, wanted):
        return DriftClass.IN_SYNC
    if not has_baseline:
        return DriftClass.DIFFERS if declared else DriftClass.UNMANAGED
    if _equal(live, _known(was or _NOTHING)):
        return DriftClass.UNAPPLIED
    return DriftClass.CHANGED if live else DriftClass.MISSING


def _wanted(declared: DesiredEntity | None) -> Quotas:
    return _NOTHING if declared is None else {key.value: quota.value for key, quota in declared.quotas.items()}


def _known(quotas: Quotas) -> Quotas:
    return quotas if quotas.keys() <= KNOWN_KEYS else {key: value for key, value in quotas.items() if key in KNOWN_KEYS}


def _equal(one: Quotas, other: Quotas) -> bool:
    return one.keys() == other.keys() and all(same_value(value, other[key]) for key, value in one.items())


def _keys(
    declared: DesiredEntity | None, wanted: Quotas, live: Quotas, was: Quotas | None, *, everything: bool
) -> Iterator[KeyDrift]:
    before = was or _NOTHING
    for key in sorted(wanted.keys() | live.keys() | before.keys()):
        sides = (wanted.get(key), before.get(key), live.get(key))
        agree = same_value(sides[0], sides[2]) and (was is None or same_value(sides[1], sides[2]))
        if not everything and (agree or key not in KNOWN_KEYS):
            continue
        quota = declared.quotas.get(QuotaKey(key)) if declared is not None and key in KNOWN_KEYS else None
        source = quota.source if quota else None
        yield KeyDrift(key=key, desired=sides[0], baseline=sides[1], live=sides[2], source=source)
