from reconciler.model import BucketName
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.resolution.resolver import Resolver

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
