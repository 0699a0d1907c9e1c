"""Random quotas as brokers in ZooKeeper mode take them, in the forms that the two backends and raw messages have them in."""

from __future__ import annotations

import random
from collections.abc import Mapping

from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.plan import Alteration
from tests.builders import client, ip, pair, user
from tests.support.hostile_names import HOSTILE
from tests.support.raw_quotas import RawEntity

_TAKEN = tuple(name for name in HOSTILE if name and not any("\ud800" <= letter <= "\udfff" for letter in name))
"""Brokers refuse an empty name, and half a surrogate pair has no bytes."""
CLIENT_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
WHOLE = frozenset({"producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"})


def random_value(chance: random.Random, key: str) -> float:
    """A value that no client of a test ever reaches, so that a default entity does not hold the tests themselves back."""
    if key in WHOLE:
        most = 2**31 - 1 if key == "connection_creation_rate" else 2**53
        return float(chance.choice([chance.randint(10**6, most), most, 10**6]))
    return chance.choice([chance.uniform(1e4, 1e9), float(chance.randint(10**4, 10**6)), chance.uniform(1e10, 1e300), 12345.5])


def random_state(chance: random.Random, size: int) -> dict[Entity, dict[str, float]]:
    """Entities of all ten shapes, with hostile names, each with one key or more."""
    found: dict[Entity, dict[str, float]] = {}
    names: list[EntityName] = [DEFAULT, *chance.sample(_TAKEN, 12), *(f"user-{number}" for number in range(8))]
    while len(found) < size:
        one, other = chance.choice(names), chance.choice(names)
        address = chance.choice([ip(), ip(f"10.0.{chance.randint(0, 9)}.{chance.randint(1, 9)}")])
        entity = chance.choice([user(one), client(one), pair(one, other), pair(one, other), address])
        keys = ("connection_creation_rate",) if "ip" in entity.types else CLIENT_KEYS
        found[entity] = {key: random_value(chance, key) for key in chance.sample(keys, chance.randint(1, len(keys)))}
    return found


def alterations_to(state: Mapping[Entity, Mapping[str, float | None]]) -> list[Alteration]:
    """What sets all of it."""
    return [Alteration(entity=entity, ops=dict(quotas)) for entity, quotas in state.items()]


def raw(state: Mapping[Entity, Mapping[str, float]]) -> dict[RawEntity, dict[str, float]]:
    """The same as ``raw_quotas`` has it."""
    return {
        frozenset((kind, None if name is DEFAULT else name) for kind, name in entity.parts): dict(quotas)
        for entity, quotas in state.items()
    }
