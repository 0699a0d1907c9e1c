"""Effects against brute force: every pair of a small universe resolved twice, by the resolution's one-by-one form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.effect import OTHER, ClientName, Effect, KnownAddress, KnownClient, Limit
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.quota import CLIENT_KEYS
from reconciler.model.state import same_value
from reconciler.resolution.effects import effects_between
from reconciler.resolution.resolver import Resolver
from tests.builders import ip

NAMES = ("a", "b", "<default>")
SOME = (None, DEFAULT, *NAMES)
SHAPES = [
    Entity.of({t: n for t, n in (("user", u), ("client-id", c)) if n is not None})
    for u, c in itertools.product(SOME, SOME)
    if (u, c) != (None, None)
]
ADDRESSES = [ip("10.0.0.1"), ip("::ffff:a00:1"), ip("::ffff:10.0.0.1"), ip("<default>"), ip()]
SPELLINGS = ("10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1")
FREE = 2e12
"""Above what any client reaches, for each key."""
VALUES = st.sampled_from([1.0, 2.0, FREE, math.nan])
QUOTAS = st.dictionaries(st.sampled_from(["consumer_byte_rate", "request_percentage"]), VALUES, min_size=1)
TABLES = st.builds(
    lambda clients, addresses: {**clients, **addresses},
    st.dictionaries(st.sampled_from(SHAPES), QUOTAS, max_size=9),
    st.dictionaries(st.sampled_from(ADDRESSES), st.fixed_dictionaries({"connection_creation_rate": VALUES}), max_size=3),
)


Table = dict[Entity, dict[str, float]]


def named(name: object) -> str:
    """A name that no entity of these tests has stands for any other."""
    return "nobody names this" if name is OTHER else str(name)


def limit(table: Table, client: KnownClient, key: str) -> Limit | None:
    found = Resolver(table, key).resolve(named(client.user), named(client.client_id)).winner
    return Limit(value=found.value, entity=found.entity, level=found.level) if found else None


def address_limit(table: Table, address: KnownAddress) -> Limit | None:
    """By hand: the spelling that was asked for, else another one of the address, else the default."""
    names = SPELLINGS if address.ip in SPELLINGS else (named(address.ip),)
    for entity, level in (*((ip(name), 1) for name in names), (ip(DEFAULT), 2)):
        value = table.get(entity, {}).get("connection_creation_rate")
        if value is not None:
            return Limit(value=value, entity=entity, level=level)
    return None


def names_of(entities: Iterable[Entity], kind: str) -> set[ClientName]:
    """Without defaults."""
    return {name for name in (entity.name(kind) for entity in entities) if isinstance(name, str)}


def pair_of(entity: Entity) -> tuple[ClientName, ClientName]:
    user, client_id = entity.name("user"), entity.name("client-id")
    assert isinstance(user, str)
    assert isinstance(client_id, str)
    return user, client_id


def unclear(table: Table) -> bool:
    """True when the spellings of the one address have different limits: which one applies is not known."""
    values = [table[ip(name)]["connection_creation_rate"] for name in SPELLINGS if ip(name) in table]
    return any(not same_value(value, values[0]) for value in values)


def differ(one: Limit | None, other: Limit | None) -> bool:
    if all(side is None or side.value == FREE for side in (one, other)):
        return False
    if one is None or other is None:
        return one is not other
    return one.entity != other.entity or not same_value(one.value, other.value)


def shown(effect: Effect) -> str:
    """Comparable although NaN is not equal to itself."""
    return repr(effect)


def brute(before: Table, after: Table, client: KnownClient) -> list[Effect]:
    sides = [(key.value, limit(before, client, key.value), limit(after, client, key.value)) for key in CLIENT_KEYS]
    return [Effect(client=client, key=k, before=b, after=a) for k, b, a in sides if differ(b, a)]


@given(before=TABLES, after=TABLES, most=st.integers(0, 3))
def test_what_is_not_listed_is_counted_exactly(before: Table, after: Table, most: int) -> None:
    every, some = effects_between(before, after), effects_between(before, after, most=most)
    assert len(some.effects) + some.left_out == len(every.effects)
    assert [shown(effect) for effect in some.effects] == [shown(effect) for effect in every.effects[:most]]


@given(before=TABLES, after=TABLES)
def test_every_client_s_move_is_listed_or_told_by_a_row_that_stands_for_it(before: Table, after: Table) -> None:
    listed = effects_between(before, after)
    rows = {(e.client, e.key): e for e in listed.effects}
    assert len(rows) == len(listed.effects)
    assert listed.left_out == 0
    for (client, key), effect in rows.items():
        expected = (
            (address_limit(before, client), address_limit(after, client))
            if isinstance(client, KnownAddress)
            else (limit(before, client, key), limit(after, client, key))
        )
        assert repr((effect.before, effect.after)) == repr(expected)
        assert differ(*expected)
    entities = before.keys() | after.keys()
    users, clients = (names_of(entities, kind) for kind in ("user", "client-id"))
    pairs = {pair_of(e) for e in entities if len(e.parts) == 2 and not e.has_default}
    for user, client_id in {*itertools.product((*users, OTHER), (*clients, OTHER, "")), *pairs}:
        client = KnownClient(user=user, client_id=client_id)
        mirrors = [client]
        if (user, client_id) not in pairs and OTHER not in (user, client_id):
            mirrors.append(KnownClient(user=user, client_id=OTHER))
            mirrors += [KnownClient(user=OTHER, client_id=client_id)] if client_id else []
        for effect in brute(before, after, client):
            told = [rows[mirror, effect.key] for mirror in mirrors if (mirror, effect.key) in rows]
            assert repr((effect.before, effect.after)) in {repr((row.before, row.after)) for row in told}
    names = {*names_of(entities, "ip"), OTHER}
    assert not {KnownAddress(ip=name) for name in SPELLINGS[1:]} & {client for client, _ in rows}
    for name in {SPELLINGS[0] if name in SPELLINGS else name for name in names}:
        address = KnownAddress(ip=name)
        moved = differ(address_limit(before, address), address_limit(after, address))
        moved = moved and not (name in SPELLINGS and (unclear(before) or unclear(after)))
        assert ((address, "connection_creation_rate") in rows) == moved
