"""The quota callback that stands for Kafka's own gives the buckets and limits of the eight levels, whatever happened before."""

from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.callbacks.callback import CallbackLimits, DefaultQuotaCallback, QuotaCallback, QuotaType, callback_limits
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolved, Resolver

KEY = "producer_byte_rate"
NAMES = ["a", "b", "<default>"]
SHAPES = [(u, c) for u in [None, DEFAULT, *NAMES] for c in [None, DEFAULT, *NAMES] if (u, c) != (None, None)]
ENTITIES = [Entity.of({t: n for t, n in (("user", u), ("client-id", c)) if n is not None}) for u, c in SHAPES]
TABLES = st.dictionaries(st.sampled_from(ENTITIES), st.integers(1, 99).map(float), max_size=8)
USERS, CLIENTS = [*NAMES, "other"], ["", *NAMES, "other"]


def kept(found: Resolved) -> tuple[object, float | None]:
    return found.bucket, found.value


@given(TABLES, st.sampled_from(USERS), st.sampled_from(CLIENTS))
def test_the_default_callback_is_the_eight_levels(quotas: dict[Entity, float], user: str, client: str) -> None:
    table = {entity: {KEY: value} for entity, value in quotas.items()}
    by_callback = callback_limits(DefaultQuotaCallback, table, {7: None})[KEY].at(7)
    assert kept(by_callback.resolve(user, client)) == kept(Resolver(table, KEY).resolve(user, client))


@given(TABLES, TABLES, st.booleans(), st.sampled_from(USERS), st.sampled_from(CLIENTS))
def test_what_was_removed_counts_only_where_kinds_are_remembered(
    earlier: dict[Entity, float], later: dict[Entity, float], remembers: bool, user: str, client: str
) -> None:
    callback = DefaultQuotaCallback({"remember-kinds": "true"} if remembers else {})
    for entity, value in earlier.items():
        callback.update_quota(QuotaType.PRODUCE, entity, value)
    for entity in earlier.keys() - later.keys():
        callback.remove_quota(QuotaType.PRODUCE, entity)
    for entity, value in later.items():
        callback.update_quota(QuotaType.PRODUCE, entity, value)
    now = Resolver({entity: {KEY: value} for entity, value in later.items()}, KEY)
    before = Resolver({entity: {KEY: value} for entity, value in earlier.items()}, KEY)
    wanted = (now.remembering(before) if remembers else now).resolve(user, client)
    assert kept(CallbackLimits(callback, QuotaType.PRODUCE).resolve(user, client)) == kept(wanted)
    # Which limit holds never depends on what is remembered.
    assert wanted.winner == now.resolve(user, client).winner
    if wanted.winner is not None:
        assert wanted.bucket == now.resolve(user, client).bucket


def test_the_default_callback_has_the_shape_of_one() -> None:
    assert isinstance(DefaultQuotaCallback(), QuotaCallback)


@given(TABLES, st.sampled_from([None, *USERS]), st.sampled_from([None, *CLIENTS]))
def test_a_client_known_in_part_is_resolved_only_when_every_name_gives_the_same(
    quotas: dict[Entity, float], user: str | None, client: str | None
) -> None:
    resolver = Resolver({entity: {KEY: value} for entity, value in quotas.items()}, KEY)
    found = resolver.resolve_partly(user, client)
    users = USERS if user is None else [user]
    clients = CLIENTS if client is None else [client]
    answers = [resolver.resolve(u, c) for u in users for c in clients]
    winners = {answer.winner for answer in answers}
    buckets = {answer.bucket for answer in answers}
    if found is None:
        assert len(winners) > 1 or len(buckets) > 1
    else:
        assert winners == {found.winner}
        if found.winner is not None:
            assert buckets == {found.bucket}
    assert winners - {None} <= resolver.touches(user, client)
