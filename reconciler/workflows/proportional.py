"""Notes on values in proportion to the leaders of partitions: what is lost, or what each broker enforces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import DesiredState, Message, Proportional, compose, key_part
from reconciler.resolution import is_reserved
from reconciler.text import amount, count_of, list_some

_SHOWN: Final = 6


def proportional_notes(desired: DesiredState, brokers: tuple[int, ...]) -> Iterator[Message]:
    """One note about the first such value and how many there are. Without the plugin of groups it names the loss."""
    units = [
        (declared.entity, key, quota.unit)
        for declared in desired.entities.values()
        for key, quota in declared.quotas.items()
        if isinstance(quota.unit, Proportional) and quota.unit.leaders is not None
    ]
    if not units:
        return
    entity, key, unit = units[0]
    more = "" if len(units) == 1 else f" (and {count_of(len(units) - 1, 'other value')})"
    leaders, partitions = dict(unit.leaders or ()), unit.partitions or 1
    if any(map(is_reserved, desired.entities)):
        parts = [(broker, unit.value * max(1, leaders.get(broker, 0)) / partitions) for broker in brokers]
        yield compose(
            "The plugin of groups gives each broker its own part of {key} of {entity}{more}: {parts}.",
            key=key_part(key.value),
            entity=entity,
            more=more,
            parts=list_some([f"broker {broker} {amount(key.value, part)}" for broker, part in parts], _SHOWN),
        )
        return
    yield compose(
        "{key} of {entity}{more} is one number for all brokers: the largest part. Brokers that lead fewer partitions enforce it, "
        "too, so {count} together allow {factor} times the total. The plugin of groups gives each broker its own part.",
        key=key_part(key.value),
        entity=entity,
        more=more,
        count=count_of(len(brokers), "broker"),
        factor=f"{len(brokers) * unit.most / partitions:.3g}",
    )
