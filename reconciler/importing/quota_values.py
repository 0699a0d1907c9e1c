"""Keys and plain numbers of other tools, checked as a manifest's are. None of these tools knows units."""

from __future__ import annotations

import math
import re
from typing import Final

from reconciler.formats import ValueRefusedError, declarable, did_you_mean, number_text, parse_value, shown
from reconciler.importing.found import Gatherer
from reconciler.model import KNOWN_KEYS, Entity, QuotaKey, Span, legal_keys

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST: Final = 400


def read_value(out: Gatherer, entity: Entity, key: str, text: str, place: Span) -> float | None:
    """The number that Kafka gets: the double nearest to the text, as every one of these tools sends it.

    ``None`` after a finding: an unknown key, one that is not for this entity, no plain number, or one that Kafka refuses.
    """
    legal = legal_keys(entity.types)
    if key not in KNOWN_KEYS:
        out.refuse("unknown-quota-key", f"{shown(key)} is not a quota key{did_you_mean(key, KNOWN_KEYS)}", place, entity=entity)
        return None
    if key not in legal:
        message = f"{key} cannot be set for {' and '.join(entity.types)}; possible: {', '.join(legal)}"
        out.refuse("key-not-for-entity", message, place, entity=entity, key=key)
        return None
    number = plain_number(text)
    if number is None:
        message = f"{key} is {shown(text)}, which is not a plain number; write its digits"
        out.refuse("value-syntax", message, place, entity=entity, key=key)
        return None
    if not declarable(QuotaKey(key), number):
        rule_id, message = _why_not(QuotaKey(key), number)
        out.refuse(rule_id, message, place, entity=entity, key=key)
        return None
    return number


def plain_number(text: str) -> float | None:
    """The double of a decimal number (``1024``, ``2.0E7``); ``None`` for anything else."""
    return float(text) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None


def _why_not(key: QuotaKey, number: float) -> tuple[str, str]:
    if math.isinf(number):
        return "value-not-finite", f"{key} is beyond every number; to set no limit, leave the key out"
    try:
        parse_value(key, number_text(number))
    except ValueRefusedError as refused:
        return refused.id, str(refused)
    msg = f"{number!r} can be declared for {key}"
    raise AssertionError(msg)
