"""Rules about precedence: quotas that never apply, that repeat their fallback or multiply, and the reach of defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from reconciler.model import (
    CLIENT_KEYS,
    DEFAULT,
    OTHER,
    DesiredEntity,
    Entity,
    Finding,
    MatchKind,
    Message,
    QuotaKey,
    compose,
    display_name,
    join_messages,
    key_part,
    name_part,
)
from reconciler.policy.guard_context import name_entities
from reconciler.policy.lint.subject import (
    CLIENT,
    DEFAULT_CLIENT,
    DEFAULT_IP,
    DEFAULT_PAIR,
    DEFAULT_USER,
    IP,
    USER,
    USER_DEFAULTS,
    Subject,
    lint,
)
from reconciler.resolution import CLIENT_PRECEDENCE, USER_LEVELS, NameMatch, level_of, named_or_other, weaker_levels
from reconciler.text import count_of


def default_hides_client_ids(subject: Subject) -> Iterator[Finding]:
    """A declared default-user quota above quotas of client ids, declared or live."""
    for key in CLIENT_KEYS:
        hider = _hider(subject, key)
        if hider is None or (declared := subject.desired.entities.get(hider)) is None or key not in declared.quotas:
            continue
        hidden = [entity for entity, quotas in subject.after.items() if entity.types == (CLIENT,) and key in quotas]
        if hidden:
            message = compose(
                "{key} of {hider} overrides {count} for every client: {names}.",
                key=key_part(key),
                hider=hider,
                count=count_of(len(hidden), "client-id quota"),
                names=name_entities(hidden),
            )
            related = subject.related(hidden, "this quota never wins", key)
            yield lint(
                "default-hides-client-ids", message, entity=hider, key=key, span=declared.quotas[key].source, related=related
            )


def client_id_never_wins(subject: Subject) -> Iterator[Finding]:
    """A declared client-id quota below a default-user quota, declared or live."""
    hiders = {key: hider for key in CLIENT_KEYS if (hider := _hider(subject, key)) is not None}
    if not hiders:
        return
    for entity, declared in subject.desired.entities.items():
        if entity.parts[0][0] != CLIENT:
            continue
        for key, quota in declared.quotas.items():
            if (hider := hiders.get(key)) is not None:
                where = "" if subject.place(hider) else " (on the cluster)"
                message = compose(
                    "{hider}{where} overrides {key} of {entity} for every client, because any user level is stronger.",
                    hider=hider,
                    where=where,
                    key=key_part(key),
                    entity=entity,
                )
                related = subject.related([hider], "the quota that always wins", key)
                yield lint("client-id-never-wins", message, entity=entity, key=key, span=quota.source, related=related)


def _hider(subject: Subject, key: QuotaKey) -> Entity | None:
    """The default that every client with a client id meets before any client-id level; without one it meets none of those."""
    return next((entity for entity in USER_DEFAULTS if key in subject.after.get(entity, ())), None)


def multiplies(subject: Subject) -> Iterator[Finding]:
    """Users with the default client-id: each client id takes the full rate, and a cap of the user itself no longer applies."""
    for entity, declared in subject.desired.entities.items():
        if len(entity.parts) != 2 or entity.parts[1] != (CLIENT, DEFAULT) or not declared.quotas:
            continue
        alone = Entity(parts=entity.parts[:1])
        bypassed = [key for key in declared.quotas if key in subject.after.get(alone, ())]
        rest = [key.value for key in declared.quotas if key not in bypassed]
        for key in bypassed:
            message = compose(
                "{entity} gives each client-id the full {key}. {alone} then caps only clients that send no client-id, because "
                "exactly one quota applies.",
                entity=entity,
                key=key_part(key),
                alone=alone,
            )
            related = subject.related([alone], "the cap that does not apply", key)
            yield lint("user-cap-bypassed", message, entity=entity, key=key, span=declared.quotas[key].source, related=related)
        if rest:
            message = compose(
                "{entity} gives each client-id the full {keys}. The user as a whole has no cap.",
                entity=entity,
                keys=join_messages(Message([key_part(key)]) for key in rest),
            )
            yield lint("default-client-multiplies", message, entity=entity, span=declared.source)


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
            message = compose(
                "{key} for {entity} is redundant. {fallback} already sets the same value.",
                key=key_part(key),
                entity=entity,
                fallback=fallback,
            )
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


_EVERYONE: Final = {
    DEFAULT_USER: "every user without their own quota, including ANONYMOUS",
    DEFAULT_PAIR: "every user and client without a stronger quota, including ANONYMOUS",
    DEFAULT_CLIENT: "every client that no user quota limits",
    DEFAULT_IP: "every address, including those of brokers, health checks and load balancers",
}


def captures_protected(subject: Subject) -> Iterator[Finding]:
    """A default that reaches users that the cluster protects by name, without a quota of their own for the key."""
    protected = protected_users(subject)
    for declared in _defaults(subject) if protected else ():
        for key, quota in declared.quotas.items():
            if captured := _captured(subject, declared.entity, key, protected):
                message = compose(
                    "{key} of {entity} also limits {names}, which the Cluster manifest protects. Declare quotas for them.",
                    key=key_part(key),
                    entity=declared.entity,
                    names=_names(captured),
                )
                yield lint("default-captures-protected", message, entity=declared.entity, key=key, span=quota.source)


def first_default(subject: Subject) -> Iterator[Finding]:
    """A default of a kind that the cluster does not have yet. Offline it is not known."""
    if subject.before is None:
        return
    protected = protected_users(subject)
    for declared in _defaults(subject):
        entity = declared.entity
        for key, quota in declared.quotas.items():
            if key in subject.before.get(entity, ()):
                continue
            captured = _captured(subject, entity, key, protected)
            also = compose(" Of the protected users, it limits {names}.", names=_names(captured)) if captured else ""
            message = compose(
                "This is the cluster's first {key} for {entity}. Once applied, it limits {everyone}.{also}",
                key=key_part(key),
                entity=entity,
                everyone=_EVERYONE[entity],
                also=also,
            )
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
            message = compose(
                "{entity} does not limit clients that send an empty client-id, and no user quota limits their {keys}.",
                entity=entity,
                keys=join_messages(Message([key_part(key)]) for key in open_keys),
            )
            yield lint("empty-client-id-escapes", message, entity=entity, span=declared.source)


def protected_users(subject: Subject) -> tuple[str, ...]:
    """The users that the cluster protects by their literal name, in order."""
    names = {
        wanted.text: None
        for selector in subject.spec.protected
        for entity_type, wanted in selector.types
        if entity_type == USER and wanted.kind is MatchKind.NAME
    }
    return tuple(names)


def _names(names: Sequence[str]) -> Message:
    return join_messages(Message([name_part(display_name(name))]) for name in names)


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
