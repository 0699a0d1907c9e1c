"""Rules about what ZooKeeper left behind: names that a migration copied encoded, and nodes that brokers cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import DEFAULT, Entity, EntityName, Finding
from reconciler.policy.lint.subject import IP, Subject, lint
from reconciler.resolution import unsanitize_name

_DEFAULT_NODE: Final = "<default>"


def migrated_name(subject: Subject) -> Iterator[Finding]:
    """Entities on the cluster that stay, and are called as ZooKeeper's nodes are; of declared ones manifests tell."""
    for entity in subject.before or {}:
        if entity not in subject.after or entity in subject.desired.entities:
            continue
        meant = _meant(entity)
        if meant is not None:
            message = (
                f"{entity} is on the cluster: a name as ZooKeeper's nodes have it, such as migrations with Kafka before 3.6.2 or "
                f"3.7.1 left behind, which most likely limits nobody; if {meant} is meant, declare that and remove this one"
            )
            yield lint("migrated-name", message, entity=entity, span=None)


def unreadable_node(subject: Subject) -> Iterator[Finding]:
    """Nodes in ZooKeeper that brokers cannot read."""
    for node in subject.unreadable:
        span = subject.place(node.entity) if node.entity is not None else None
        yield lint("unreadable-node", node.message, entity=node.entity, span=span)


def _meant(entity: Entity) -> Entity | None:
    """The entity that the nodes of these names stand for; ``None`` when no name looks like a node's."""
    if not any(name is not DEFAULT and ("%" in name or name == _DEFAULT_NODE) for _, name in entity.parts):
        return None
    found = Entity.of({entity_type: _name(entity_type, name) for entity_type, name in entity.parts})
    return None if found == entity else found


def _name(entity_type: str, name: EntityName) -> EntityName:
    if name is DEFAULT or name == _DEFAULT_NODE:
        return DEFAULT
    if entity_type == IP:
        return name
    decoded = unsanitize_name(name)
    return name if decoded is None else decoded
