"""A quota that equals what its clients would have without it, from the next level and in the same quota groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from reconciler.model import Entity, Finding
from reconciler.policy.lint.subject import DEFAULT_CLIENT, DEFAULT_IP, DEFAULT_PAIR, DEFAULT_USER, IP, Subject, lint
from reconciler.resolution import level_of, named_or_other, weaker_levels

_DEFAULTS: Final = frozenset({DEFAULT_USER, DEFAULT_CLIENT, DEFAULT_IP, DEFAULT_PAIR})


def same_as_fallback(subject: Subject) -> Iterator[Finding]:
    """Only where it is so for all clients of the entity; a pair beside its user's quota is another quota group."""
    after = subject.after
    keys_of_level: dict[int, set[str]] = {}
    for entity, quotas in after.items():
        if (level := level_of(entity)) is not None:
            keys_of_level.setdefault(level.number, set()).update(quotas)
    for entity, declared in subject.desired.entities.items():
        if entity in _DEFAULTS:
            continue
        for key, quota in declared.quotas.items():
            fallback = _fallback(subject, entity, key.value, keys_of_level)
            if fallback is None or fallback.types != entity.types or after[fallback][key] != quota.value:
                continue
            message = f"{key} of {entity} is what it has without it, from {fallback}"
            related = subject.related([fallback], "the quota of the next level", key)
            yield lint("same-as-fallback", message, entity=entity, key=key, span=quota.source, related=related)


def _fallback(subject: Subject, entity: Entity, key: str, keys_of_level: Mapping[int, Collection[str]]) -> Entity | None:
    """The entity that would set this key for all clients of another one without it; ``None``: none, or not for all."""
    if entity.name(IP) is not None:
        return DEFAULT_IP if key in subject.after.get(DEFAULT_IP, ()) else None
    user, client_id = named_or_other(entity)
    for level in weaker_levels(entity):
        if key not in keys_of_level.get(level.number, ()):
            continue
        weaker = level.entity_for(user, client_id)
        if weaker is None:
            # It needs a name that the entity does not give, and so catches some of its clients.
            return None
        if key in subject.after.get(weaker, ()):
            return weaker
    return None
