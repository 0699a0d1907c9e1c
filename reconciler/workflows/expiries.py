"""Values that expired: which fallbacks need no new review, and what an earlier state of the manifests was applied as."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from reconciler.manifest import compute_units
from reconciler.model import (
    BrokerFacts,
    Change,
    CurrentState,
    DeclaredExpiry,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    Message,
    QuotaKey,
    Quotas,
    ValueExpiry,
    compose,
    flag_part,
    name_part,
    same_value,
)
from reconciler.resolution import QuotaView
from reconciler.text import count_of, live_expiry_text, moment_text
from reconciler.workflows.references import Before

_MOST_NOTES: Final = 10


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
    """What a state declares to follow an expired value; NaN, which no manifest declares, when it has none that expired."""
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
    count = sum(not expiry.expired for declared in desired.entities.values() for expiry in declared.expiries.values())
    following = desired.next_expiry()
    if following is not None:
        yield compose(
            "Judged before an expiry: {values}, first on {when}. What follows was not judged. To judge it, declare it without "
            "{until}.",
            values=count_of(count, "value expires", "values expire"),
            when=name_part(moment_text(following)),
            until=flag_part("until"),
        )


def live_expiries(desired: DesiredState, live: CurrentState | QuotaView) -> dict[tuple[Entity, str], ValueExpiry]:
    """By entity and key, the expiries of values that apply: of declared ones, and of expired ones that are still there."""
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


def expiry_notes(expiries: Mapping[tuple[Entity, str], ValueExpiry]) -> Iterator[str]:
    """A sentence for each of some values that expire, for outputs without a column for it."""
    for (entity, key), expiry in itertools.islice(expiries.items(), _MOST_NOTES):
        yield f"{key} of {entity} is temporary: {live_expiry_text(key, expiry)}"
    if len(expiries) > _MOST_NOTES:
        yield f"{count_of(len(expiries) - _MOST_NOTES, 'more value is', 'more values are')} temporary"


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
