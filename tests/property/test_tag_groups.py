"""Quota groups by their metric tags: which of them a change of quotas leaves whole, against all clients one by one."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model import BucketName
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolver
from reconciler.resolution.sharing import TagGroups

KEY = "producer_byte_rate"
USERS, CLIENT_IDS = ("alice", "bob", "carol"), ("app", "etl", "<default>")
CLIENTS = tuple(itertools.product((*USERS, "a user without quotas"), (*CLIENT_IDS, "a client-id without quotas", "")))

users = st.sampled_from([None, DEFAULT, *USERS])
client_ids = st.sampled_from([None, DEFAULT, *CLIENT_IDS])
entities = (
    st.tuples(users, client_ids)
    .filter(lambda names: names != (None, None))
    .map(lambda names: Entity.of({t: name for t, name in zip(("user", "client-id"), names, strict=True) if name is not None}))
)
tables = st.dictionaries(entities, st.integers(1, 9).map(lambda value: {KEY: float(value)}), max_size=7)


def groups_of(resolver: Resolver) -> dict[tuple[str, str], BucketName]:
    return {client: resolver.resolve(*client).bucket for client in CLIENTS}


@settings(max_examples=150, deadline=None)
@given(tables, tables, st.booleans())
def test_a_group_stays_where_each_of_its_clients_has_the_same_tags_after_the_change(
    before: dict[Entity, dict[str, float]], more: dict[Entity, dict[str, float]], replaces: bool
) -> None:
    earlier, later = Resolver(before, KEY), Resolver(more if replaces else {**before, **more}, KEY)
    of_then, of_now, groups = groups_of(earlier), groups_of(later), TagGroups(earlier, later)
    for user, client_id in itertools.product((None, *USERS), (None, *CLIENT_IDS)):
        if user is None and client_id is None:
            continue
        bucket = BucketName(user=user or "", client_id=client_id or "")
        members = [client for client, tags in of_then.items() if tags == bucket]
        assert groups.exists(user, client_id) == bool(members)
        if members:
            assert groups.stays(user, client_id) == all(of_now[client] == bucket for client in members)


@given(tables)
def test_the_limit_of_a_group_is_that_of_each_of_its_clients(quotas: dict[Entity, dict[str, float]]) -> None:
    resolver = Resolver(quotas, KEY)
    for client in CLIENTS:
        resolved = resolver.resolve(*client)
        of_group = resolver.limit_of_group(resolved.bucket.user or None, resolved.bucket.client_id or None)
        assert (of_group.value if of_group else None) == resolved.value


def test_one_pair_among_thousands_of_alike_names_is_found() -> None:
    quotas = {Entity.of({"client-id": f"app-{n}"}): {KEY: 5.0} for n in range(3000)}
    before = Resolver({**quotas, Entity.of({"user": "alice"}): {KEY: 5.0}}, KEY)
    pair = {Entity.of({"user": "alice", "client-id": "app-2999"}): {KEY: 5.0}}
    groups = TagGroups(before, before.changed({entity: values[KEY] for entity, values in pair.items()}))

    assert not groups.stays("alice", None), "app-2999 leaves the group of the user"
    assert groups.stays(None, "app-2999"), "alice was not in it"
    assert groups.stays(None, "app-7")
