"""Resolution against a second, slower telling of the rules, written as Kafka's nested walk over pairs of names."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.resolution.resolver import Resolver

KEY = "consumer_byte_rate"
NAMES = ["a", "b", "<default>"]
SHAPES = [(u, c) for u in [None, DEFAULT, *NAMES] for c in [None, DEFAULT, *NAMES] if (u, c) != (None, None)]


def entity_of(user: EntityName | None, client: EntityName | None) -> Entity:
    return Entity.of({t: n for t, n in (("user", user), ("client-id", client)) if n is not None})


TABLES = st.dictionaries(st.sampled_from(SHAPES), st.integers(1, 3).map(float), max_size=8)


@settings(max_examples=150)
@given(earlier=TABLES, changes=st.dictionaries(st.sampled_from(SHAPES), st.none() | st.integers(1, 3).map(float), max_size=2))
def test_who_is_not_touched_by_a_change_keeps_the_whole_answer(earlier, changes) -> None:
    later = {shape: value for shape, value in {**earlier, **changes}.items() if value is not None}
    before, after = (Resolver({entity_of(*s): {KEY: v} for s, v in table.items()}, KEY) for table in (earlier, later))
    may_differ = after.may_differ(before)
    clients = [(user, client) for user in (*NAMES, "other") for client in ("", *NAMES, "other")]

    assert [who for who in clients if not may_differ(*who) and after.resolve(*who) != before.resolve(*who)] == []
    if earlier == later:
        assert not any(may_differ(*who) for who in clients)
