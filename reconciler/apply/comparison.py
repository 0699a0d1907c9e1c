"""One change against what the cluster has: as planned before, as written, or something else, in words for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.formats import number_text
from reconciler.model import Change, Entity, Quotas, same_value

_NAMED: Final = 5


def shows(change: Change, live: Mapping[Entity, Quotas]) -> bool:
    """True when the cluster has every key of the change as planned."""
    quotas = live.get(change.entity, {})
    return all(same_value(quotas.get(key.key), key.after) for key in change.keys)


def is_as_before(change: Change, live: Mapping[Entity, Quotas]) -> bool:
    """True when the cluster has every key of the change as it was when planned."""
    quotas = live.get(change.entity, {})
    return all(same_value(quotas.get(key.key), key.before) for key in change.keys)


def unlike_before(change: Change, live: Mapping[Entity, Quotas]) -> str | None:
    """What differs from the moment of planning; ``None`` when the cluster still has every key as it was then."""
    quotas = live.get(change.entity, {})
    for key in change.keys:
        now = quotas.get(key.key)
        if not same_value(now, key.before):
            return f"{change.entity} {key.key} was {_words(key.before)} when planned and is {_words(now)} now"
    return None


def unlike_after(change: Change, live: Mapping[Entity, Quotas]) -> str | None:
    """What differs from what was written; ``None`` when the cluster has every key as written."""
    quotas = live.get(change.entity, {})
    for key in change.keys:
        now = quotas.get(key.key)
        if not same_value(now, key.after):
            before, after = _words(key.before), _words(key.after)
            return f"{change.entity} {key.key} was {before} when planned, was written as {after}, and is {_words(now)} now"
    return None


def named(texts: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = f" (and {len(texts) - _NAMED} more)" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more


def _words(value: float | None) -> str:
    return "not set" if value is None else number_text(value)
