"""Input of lint rules, and those about precedence: quotas that never apply, that repeat their fallback or multiply, defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    CLIENT_KEYS,
    DEFAULT,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    EntityType,
    Finding,
    Message,
    QuotaKey,
    Quotas,
    Related,
    Span,
    UnreadableNode,
    compose,
    join_messages,
    key_part,
    rules,
)
from reconciler.resolution import CLIENT_LEVELS, CLIENT_PRECEDENCE, DEFAULT_ENTITIES
from reconciler.text import count_of, list_entities

USER: Final = EntityType.USER.value
CLIENT: Final = EntityType.CLIENT_ID.value
IP: Final = EntityType.IP.value
DEFAULT_USER: Final = Entity.of({USER: DEFAULT})
DEFAULT_CLIENT: Final = Entity.of({CLIENT: DEFAULT})
DEFAULT_PAIR: Final = Entity.of({USER: DEFAULT, CLIENT: DEFAULT})
DEFAULT_IP: Final = Entity.of({IP: DEFAULT})
_EVERYONE: Final = {
    DEFAULT_USER: "every user without their own quota, including ANONYMOUS",
    DEFAULT_PAIR: "every user and client without a stronger quota, including ANONYMOUS",
    DEFAULT_CLIENT: "every client that no user quota limits",
    DEFAULT_IP: "every address, including those of brokers, health checks and load balancers",
}
USER_DEFAULTS: Final = tuple(
    DEFAULT_ENTITIES[level.number] for level in reversed(CLIENT_PRECEDENCE[: CLIENT_LEVELS[0] - 1]) if level.is_default
)
"""Defaults that each client with a client-id meets before any level of client-ids; with one of them, it meets none of those."""
MOST_RELATED: Final = 10


def default_hides_client_ids(subject: Subject) -> Iterator[Finding]:
    """One finding for each default that overrides quotas of client-ids, with all of these.

    A default that is only on the cluster is reported at the first declared quota that it overrides.
    """
    for hider, hidden in overridden_client_ids(subject).items():
        keys = [key for key in CLIENT_KEYS if any(key in of_entity for of_entity in hidden.values())]
        declared = subject.desired.entities.get(hider)
        if declared is not None:
            message = compose(
                "{keys} of {hider} {override} {count} for every client: {names}.",
                keys=_keys(keys),
                hider=hider,
                override="overrides" if len(keys) == 1 else "override",
                count=count_of(len(hidden), "client-id quota"),
                names=list_entities(sorted(hidden, key=lambda entity: entity.sort_key)),
            )
            places = [(entity, of_entity[0]) for entity, of_entity in hidden.items()]
            related = [place for entity, key in places for place in subject.related([entity], "this quota never wins", key)]
            span = declared.quotas[keys[0]].source
            yield lint("default-hides-client-ids", message, entity=hider, key=keys[0], span=span, related=related[:MOST_RELATED])
            continue
        (first, first_keys), *others = hidden.items()
        message = compose(
            "{hider} (on the cluster) overrides {keys} of {first}{more} for every client, because any user level is stronger.",
            hider=hider,
            keys=_keys(keys),
            first=first,
            more=f" and {count_of(len(others), 'other client-id')}" if others else "",
        )
        related = [place for entity, keys_of in others for place in subject.related([entity], "this one, too", keys_of[0])]
        key = first_keys[0]
        place = subject.place(first, key)
        yield lint("client-id-never-wins", message, entity=first, key=key, span=place, related=related[:MOST_RELATED])


def overridden_client_ids(subject: Subject) -> dict[Entity, dict[Entity, list[QuotaKey]]]:
    """Return the client-id quotas that each default overrides, and for which keys. For a live default, only declared ones."""
    overridden: dict[Entity, dict[Entity, list[QuotaKey]]] = {}
    for key in CLIENT_KEYS:
        # What every client with a client id meets before any client-id level; without it, it meets none of those.
        hider = next((entity for entity in USER_DEFAULTS if key in subject.after.get(entity, ())), None)
        if hider is None:
            continue
        declares = subject.desired.entities.get(hider)
        is_declared = declares is not None and key in declares.quotas
        for entity in subject.after if is_declared else subject.desired.entities:
            if entity.types == (CLIENT,) and key in subject.after.get(entity, ()):
                overridden.setdefault(hider, {}).setdefault(entity, []).append(key)
    return overridden


def _keys(keys: Sequence[QuotaKey]) -> Message:
    return join_messages(Message([key_part(key)]) for key in keys)


def multiplies(subject: Subject) -> Iterator[Finding]:
    """Users with the default client-id: each client id takes the full rate, and a cap of the user itself no longer applies."""
    for entity, declared in subject.desired.entities.items():
        if len(entity.parts) != 2 or entity.parts[1] != (CLIENT, DEFAULT) or not declared.quotas:
            continue
        alone = Entity(parts=entity.parts[:1])
        bypassed = [key for key in declared.quotas if key in subject.after.get(alone, ())]
        rest = [key for key in _reachable(declared) if key not in bypassed]
        if bypassed:
            message = compose(
                "{entity} gives each client-id the full {keys}. {alone} then caps only clients that send no client-id, because "
                "exactly one quota applies.",
                entity=entity,
                keys=_keys(bypassed),
                alone=alone,
            )
            key = bypassed[0]
            related = subject.related([alone], "the cap that does not apply", key)
            yield lint("user-cap-bypassed", message, entity=entity, key=key, span=declared.quotas[key].source, related=related)
        if rest:
            message = compose(
                "{entity} gives each client-id the full {keys}. The user as a whole has no cap.", entity=entity, keys=_keys(rest)
            )
            yield lint("default-client-multiplies", message, entity=entity, span=declared.source)


def first_default(subject: Subject) -> Iterator[Finding]:
    """A default of a kind that the cluster does not have yet. Offline it is not known."""
    if subject.before is None:
        return
    for declared in _defaults(subject):
        entity = declared.entity
        keys = [key for key in _reachable(declared) if key not in subject.before.get(entity, ())]
        if keys:
            message = compose(
                "This is the cluster's first {keys} for {entity}. Once applied, it limits {everyone}.",
                keys=_keys(keys),
                entity=entity,
                everyone=_EVERYONE[entity],
            )
            yield lint("first-default", message, entity=entity, key=keys[0], span=declared.quotas[keys[0]].source)


def _reachable(declared: DesiredEntity) -> dict[QuotaKey, DesiredQuota]:
    """The values that limit a client at all."""
    return {key: quota for key, quota in declared.quotas.items() if quota.value < key.unreachable}


def _defaults(subject: Subject) -> Iterator[DesiredEntity]:
    for entity in _EVERYONE:
        declared = subject.desired.entities.get(entity)
        if declared is not None:
            yield declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One cluster as it shall be.

    ``after``: all quotas that it will have, as far as they are known: those declared and, with a current state, the live ones
    that stay. ``before``: the live ones; ``None`` offline. ``changed``: entities that are about to change.
    """

    desired: DesiredState
    after: Mapping[Entity, Quotas]
    before: Mapping[Entity, Quotas] | None = None
    changed: Collection[Entity] = ()
    unreadable: Sequence[UnreadableNode] = ()
    """What the cluster has in ZooKeeper beside entities."""

    def place(self, entity: Entity, key: str | None = None) -> Span | None:
        """Return the place where manifests declare the entity, or the value of a key. ``None`` for one only on the cluster."""
        declared = self.desired.entities.get(entity)
        if declared is None:
            return None
        quota = declared.quotas.get(QuotaKey(key)) if key else None
        return quota.source if quota else declared.source

    def related(self, entities: Sequence[Entity], message: str, key: str | None = None) -> tuple[Related, ...]:
        """The places of the first few entities that have one."""
        places = (self.place(entity, key) for entity in entities[:MOST_RELATED])
        return tuple(Related(span=place, message=message) for place in places if place)


def lint(
    rule_id: str,
    message: str,
    *,
    entity: Entity | None,
    span: Span | None,
    key: str | None = None,
    related: Sequence[Related] = (),
) -> Finding:
    """A finding of a lint rule, with the rule's own severity."""
    severity = rules("lint")[rule_id].severity
    return Finding(id=rule_id, severity=severity, message=message, span=span, related=tuple(related), entity=entity, key=key)
