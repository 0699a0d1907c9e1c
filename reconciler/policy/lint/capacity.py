"""The rule about promises: the limits of all entities together against what one broker can do."""

from __future__ import annotations

import math
from collections.abc import Iterator

from reconciler.model import Finding, QuotaKey, compose, key_part
from reconciler.policy.lint.subject import Subject, lint
from reconciler.text import amount_part, count_of, list_some

_LARGEST = 3


def overcommitted(subject: Subject) -> Iterator[Finding]:
    """A key whose limits add up to more than the capacity of a broker. All brokers have the same limits.

    Each entity counts once: of a default entity, how many clients have its limit is not known.
    """
    for key, capacity in sorted(subject.spec.brokers.capacity.items()):
        limits = {
            entity: value
            for entity, quotas in subject.after.items()
            if (value := quotas.get(key)) is not None and 0 < value < QuotaKey(key).unreachable
        }
        promised = math.fsum(limits.values())
        if promised <= capacity:
            continue
        largest = sorted(limits, key=lambda entity: (-limits[entity], entity.sort_key))[:_LARGEST]
        defaults = sum(entity.has_default for entity in limits)
        once = compose(" {count} once.", count=f"{count_of(defaults, 'default entity counts', 'default entities count')}")
        message = compose(
            "The limits of {key} add up to {promised} on each broker, {factor} x its capacity of {capacity} "
            "({entities}, the largest {largest}).{once}",
            key=key_part(key),
            promised=amount_part(key, promised),
            factor=f"{promised / capacity:.3g}",
            capacity=amount_part(key, capacity),
            entities=count_of(len(limits), "entity", "entities"),
            largest=list_some([str(entity) for entity in largest], _LARGEST),
            once=once if defaults else "",
        )
        yield lint("capacity-overcommitted", message, entity=None, span=subject.spec.place("capacity"), key=key)
