"""Input of a lint rule, and the construction of its findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    DEFAULT,
    LINT_RULES,
    OTHER,
    ClusterSpec,
    DesiredState,
    Entity,
    EntityType,
    Finding,
    QuotaKey,
    Quotas,
    Related,
    Span,
    UnreadableNode,
)
from reconciler.resolution import CLIENT_LEVELS, CLIENT_PRECEDENCE

USER: Final = EntityType.USER.value
CLIENT: Final = EntityType.CLIENT_ID.value
IP: Final = EntityType.IP.value

DEFAULT_USER: Final = Entity.of({USER: DEFAULT})
DEFAULT_CLIENT: Final = Entity.of({CLIENT: DEFAULT})
DEFAULT_PAIR: Final = Entity.of({USER: DEFAULT, CLIENT: DEFAULT})
DEFAULT_IP: Final = Entity.of({IP: DEFAULT})
USER_DEFAULTS: Final = tuple(
    entity
    for level in reversed(CLIENT_PRECEDENCE[: CLIENT_LEVELS[0] - 1])
    if level.is_default and (entity := level.entity_for(OTHER, OTHER)) is not None
)
"""Defaults that each client with a client-id meets before any level of client-ids; with one of them, it meets none of those."""

MOST_RELATED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One cluster as it shall be.

    ``after``: all quotas that it will have, as far as they are known: those declared and, with a current state, the live ones
    that stay. ``before``: the live ones; ``None`` offline. ``changed``: entities that are about to change.
    """

    desired: DesiredState
    spec: ClusterSpec
    after: Mapping[Entity, Quotas]
    before: Mapping[Entity, Quotas] | None = None
    changed: Collection[Entity] = ()
    unreadable: Sequence[UnreadableNode] = ()
    """What the cluster has in ZooKeeper beside entities."""

    def place(self, entity: Entity, key: str | None = None) -> Span | None:
        """Where the manifests declare the entity, or the value of one key; ``None`` for what is only on the cluster."""
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
    severity = LINT_RULES[rule_id].severity
    return Finding(id=rule_id, severity=severity, message=message, span=span, related=tuple(related), entity=entity, key=key)
