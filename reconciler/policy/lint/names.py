"""Rules about names: one address in two spellings, names that look alike, and names that a migration left encoded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from reconciler.model import DEFAULT, Entity, EntityName, Finding, Severity, compose, name_part
from reconciler.policy.lint.subject import IP, Subject, lint
from reconciler.resolution import canonical_address, unsanitize_name


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


# Letters of other scripts that look like a Latin letter in usual fonts (a small part of Unicode's confusables.txt).
_LOOKS: Final = str.maketrans(
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u0406\u0408\u0405\u04ae"
    "\u03bf\u03b1\u03bd\u03c1\u03c5\u03b9\u03ba"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u0585\u057d\u0578\u0570\u0581\u0131\u0251\u0261",
    "aceopxyijshdqw" + "ABEKMHOPCTXYIJSY" + "oavpuik" + "ABEZHIKMNOPTYX" + "ounhgiag",
)
_LONGEST: Final = 60


def confusable_names(subject: Subject) -> Iterator[Finding]:
    """A declared entity whose name looks like another one that is declared or on the cluster. ASCII alone is never reported."""
    alike: dict[tuple[str, str], str] = {}
    names = {(kind, name) for entity in (*subject.after, *subject.desired.entities) for kind, name in _names(entity)}
    plain = {(kind, name) for kind, name in names if name.isascii()}
    others = sorted(names - plain)
    if not others:
        return
    for kind, name in (*sorted(plain), *others):
        alike.setdefault((kind, _skeleton(name)), name)
    pairs = {(kind, name): alike[kind, _skeleton(name)] for kind, name in others if alike[kind, _skeleton(name)] != name}
    twins = {(kind, first): name for (kind, name), first in pairs.items()}
    declared = {part for entity in subject.desired.entities for part in _names(entity)}
    for entity in subject.desired.entities:
        for kind, name in _names(entity):
            other = pairs.get((kind, name)) or twins.get((kind, name))
            # Of two declared names only the one with the odd letters is reported.
            if other is not None and ((kind, name) in pairs or (kind, other) not in declared):
                where = "declared" if (kind, other) in declared else "on the cluster"
                message = compose(
                    "The {kind} {name} looks like {other} ({where}), but Kafka treats them as different names. Write the name "
                    "that the client sends.",
                    kind=kind,
                    name=name_part(_spelled(name)),
                    other=name_part(_spelled(other)),
                    where=where,
                )
                yield lint("confusable-name", message, entity=entity, span=subject.place(entity))


def _names(entity: Entity) -> Iterator[tuple[str, str]]:
    return ((kind, name) for kind, name in entity.parts if kind != IP and isinstance(name, str))


def _spelled(name: str) -> str:
    """The name with its odd letters as code points, so that a reader can distinguish the two."""
    return ascii(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")


def _skeleton(name: str) -> str:
    """The same text for names that look alike; invisible characters do not count."""
    seen = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    return seen.translate(_LOOKS)


_DEFAULT_NODE: Final = "<default>"


def migrated_name(subject: Subject) -> Iterator[Finding]:
    """Entities on the cluster that stay, and are called as ZooKeeper's nodes are; of declared ones the manifests show."""
    for entity in subject.before or {}:
        if entity not in subject.after or entity in subject.desired.entities:
            continue
        meant = _meant(entity)
        if meant is not None:
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
    """The entity that the nodes of these names stand for; ``None`` when no name looks like a node's."""
    if not any(name is not DEFAULT and ("%" in name or name == _DEFAULT_NODE) for _, name in entity.parts):
        return None
    meant = Entity.of({entity_type: _name(entity_type, name) for entity_type, name in entity.parts})
    return None if meant == entity else meant


def _name(entity_type: str, name: EntityName) -> EntityName:
    if name is DEFAULT or name == _DEFAULT_NODE:
        return DEFAULT
    if entity_type == IP:
        return name
    decoded = unsanitize_name(name)
    return name if decoded is None else decoded
