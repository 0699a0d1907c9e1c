"""What a client gets without a key: the weaker quota that the manifests declare, in findings about values that mean no limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import (
    DEFAULT,
    DesiredState,
    Entity,
    EntityType,
    Finding,
    QuotaKey,
    compose,
    flag_part,
)
from reconciler.resolution import named_or_other, weaker_levels

NO_LIMIT: Final = frozenset({"value-not-finite", "value-not-positive", "value-too-large", "value-missing"})
"""The findings about values by which authors mean no limit."""


def with_fallbacks(findings: Sequence[Finding], states: Sequence[DesiredState]) -> tuple[Finding, ...]:
    """The findings, with the declared quota that decides without the refused one. ``states``: of each cluster."""
    return tuple(_with_fallback(finding, states) if finding.id in NO_LIMIT else finding for finding in findings)


def _with_fallback(finding: Finding, states: Sequence[DesiredState]) -> Finding:
    if finding.entity is None or finding.key is None:
        return finding
    key = QuotaKey(finding.key)
    weaker = dict.fromkeys(fallback for state in states if (fallback := _declared(finding.entity, key, state)) is not None)
    if not weaker:
        return finding
    (entity, text), *others = weaker
    message = compose(
        "{message}. Here, {entity} would limit it to {value}{more}",
        message=finding.message,
        entity=entity,
        value=flag_part(text),
        more=" (on one of the clusters)" if others else "",
    )
    return replace(finding, message=message)


def _declared(entity: Entity, key: QuotaKey, state: DesiredState) -> tuple[Entity, str] | None:
    """The strongest weaker entity that all clients of this one meet and that declares the key, with its value as written."""
    for weaker in _weaker_entities(entity):
        declared = state.entities.get(weaker)
        quota = None if declared is None else declared.quotas.get(key) or declared.units.get(key)
        if quota is not None:
            return weaker, quota.text
    return None


def _weaker_entities(entity: Entity) -> Iterator[Entity]:
    if entity.name(EntityType.IP) is not None:
        yield from () if entity.has_default else (Entity.of({EntityType.IP: DEFAULT}),)
        return
    user, client_id = named_or_other(entity)
    for level in weaker_levels(entity):
        if (weaker := level.entity_for(user, client_id)) is not None:
            yield weaker
