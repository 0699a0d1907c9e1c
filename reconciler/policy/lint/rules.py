"""Rules about names (spellings, encoded ones), and the one function that runs all rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from reconciler.model import DEFAULT, Entity, EntityName, Finding, Severity, compose
from reconciler.policy.lint.precedence import IP, Subject, default_hides_client_ids, first_default, lint, multiplies
from reconciler.policy.lint.values import expiring_values, odd_values, reduction_throttles
from reconciler.resolution import canonical_address, unsanitize_name

_DEFAULT_NODE: Final = "<default>"


def lint_state(subject: Subject) -> Iterator[Finding]:
    """The findings of the rules that can find something in this state, with the rules' own severities, unsorted.

    One walk over all entities spares one for each rule about entities that are not there.
    """
    live = bool(subject.before)
    kinds: set[str] = set()
    defaults = False
    for entity in itertools.chain(subject.after, subject.desired.entities):
        for kind, name in entity.parts:
            kinds.add(kind)
            defaults = defaults or name is DEFAULT
    for check, needed in (
        (default_hides_client_ids, defaults),
        (multiplies, defaults),
        (first_default, defaults),
        (ip_two_spellings, IP in kinds),
        (odd_values, True),
        (reduction_throttles, live and subject.changed),
        (migrated_name, live),
        (unreadable_node, subject.unreadable),
        (expiring_values, any(declared.expiries for declared in subject.desired.entities.values())),
    ):
        if needed:
            yield from check(subject)


def ip_two_spellings(subject: Subject) -> Iterator[Finding]:
    """Two entities, of which at least one is declared, that brokers take for one address."""
    first: dict[str, Entity] = {}
    live = subject.before or {}
    # Live ones first: the finding belongs to the declared entity that joins them.
    staying = (e for e in live if e.parts[0][0] == IP and e in subject.after)
    for entity in chain(staying, (e for e in subject.desired.entities if e.parts[0][0] == IP and e not in live)):
        name = entity.parts[0][1]
        if not isinstance(name, str):
            continue
        other = first.setdefault(canonical_address(name), entity)
        if other is entity:
            continue
        later, earlier = (entity, other) if subject.place(entity) else (other, entity)
        place = subject.place(later)
        if place is not None:
            both_declared = subject.place(earlier) is not None
            where = "declared" if both_declared else "on the cluster"
            message = compose(
                "{later} and {earlier} ({where}) are one address. Brokers use the quota that was applied last.",
                later=later,
                earlier=earlier,
                where=where,
            )
            related = subject.related([earlier], "the other spelling")
            finding = lint("ip-two-spellings", message, entity=later, span=place, related=related)
            # Entities that another writer left on the cluster must not stop every change of this repository.
            yield finding if both_declared else replace(finding, severity=Severity.WARNING)


def migrated_name(subject: Subject) -> Iterator[Finding]:
    """Entities on the cluster that stay, and are called as ZooKeeper's nodes are; of declared ones the manifests show."""
    for entity in subject.before or {}:
        for _, name in entity.parts:
            if name is not DEFAULT and ("%" in name or name == _DEFAULT_NODE):
                break
        else:
            continue
        if entity in subject.after and entity not in subject.desired.entities and (meant := _meant(entity)) is not None:
            message = compose(
                "{entity} on the cluster has the spelling of a ZooKeeper node, which migrations with Kafka before 3.6.2 or 3.7.1 "
                "left behind. Most likely it limits no client. If {meant} is meant, declare that and remove this one.",
                entity=entity,
                meant=meant,
            )
            yield lint("migrated-name", message, entity=entity, span=None)


def unreadable_node(subject: Subject) -> Iterator[Finding]:
    """Nodes in ZooKeeper that brokers cannot read."""
    for node in subject.unreadable:
        span = subject.place(node.entity) if node.entity is not None else None
        yield lint("unreadable-node", node.message, entity=node.entity, span=span)


def _meant(entity: Entity) -> Entity | None:
    """Return the entity that the nodes of these names stand for; ``None`` when they are its own names."""
    meant = Entity.of({entity_type: _name(entity_type, name) for entity_type, name in entity.parts})
    return None if meant == entity else meant


def _name(entity_type: str, name: EntityName) -> EntityName:
    if name is DEFAULT or name == _DEFAULT_NODE:
        return DEFAULT
    if entity_type == IP:
        return name
    decoded = unsanitize_name(name)
    return name if decoded is None else decoded
