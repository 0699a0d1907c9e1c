from reconciler.model import BucketName
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.resolution.resolver import AddressTable, Resolver, resolve

KEY = "producer_byte_rate"


def entity(user: EntityName | None = None, client: EntityName | None = None) -> Entity:
    names = {"user": user, "client-id": client}
    return Entity.of({t: n for t, n in names.items() if n is not None})


STEPS = [
    (entity(client=DEFAULT), [(1, "", "app"), (1, "", "app"), (1, "", "x")]),
    (entity(client="app"), [(2, "", "app"), (2, "", "app"), (1, "", "x")]),
    (entity(DEFAULT), [(3, "alice", ""), (3, "bob", ""), (3, "bob", "")]),
    (entity(DEFAULT, DEFAULT), [(4, "alice", "app"), (4, "bob", "app"), (4, "bob", "x")]),
    (entity(DEFAULT, "app"), [(5, "alice", "app"), (5, "bob", "app"), (4, "bob", "x")]),
    (entity("alice"), [(6, "alice", ""), (5, "bob", "app"), (4, "bob", "x")]),
    (entity("alice", DEFAULT), [(7, "alice", "app"), (5, "bob", "app"), (4, "bob", "x")]),
    (entity("alice", "app"), [(8, "alice", "app"), (5, "bob", "app"), (4, "bob", "x")]),
]
"""What Kafka's own class printed: entities added one after another with limits 1 to 8; rows alice/app, bob/app, bob/x."""


def tables() -> list[dict[Entity, dict[str, float]]]:
    return [{e: {KEY: float(i + 1)} for i, (e, _) in enumerate(STEPS[: n + 1])} for n in range(len(STEPS))]


def test_the_truth_table_of_kafkas_own_class() -> None:
    for table, (_, expected) in zip(tables(), STEPS, strict=True):
        resolver = Resolver(table, KEY)
        for (user, client), (limit, user_tag, client_tag) in zip(
            [("alice", "app"), ("bob", "app"), ("bob", "x")], expected, strict=True
        ):
            found = resolver.resolve(user, client)
            assert (found.value, found.bucket) == (limit, BucketName(user=user_tag, client_id=client_tag))


def test_an_empty_client_id_finds_only_quotas_of_users() -> None:
    limits = [Resolver(table, KEY).resolve("alice", "").value for table in tables()]
    assert limits == [None, None, 3, 3, 3, 6, 6, 6]


def test_an_empty_client_id_is_unlimited_under_pairs_only() -> None:
    table = {entity(DEFAULT, DEFAULT): {KEY: 4.0}, entity("alice", DEFAULT): {KEY: 7.0}}
    found = resolve(table, user="alice", client_id="", key=KEY)
    assert found.value is None
    assert found.bucket == BucketName(user="alice", client_id="")


def test_a_default_user_quota_hides_an_explicit_client_quota() -> None:
    table = {entity(DEFAULT): {KEY: 10.0}, entity(client="app"): {KEY: 99.0}}
    found = resolve(table, user="anyone", client_id="app", key=KEY)
    assert (found.value, found.level, found.source) == (10.0, 6, entity(DEFAULT))
    assert [(c.level, c.value) for c in found.overridden] == [(7, 99.0)]


def test_keys_are_resolved_independently() -> None:
    table = {entity("alice", "app"): {KEY: 5.0}, entity("alice"): {"consumer_byte_rate": 7.0}}
    produce = resolve(table, user="alice", client_id="app", key=KEY)
    fetch = resolve(table, user="alice", client_id="app", key="consumer_byte_rate")
    assert (produce.value, produce.bucket.client_id) == (5.0, "app")
    assert (fetch.value, fetch.bucket.client_id) == (7.0, "")


def test_with_one_kind_of_quota_everybody_gets_that_kinds_bucket() -> None:
    users = Resolver({entity("alice"): {KEY: 1.0}}, KEY)
    pairs = Resolver({entity("alice", "app"): {KEY: 1.0}}, KEY)
    both = Resolver({entity("alice", "app"): {KEY: 1.0}, entity("alice"): {KEY: 1.0}}, KEY)
    assert users.resolve("bob", "x").bucket == BucketName(user="bob", client_id="")
    assert pairs.resolve("bob", "x").bucket == BucketName(user="bob", client_id="x")
    assert both.resolve("bob", "x").bucket == BucketName(user="", client_id="x")


def test_without_any_quota_of_the_key_nothing_is_measured() -> None:
    resolver = Resolver({entity("alice"): {"request_percentage": 50.0}}, KEY)
    assert not resolver.enabled
    assert resolver.resolve("alice", "app").bucket == BucketName(user="", client_id="app")


def test_a_literal_default_name_is_an_ordinary_name() -> None:
    table = {entity("<default>"): {KEY: 1.0}, entity(client=DEFAULT): {KEY: 2.0}}
    assert resolve(table, user="<default>", client_id="c", key=KEY).value == 1.0
    assert resolve(table, user="bob", client_id="c", key=KEY).value == 2.0


def test_foreign_entity_types_and_addresses_limit_nobody() -> None:
    table = {Entity.of({"client-id-prefix": "a"}): {KEY: 1.0}, Entity.of({"ip": "10.0.0.1"}): {KEY: 1.0}}
    assert not Resolver(table, KEY).enabled


def test_addresses_fall_back_to_the_default_address() -> None:
    key = "connection_creation_rate"
    table = {Entity.of({"ip": "10.0.0.1"}): {key: 5.0}, Entity.of({"ip": DEFAULT}): {key: 9.0}}
    assert [c.value for c in AddressTable(table).resolve("10.0.0.1").candidates] == [5.0, 9.0]
    assert [c.value for c in AddressTable(table).resolve("10.0.0.2").candidates] == [9.0]
    assert AddressTable({}).resolve("10.0.0.2").candidates == ()
