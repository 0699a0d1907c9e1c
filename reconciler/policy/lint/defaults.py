"""Rules about default entities: whom the first one captures, and who escapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import DEFAULT, OTHER, DesiredEntity, Entity, Finding, MatchKind, QuotaKey, display_name
from reconciler.policy.lint.subject import (
    CLIENT,
    DEFAULT_CLIENT,
    DEFAULT_IP,
    DEFAULT_PAIR,
    DEFAULT_USER,
    USER,
    USER_DEFAULTS,
    Subject,
    lint,
)
from reconciler.resolution import CLIENT_PRECEDENCE, USER_LEVELS, NameMatch, named_or_other

_EVERYONE: Final = {
    DEFAULT_USER: "every user without a quota of its own, ANONYMOUS included",
    DEFAULT_PAIR: "every user and client without a stronger quota, ANONYMOUS included",
    DEFAULT_CLIENT: "every client that no quota of a user reaches",
    DEFAULT_IP: "every address, those of brokers, health checks and load balancers included",
}


def captures_protected(subject: Subject) -> Iterator[Finding]:
    """A default that reaches users whom the cluster protects by name and who have no quota of their own for the key."""
    protected = protected_users(subject)
    for declared in _defaults(subject) if protected else ():
        for key, quota in declared.quotas.items():
            if captured := _captured(subject, declared.entity, key, protected):
                names = ", ".join(display_name(name) for name in captured)
                message = (
                    f"{key} of {declared.entity} also limits {names}, protected on this cluster; give them quotas of their own"
                )
                yield lint("default-captures-protected", message, entity=declared.entity, key=key, span=quota.source)


def first_default(subject: Subject) -> Iterator[Finding]:
    """A default of a kind that the cluster does not have yet. Offline nobody knows."""
    if subject.before is None:
        return
    protected = protected_users(subject)
    for declared in _defaults(subject):
        entity = declared.entity
        for key, quota in declared.quotas.items():
            if key in subject.before.get(entity, ()):
                continue
            captured = _captured(subject, entity, key, protected)
            also = f"; of those protected it captures {', '.join(map(display_name, captured))}" if captured else ""
            message = f"the cluster has no {key} for {entity} yet: it captures at once {_EVERYONE[entity]}{also}"
            yield lint("first-default", message, entity=entity, key=key, span=quota.source)


def empty_client_id_escapes(subject: Subject) -> Iterator[Finding]:
    """A default client-id quota, where nothing limits clients that send an empty client id."""
    for entity, declared in subject.desired.entities.items():
        if entity.parts[-1] != (CLIENT, DEFAULT):
            continue
        user, _ = named_or_other(entity)
        levels = (level for level in CLIENT_PRECEDENCE if level.number in USER_LEVELS)
        catching = [caught for level in levels if (caught := level.entity_for(user, "")) is not None]
        open_keys = [key.value for key in declared.quotas if not any(key in subject.after.get(e, ()) for e in catching)]
        if open_keys:
            message = f"an empty client id escapes {entity}: no quota of a user limits its {', '.join(open_keys)}"
            yield lint("empty-client-id-escapes", message, entity=entity, span=declared.source)


def protected_users(subject: Subject) -> tuple[str, ...]:
    """The users whom the cluster protects by their literal name, in order."""
    names = {
        wanted.text: None
        for selector in subject.spec.protected
        for entity_type, wanted in selector.types
        if entity_type == USER and wanted.kind is MatchKind.NAME
    }
    return tuple(names)


def _defaults(subject: Subject) -> Iterator[DesiredEntity]:
    for entity in _EVERYONE:
        declared = subject.desired.entities.get(entity)
        if declared is not None:
            yield declared


def _captured(subject: Subject, default: Entity, key: QuotaKey, protected: tuple[str, ...]) -> list[str]:
    if default == DEFAULT_IP:
        return []
    if default == DEFAULT_CLIENT and any(key in subject.after.get(e, ()) for e in USER_DEFAULTS):
        return []
    return [name for name in protected if not _has_its_own(subject, name, key)]


def _has_its_own(subject: Subject, name: str, key: QuotaKey) -> bool:
    of_user = (level for level in CLIENT_PRECEDENCE if level.user is NameMatch.NAME)
    own = (level.entity_for(name, OTHER) for level in of_user)
    return any(key in subject.after.get(entity, ()) for entity in own if entity is not None)
