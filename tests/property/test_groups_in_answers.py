"""Answers of ``resolve`` for brokers with the plugin of groups are the limits that the plugin computes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.callbacks.callback import GroupQuotaCallback, callback_limits
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.effective_quotas import Caveats, EffectiveQuotas
from reconciler.resolution.reserved_users import GroupLimit, GroupMember, MemberKind, reserved_entity, stored_rule

KEY = "producer_byte_rate"
USERS, CLIENTS = ["a", "a-1", "b"], ["", "c", "c-1", "d"]
SHAPES = [(u, c) for u in [None, DEFAULT, *USERS] for c in [None, DEFAULT, *CLIENTS[1:]] if (u, c) != (None, None)]
PLAIN = [Entity.of({t: n for t, n in (("user", u), ("client-id", c)) if n is not None}) for u, c in SHAPES]
LIMITS = [reserved_entity(GroupLimit(group=group)) for group in "gh"]
MEMBERS = [
    reserved_entity(GroupMember(group=group, kind=kind, name=name))
    for group in "gh"
    for kind in MemberKind
    for name in (USERS if "user" in kind else CLIENTS[1:])
]
TABLES = st.tuples(
    st.dictionaries(st.sampled_from(PLAIN), st.integers(1, 99).map(float), max_size=4),
    st.dictionaries(st.sampled_from(LIMITS), st.integers(100, 199).map(float), max_size=2),
    st.sets(st.sampled_from(MEMBERS), max_size=5),
)


@given(TABLES, st.sampled_from(USERS), st.sampled_from(CLIENTS))
def test_limits_are_those_of_the_plugin(
    parts: tuple[dict[Entity, float], dict[Entity, float], set[Entity]], user: str, client_id: str
) -> None:
    plain, limits, members = parts
    table = {entity: {KEY: value} for entity, value in (plain | limits).items()}
    table |= {member: {"request_percentage": 100.0} for member in members}
    plugin = callback_limits(GroupQuotaCallback, table, {1: None})[KEY].at(1).resolve(user, client_id)

    names = {"user": user, "client-id": client_id} if client_id else {"user": user}
    answer = EffectiveQuotas(table, Caveats(groups=True)).answer(Entity.of(names)).quotas.get(KEY)
    assert (None if answer is None else answer.value) == plugin.value
    group = dict(plugin.bucket.other).get("group")
    assert (answer is not None and answer.bucket.get("group")) == (group or (answer is not None and None))
    if answer is not None and group is not None:
        assert stored_rule(answer.source) == GroupLimit(group=group)
