"""Refusals of a KRaft broker in its own words, without a broker, and the names of its settings for quotas.

Source: Kafka's ``ClientQuotaControlManager`` as of 3.5 to 4.x (3.0 to 3.4 took zero and negative values, and rounded fractions).
A broker answers each of these with ``INVALID_REQUEST`` (42) for that entity and writes nothing of it.
"""

from __future__ import annotations

import math
from typing import Final

from reconciler.model import (
    DEFAULT,
    INT_MAX,
    KNOWN_KEYS,
    LONG_MAX,
    Alteration,
    Entity,
    EntityType,
    QuotaKey,
    ValueType,
    legal_keys,
)
from reconciler.resolution.kafka_names import IpVerdict, ip_verdict

INVALID_REQUEST: Final = 42
"""The error code of every refusal here."""

LONGEST_STRING: Final = 32767
"""UTF-8 bytes that a string may have in a request; a broker closes the connection on a longer one."""

_FRACTION: Final = 1e-6
_KNOWN_TYPES: Final = frozenset(t.value for t in EntityType)


def refusal(alteration: Alteration) -> str | None:
    """Why a broker certainly refuses the alteration, in its words; ``None`` when it takes it, unless ``needs_broker``.

    With several things wrong the broker names any one of them; here it is the first. Removals are never checked: a key that is
    unknown or not set is removed without a word.
    """
    return unsendable(alteration) or entity_refusal(alteration.entity) or _ops_refusal(alteration)


def needs_broker(entity: Entity) -> bool:
    """True when only a broker knows whether it takes the entity: an ip that is a host name, which the controller looks up."""
    name = entity.name(EntityType.IP)
    return isinstance(name, str) and entity.types == (EntityType.IP,) and ip_verdict(name) is IpVerdict.ASK_BROKER


def entity_refusal(entity: Entity) -> str | None:
    """Why a broker refuses the entity, whatever is done to it."""
    for entity_type, name in entity.parts:
        if entity_type not in _KNOWN_TYPES:
            return f"Unhandled client quota entity type: {entity_type}"
        if name == "":
            return f"Empty {entity_type} not supported"
    address = entity.name(EntityType.IP)
    if address is None or address is DEFAULT:
        return _combination(entity)
    if refused := _combination(entity):
        return refused
    return f"{address} is not a valid IP or resolvable host." if ip_verdict(address) is IpVerdict.INVALID else None


def is_alterable(entity: Entity) -> bool:
    """Whether a broker certainly takes a change of the entity. It refuses even a removal where it refuses the entity.

    Of a host name only the controller knows. An apply that is refused for one entity is refused whole, on every run.
    """
    return entity_refusal(entity) is None and not needs_broker(entity)


def _combination(entity: Entity) -> str | None:
    if EntityType.IP.value in entity.types and len(entity.parts) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    return None


def value_refusal(key: str, value: float) -> str | None:
    """Why a broker refuses a value for a key that is legal on the entity. NaN passes for all, +Infinity for DOUBLE keys."""
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
    """Why the alteration does not fit into a request at all; these words are ours, because a broker has none for it."""
    for text in _texts(alteration):
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return "a name or key is not Unicode text (it has half a surrogate pair)"
        if size > LONGEST_STRING:
            return f"a name or key is longer than {LONGEST_STRING} bytes"
    return None


def _texts(alteration: Alteration) -> tuple[str, ...]:
    parts = alteration.entity.parts
    return (*(t for t, _ in parts), *(n for _, n in parts if n is not DEFAULT), *alteration.ops)


def _ops_refusal(alteration: Alteration) -> str | None:
    legal = {key.value for key in legal_keys(alteration.entity.types)}
    for key, value in alteration.ops.items():
        if value is None:
            continue
        if key not in KNOWN_KEYS or key not in legal:
            return f"Invalid configuration key {key}"
        if refused := value_refusal(key, value):
            return refused
    return None


WINDOW_NUM: Final = "quota.window.num"
WINDOW_SECONDS: Final = "quota.window.size.seconds"
CONTROLLER_WINDOW_NUM: Final = "controller.quota.window.num"
CONTROLLER_WINDOW_SECONDS: Final = "controller.quota.window.size.seconds"

BROKER_SETTINGS: Final = {WINDOW_NUM: 11, WINDOW_SECONDS: 1, CONTROLLER_WINDOW_NUM: 11, CONTROLLER_WINDOW_SECONDS: 1}
"""By name, Kafka's defaults."""
