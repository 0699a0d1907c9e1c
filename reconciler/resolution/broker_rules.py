"""Refusals and describe answers of a KRaft broker in its own words, without a broker; the names of its settings for quotas.

Source: Kafka's ``ClientQuotaControlManager`` as of 4.4. 3.5 to 4.3 took NaN, and infinity for DOUBLE keys (``finite_only`` is
false). 3.0 to 3.4 also took zero and negative values, and rounded fractions.
A broker answers each of these with ``INVALID_REQUEST`` (42) for that entity and writes nothing of it. The answer to a filter is
that of ``ClientQuotasImage.describe`` (KIP-546): match type 2, ``SPECIFIED``, asks for a type to be part of the entity, and so
includes its default. Kafka has no match for "any but the default", nor for prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from reconciler.model import (
    DEFAULT,
    INT_MAX,
    KNOWN_KEYS,
    LONG_MAX,
    Alteration,
    Entity,
    EntityName,
    EntityType,
    MatchKind,
    QuotaKey,
    Quotas,
    Selector,
    TypeMatch,
    ValueType,
    legal_keys,
)
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
from reconciler.resolution.kafka_names import LONGEST_STRING, literal_address

INVALID_REQUEST: Final = 42
"""The error code of every refusal here."""

_FRACTION: Final = 1e-6
_KNOWN_TYPES: Final = frozenset(t.value for t in EntityType)


WINDOW_NUM: Final = "quota.window.num"
WINDOW_SECONDS: Final = "quota.window.size.seconds"
CONTROLLER_WINDOW_NUM: Final = "controller.quota.window.num"
CONTROLLER_WINDOW_SECONDS: Final = "controller.quota.window.size.seconds"
BROKER_SETTINGS: Final = {WINDOW_NUM: 11, WINDOW_SECONDS: 1, CONTROLLER_WINDOW_NUM: 11, CONTROLLER_WINDOW_SECONDS: 1}
"""By name, Kafka's defaults."""
UNSUPPORTED_VERSION: Final = 35
"""A broker's error code for a filter with an entity type that it does not know."""
_AS_IN_KAFKA: Final = {
    MatchKind.NAME: FilterKind.EXACT,
    MatchKind.DEFAULT: FilterKind.DEFAULT,
    MatchKind.ANY: FilterKind.SPECIFIED,
}


def refusal(alteration: Alteration, *, finite_only: bool = True) -> str | None:
    """Return why a broker refuses the alteration, in its words. ``None`` when it takes it, unless ``needs_broker``.

    With several things wrong the broker names any one of them; here it is the first. Removals are never checked: a key that is
    unknown or not set is removed without a word.
    """
    return unsendable(alteration) or entity_refusal(alteration.entity) or _ops_refusal(alteration, finite_only=finite_only)


def needs_broker(entity: Entity) -> bool:
    """True when only a broker knows whether it takes the entity: an ip that is not an address, which the controller looks up."""
    name = entity.name(EntityType.IP)
    return isinstance(name, str) and entity.types == (EntityType.IP,) and literal_address(name) is None


def entity_refusal(entity: Entity) -> str | None:
    """Return why a broker refuses the entity in any alteration."""
    for entity_type, name in entity.parts:
        if entity_type not in _KNOWN_TYPES:
            return f"Unhandled client quota entity type: {entity_type}"
        if name == "":
            return f"Empty {entity_type} not supported"
    if EntityType.IP.value in entity.types and len(entity.parts) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    return None


def is_alterable(entity: Entity) -> bool:
    """Whether a broker certainly takes a change of the entity. It refuses even a removal where it refuses the entity.

    Of a host name only the controller knows. An apply that is refused for one entity is refused whole, on every run.
    """
    return entity_refusal(entity) is None and not needs_broker(entity)


def value_refusal(key: str, value: float, *, finite_only: bool = True) -> str | None:
    """Return why a broker refuses a value for a key that is legal on the entity."""
    if finite_only and not math.isfinite(value):
        return f"Quota {key} must be a finite number"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    kind = QuotaKey(key).value_type
    if kind is ValueType.DOUBLE:
        return None
    if value > (LONG_MAX if kind is ValueType.LONG else INT_MAX):
        return f"Proposed value for {key} is too large for {'a LONG' if kind is ValueType.LONG else 'an INT'}."
    # One-sided: 1.0000001 passes, 0.9999999 does not. NaN compares false.
    if math.fmod(value, 1.0) > _FRACTION:
        return f"{key} cannot be a fractional value."
    return None


def unsendable(alteration: Alteration) -> str | None:
    """Return why the alteration does not fit into a request at all. These words are ours, because a broker has none for it."""
    parts = alteration.entity.parts
    for text in (*(t for t, _ in parts), *(n for _, n in parts if n is not DEFAULT), *alteration.ops):
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return "a name or key is not Unicode text (it has half a surrogate pair)"
        if size > LONGEST_STRING:
            return f"a name or key is longer than {LONGEST_STRING} bytes"
    return None


def _ops_refusal(alteration: Alteration, *, finite_only: bool) -> str | None:
    legal = {key.value for key in legal_keys(alteration.entity.types)}
    for key, value in alteration.ops.items():
        if value is None:
            continue
        if key not in KNOWN_KEYS or key not in legal:
            return f"Invalid configuration key {key}"
        if refused := value_refusal(key, value, finite_only=finite_only):
            return refused
    return None


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
