"""What somebody asks to be altered by hand, checked before a cluster is asked: one entity, keys to set, keys to remove."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.errors import UsageError
from reconciler.formats import ValueRefusedError, declarable, parse_value
from reconciler.manifest import name_problems
from reconciler.model import DEFAULT, Alteration, Entity, QuotaKey, escaped, legal_keys
from reconciler.resolution import entity_refusal, unsendable, value_refusal
from reconciler.text import did_you_mean, number_text, shown

_NO_BROKER_TAKES: Final = {"value-not-positive": 0.0, "value-too-large": math.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRequest:
    """Made by ``make_alter_request``. Values are per broker, in the unit of the key; no key is in ``add`` and ``delete``."""

    entity: Entity
    add: Mapping[str, float]
    delete: tuple[str, ...] = ()


def make_alter_request(
    entity: Entity, *, add: Mapping[str, str | float] | None = None, delete: Collection[str] = ()
) -> AlterRequest:
    """A request, checked as far as that is possible without a cluster.

    A value is a number, or text as in manifests (``10MiB``). Raises ``UsageError`` when nothing is asked for, for an entity that
    Kafka has not, a key that is unknown, not for this entity, or both set and removed, and a value that Kafka would refuse or
    bend; the message has a broker's own words where it has any.
    """
    wanted = add or {}
    if not wanted and not delete:
        raise UsageError("nothing is asked for: say --add KEY=VALUE,... or --delete KEY,..., or both")
    _require_entity(entity)
    for key in (*wanted, *delete):
        _require_key(entity, key)
    both = sorted(wanted.keys() & set(delete))
    if both:
        raise UsageError(f"{both[0]} cannot be both added and deleted")
    values = {key: _value(QuotaKey(key), value) for key, value in wanted.items()}
    return AlterRequest(entity=entity, add=values, delete=tuple(sorted(set(delete))))


def name_warnings(entity: Entity) -> Iterator[tuple[str, str]]:
    """Ids of rules and sentences about names that Kafka takes and that are most likely a mistake; ``explain`` knows the ids."""
    for entity_type, name in entity.parts:
        if name is not DEFAULT:
            yield from name_problems(entity_type, name)


def _require_entity(entity: Entity) -> None:
    words = entity_refusal(entity)
    if words is None:
        words = unsendable(Alteration(entity=entity, ops={}))
        if words is not None:
            raise UsageError(f"{entity} cannot be altered: {words}")
        return
    ours = next((message for rule_id, message in name_warnings(entity) if rule_id == "ip-invalid"), "Kafka has no such entity")
    raise UsageError(f"{entity} cannot be altered: {ours}; a broker says: {escaped(words)}")


def _require_key(entity: Entity, key: str) -> None:
    legal = [one.value for one in legal_keys(entity.types)]
    if key in legal:
        return
    if key in QuotaKey.__members__.values():
        why = f"{key} cannot be set for {entity}; it takes {', '.join(legal)}; a broker says: Invalid configuration key {key}"
        raise UsageError(why)
    near = did_you_mean(key, legal)
    near = near if near.startswith("; did") else ""
    raise UsageError(f"there is no quota key {shown(key)}; {entity} takes {', '.join(legal)}{near}")


def _value(key: QuotaKey, value: str | float) -> float:
    if isinstance(value, str):
        try:
            return parse_value(key, value).number
        except ValueRefusedError as refused:
            said = _broker_words(key, refused.id, value)
            raise UsageError(f"{key}={escaped(value)}: {refused}{said} [{refused.id}]") from None
    number = float(value)
    if not declarable(key, number):
        words = value_refusal(key, number)
        said = f"; a broker says: {words}" if words else ""
        raise UsageError(f"{key}={number_text(number)}: {key} is in {key.unit}, and this is no limit that Kafka can keep{said}")
    return number


def _broker_words(key: QuotaKey, rule_id: str, text: str) -> str:
    """What a broker would answer to this value, if it was sent one; nothing for what is no number at all."""
    number = _NO_BROKER_TAKES.get(rule_id)
    if number is None:
        try:
            number = float(text)
        except ValueError:
            return ""
    words = value_refusal(key, number)
    return f"; a broker says: {words}" if words else ""
