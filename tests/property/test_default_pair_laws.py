"""Making clients visible changes no limit: for every client that could exist, whatever quotas a cluster has."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.by_hand.expose import exposure
from reconciler.model import CLIENT_KEYS, DEFAULT, Entity, EntityName, QuotaKey
from reconciler.resolution import EXPOSING_ENTITY, overridden_by_default_pair
from reconciler.resolution.resolver import QuotaTable, Resolver

NAMES: list[EntityName | None] = [None, DEFAULT, "a", "b"]
ENTITIES = [
    Entity.of({kind: name for kind, name in (("user", user), ("client-id", client)) if name is not None})
    for user, client in itertools.product(NAMES, NAMES)
    if (user, client) != (None, None)
]
KEYS = [key.value for key in CLIENT_KEYS]
TABLES = st.dictionaries(
    st.sampled_from(ENTITIES), st.dictionaries(st.sampled_from(KEYS), st.just(1024.0), min_size=1), max_size=6
)
CLIENTS = list(itertools.product(["a", "b", "ANONYMOUS"], ["a", "b", "other", ""]))


def limit(table: QuotaTable, key: str, user: str, client_id: str) -> tuple[Entity | None, float | None]:
    winner = (
        Resolver.by_key(table, [key])[key].winner(user, client_id) if any(key in quotas for quotas in table.values()) else None
    )
    return (None, None) if winner is None else (winner.entity, winner.value)


@given(table=TABLES)
def test_a_client_with_a_limit_keeps_it_and_one_without_gets_one_above_any_network(table: QuotaTable) -> None:
    found = exposure(table, KEYS)
    after = {**table, EXPOSING_ENTITY: {**table.get(EXPOSING_ENTITY, {}), **found.add}}

    for key, (user, client_id) in itertools.product(KEYS, CLIENTS):
        before = limit(table, key, user, client_id)
        expected = {before} if before[0] is not None else {before, (EXPOSING_ENTITY, QuotaKey(key).unreachable)}
        assert limit(after, key, user, client_id) in expected


@given(table=TABLES)
def test_a_key_is_left_out_only_where_setting_it_would_change_a_limit(table: QuotaTable) -> None:
    found = exposure(table, KEYS)

    assert sorted((*found.add, *found.present, *found.notes)) == sorted(KEYS)
    for key in found.notes:
        entities = overridden_by_default_pair(table, key)
        after = {**table, EXPOSING_ENTITY: {**table.get(EXPOSING_ENTITY, {}), key: QuotaKey(key).unreachable}}
        users = [name for entity in entities for name in [entity.name("user")] if isinstance(name, str)] or ["other"]
        names = [name for entity in entities for name in [entity.name("client-id")] if isinstance(name, str)] or ["other"]
        moved = [
            (user, name)
            for user, name in itertools.product([*users, "other"], [*names, "other"])
            if limit(table, key, user, name) != limit(after, key, user, name)
        ]
        assert moved
