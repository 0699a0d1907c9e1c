"""Rules about ip entities: one address, written twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from reconciler.model import Entity, Finding, Severity
from reconciler.policy.lint.subject import IP, Subject, lint
from reconciler.resolution import canonical_address


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
            message = f"{later} and {earlier} ({where}) are one address: in the brokers the one applied last decides"
            related = subject.related([earlier], "the other spelling")
            found = lint("ip-two-spellings", message, entity=later, span=place, related=related)
            # What somebody else left on the cluster must not stop every change of this repository.
            yield found if both_declared else replace(found, severity=Severity.WARNING)
