"""A quota that equals what its clients would have without it, from the next level and in the same buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import DEFAULT, Entity, EntityName, Finding
from reconciler.policy.lint.subject import (
    CLIENT,
    DEFAULT_CLIENT,
    DEFAULT_IP,
    DEFAULT_PAIR,
    DEFAULT_USER,
    IP,
    USER,
    Subject,
    lint,
)

_DEFAULTS: Final = frozenset({DEFAULT_USER, DEFAULT_CLIENT, DEFAULT_IP, DEFAULT_PAIR})


def same_as_fallback(subject: Subject) -> Iterator[Finding]:
    """Only where it holds for all clients that the entity is about; a pair beside its user's quota is another bucket."""
    after = subject.after
    named = {key for entity, quotas in after.items() if _is_default_with_client(entity) for key in quotas}
    defaults = {one: tuple(e for e in _weaker(Entity.of({one: ""})) if e in after) for one in (USER, CLIENT, IP)}
    for entity, declared in subject.desired.entities.items():
        below = defaults[entity.parts[0][0]] if len(entity.parts) == 1 else _weaker(entity)
        if not below or entity in _DEFAULTS:
            continue
        for key, quota in declared.quotas.items():
            next_level = next((e for e in below if key in after.get(e, ())), None)
            if next_level is None or after[next_level][key] != quota.value:
                continue
            if _shares_buckets(entity, next_level) and not (_meets_named_clients(entity) and key.value in named):
                message = f"{key} of {entity} is what it has without it, from {next_level}"
                related = subject.related([next_level], "the quota of the next level", key)
                yield lint("same-as-fallback", message, entity=entity, key=key, span=quota.source, related=related)


def _weaker(entity: Entity) -> Sequence[Entity]:
    """The entities that come after it for its clients, in the order of the eight levels."""
    user, client = entity.name(USER), entity.name(CLIENT)
    if entity.name(IP) is not None:
        return (DEFAULT_IP,)
    if user is None:
        return (DEFAULT_CLIENT,)
    if client is None:
        return (DEFAULT_PAIR, DEFAULT_USER)
    return tuple(_weaker_than_pair(user, client))


def _weaker_than_pair(user: EntityName, client: EntityName) -> Iterator[Entity]:
    if user is not DEFAULT:
        if client is not DEFAULT:
            yield Entity.of({USER: user, CLIENT: DEFAULT})
        yield Entity.of({USER: user})
        if client is not DEFAULT:
            yield Entity.of({USER: DEFAULT, CLIENT: client})
    yield from (DEFAULT_PAIR, DEFAULT_USER)


def _shares_buckets(one: Entity, other: Entity) -> bool:
    return one.types == other.types


def _is_default_with_client(entity: Entity) -> bool:
    """Level 4: it would catch some of the clients of a user before the level that is compared."""
    return len(entity.parts) == 2 and entity.parts[0] == (USER, DEFAULT) and entity.parts[1][1] is not DEFAULT


def _meets_named_clients(entity: Entity) -> bool:
    return isinstance(entity.name(USER), str) and not isinstance(entity.name(CLIENT), str)
