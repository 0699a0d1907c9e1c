"""Resolution against a second, slower telling of the rules, written as Kafka's nested walk over string pairs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.levels import Bucket, Resolver

KEY = "consumer_byte_rate"
NAMES = ["a", "b", "<default>"]
SHAPES = [(u, c) for u in [None, DEFAULT, *NAMES] for c in [None, DEFAULT, *NAMES] if (u, c) != (None, None)]
DEFAULT_NAME = object()


def entity_of(user: object, client: object) -> Entity:
    return Entity.of({t: n for t, n in (("user", user), ("client-id", client)) if n is not None})


def walk(table: dict[tuple[object, object], float], user: str, client: str) -> tuple[tuple[str, str], float | None]:
    has_client = any(u is None for u, _ in table)
    has_user = any(c is None for _, c in table)
    has_pair = any(u is not None and c is not None for u, c in table)
    if has_client + has_user + has_pair <= 1:
        tags = (user, "") if has_user else (user, client) if has_pair else ("", client)
    elif (user, client) in table or (user, DEFAULT) in table:
        tags = (user, client)
    elif (user, None) in table:
        tags = (user, "")
    elif (DEFAULT, client) in table or (DEFAULT, DEFAULT) in table:
        tags = (user, client)
    elif (DEFAULT, None) in table:
        tags = (user, "")
    else:
        tags = ("", client)
    if tags[0] and tags[1]:
        order: list[tuple[object, object]] = [(tags[0], tags[1]), (tags[0], DEFAULT), (DEFAULT, tags[1]), (DEFAULT, DEFAULT)]
    elif tags[0]:
        order = [(tags[0], None), (DEFAULT, None)]
    elif tags[1]:
        order = [(None, tags[1]), (None, DEFAULT)]
    else:
        order = []
    return tags, next((table[o] for o in order if o in table), None)


@settings(max_examples=400, deadline=None)
@given(
    table=st.dictionaries(st.sampled_from(SHAPES), st.integers(1, 99).map(float), max_size=10),
    user=st.sampled_from([*NAMES, "other"]),
    client=st.sampled_from(["", *NAMES, "other"]),
)
def test_buckets_and_limits_agree_with_the_walk(table: dict[tuple[object, object], float], user: str, client: str) -> None:
    quotas = {entity_of(*shape): {KEY: value, "other_key": 1.0} for shape, value in table.items()}
    resolver = Resolver(quotas, KEY)
    tags, limit = walk(table, user, client)
    found = resolver.resolve(user, client)
    assert found.bucket == Bucket(user=tags[0], client_id=tags[1])
    assert found.value == limit
    assert resolver.bucket_and_limit(user, client) == (found.bucket, found.value)
    matching = {(u, c) for u, c in table if u in (None, DEFAULT, user) and c in (None, DEFAULT, client)}
    assert {c.entity for c in found.overridden} | ({found.source} - {None}) == {entity_of(*m) for m in matching}
