"""A broker's answer to a describe filter, without a broker, and the narrowest filter that covers a selector.

Source: Kafka's ``ClientQuotasImage.describe`` (KIP-546). Match type 2, ``SPECIFIED``, asks for a type to be part of the entity,
and so includes its default. Kafka has no match for "any but the default", nor for prefixes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import DEFAULT, Entity, EntityName, EntityType, MatchKind, Quotas, Selector, TypeMatch
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
from reconciler.resolution.broker_rules import INVALID_REQUEST

UNSUPPORTED_VERSION: Final = 35
"""A broker's error code for a filter with an entity type that it does not know."""

_KNOWN_TYPES: Final = frozenset(t.value for t in EntityType)
_AS_IN_KAFKA: Final = {
    MatchKind.NAME: FilterKind.EXACT,
    MatchKind.DEFAULT: FilterKind.DEFAULT,
    MatchKind.ANY: FilterKind.SPECIFIED,
}


def nearest_filter(selector: Selector) -> EntityFilter:
    """The narrowest filter of Kafka's that lets everything through which the selector selects."""
    return EntityFilter(components=tuple(_component(t, wanted) for t, wanted in selector.types), strict=selector.strict)


def is_exact(selector: Selector) -> bool:
    """True when ``nearest_filter`` lets nothing else through: a broker can do it all."""
    return all(wanted.kind in _AS_IN_KAFKA for _, wanted in selector.types)


def _component(entity_type: str, wanted: TypeMatch) -> FilterComponent:
    kind = _AS_IN_KAFKA.get(wanted.kind, FilterKind.SPECIFIED)
    return FilterComponent(entity_type=entity_type, kind=kind, name=wanted.text if kind is FilterKind.EXACT else None)


def filter_refusal(entity_filter: EntityFilter) -> tuple[int, str] | None:
    """The error code and the words with which a KRaft broker refuses the filter; ``None`` for one that it takes."""
    seen: set[str] = set()
    for component in entity_filter.components:
        entity_type, kind, name = component.entity_type, component.kind, component.name
        if not entity_type:
            return INVALID_REQUEST, "Invalid empty entity type."
        if entity_type in seen:
            return INVALID_REQUEST, f"Entity type {entity_type} cannot appear more than once in the filter."
        if entity_type not in _KNOWN_TYPES:
            return UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}"
        if (name is not None) != (kind is FilterKind.EXACT):
            reason = "set match string to null" if name is None else "also specified a match string."
            return INVALID_REQUEST, f"Request specified MATCH_TYPE_{kind.name}, but {reason}"
        seen.add(entity_type)
    if EntityType.IP.value in seen and len(seen) > 1:
        return INVALID_REQUEST, (
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter "
            "component."
        )
    return None


def answer(entity_filter: EntityFilter, entities: Mapping[Entity, Quotas]) -> dict[Entity, Quotas]:
    """The entities that match, as a broker would answer for this state; only those with at least one quota.

    The filter must be one that ``filter_refusal`` lets pass.
    """
    components, strict = entity_filter.components, entity_filter.strict
    if not components:
        return {} if strict else {entity: quotas for entity, quotas in entities.items() if quotas}
    return {
        entity: quotas
        for entity, quotas in entities.items()
        if quotas
        and (not strict or len(entity.parts) == len(components))
        and all(_matches(component, entity.name(component.entity_type)) for component in components)
    }


def _matches(component: FilterComponent, name: EntityName | None) -> bool:
    match component.kind:
        case FilterKind.EXACT:
            return name is not None and name == component.name
        case FilterKind.DEFAULT:
            return name is DEFAULT
        case FilterKind.SPECIFIED:
            return name is not None
