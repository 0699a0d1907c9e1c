"""What a quota callback answers is checked, the page and the example have all of it, and Kafka's own is the eight levels."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import QuotaCallbackError
from reconciler.features.callbacks.callback import (
    METHODS,
    CallbackLimits,
    ClusterMetadata,
    DefaultQuotaCallback,
    PartitionLeader,
    Principal,
    QuotaCallback,
    QuotaType,
    callback_limits,
)
from reconciler.model import BucketName
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolved, Resolver
from tests.support.pages import part

ROOT = Path(__file__).parents[3]
PAGE = part("totals-and-groups", "Quota callbacks")
PRODUCE = "producer_byte_rate"
ALICE, ADDRESS = Entity.of({"user": "alice"}), Entity.of({"ip": "10.0.0.1"})


class Scripted(DefaultQuotaCallback):
    """EffectiveQuotas what it is told to."""

    def __init__(self, *, tags: Any = None, limit: Any = None) -> None:
        super().__init__()
        self.told: list[tuple[str, Any]] = []
        self._tags, self._limit = tags, limit

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        tags: Mapping[str, str] | None = self._tags
        return tags if tags is not None else {"team": principal.name[:1], "user": "", "client-id": ""}

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        self.told.append(("limit", dict(metric_tags)))
        limit: float | None = self._limit
        return limit

    def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
        self.told.append((quota_type.value, (entity, value)))

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        self.told.append(("metadata", cluster))
        return True


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), 0, -1.0, True, "7", [7]])
def test_a_limit_is_a_finite_number_above_zero(limit: object) -> None:
    table = callback_limits(lambda: Scripted(limit=limit), {}, {1: None})[PRODUCE].at(1)
    with pytest.raises(QuotaCallbackError, match="must return a finite number above 0, or None for unlimited"):
        table.resolve("alice", "app")


@pytest.mark.parametrize("tags", [7, ["team"], {"team": 7}, {7: "team"}])
def test_tags_are_text_to_text(tags: object) -> None:
    table = callback_limits(lambda: Scripted(tags=tags), {}, {1: None})[PRODUCE].at(1)
    with pytest.raises(QuotaCallbackError, match="must return a mapping of text to text"):
        table.resolve("alice", "app")


def test_no_limit_is_none_and_an_empty_tag_is_absent() -> None:
    table = callback_limits(Scripted, {}, {1: None})[PRODUCE].at(1)
    found = table.resolve("alice", "app")
    assert (found.bucket, found.value, found.source) == (BucketName(user="", client_id="", other=(("team", "a"),)), None, None)


def test_a_limit_is_asked_for_once_a_bucket_with_the_tags_as_they_were_given() -> None:
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted(limit=5))
        return made[-1]

    table = callback_limits(make, {}, {1: None})[PRODUCE].at(1)
    assert [table.resolve(user, "app").value for user in ("alice", "anna", "bob")] == [5.0, 5.0, 5.0]
    assert [tags["team"] for kind, tags in made[0].told if kind == "limit"] == ["a", "b"]


def test_each_broker_has_an_instance_that_is_told_what_that_broker_knows() -> None:
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted())
        return made[-1]

    leaders = (PartitionLeader(topic="t", partition=0, leader=1), PartitionLeader(topic="t", partition=1, leader=None))
    known = ClusterMetadata(broker=2, brokers=(1, 2), partitions=leaders)
    quotas = {
        ADDRESS: {"connection_creation_rate": 5.0},
        ALICE: {"request_percentage": 50.0, PRODUCE: 9.0, "unknown_key": 1.0},
        Entity.of({"user": DEFAULT}): {PRODUCE: 7.0},
    }
    callback_limits(make, quotas, {2: known, 1: None})
    one, two = made
    updates = [
        ("PRODUCE", (ALICE, 9.0)), ("REQUEST", (ALICE, 50.0)), ("PRODUCE", (Entity.of({"user": DEFAULT}), 7.0)),
    ]  # fmt: skip
    assert one.told == updates
    assert two.told == [("metadata", known), *updates]


def test_a_class_that_raises_is_named_with_the_method_and_without_control_characters() -> None:
    class Broken(DefaultQuotaCallback):
        def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
            raise RuntimeError("no\x1b[31m way")

    with pytest.raises(QuotaCallbackError, match=r"Broken failed in update_quota: RuntimeError: no.u001b.31m way"):
        callback_limits(Broken, {ALICE: {PRODUCE: 1.0}}, {1: None})


def test_every_method_and_type_is_on_the_page() -> None:
    assert [method for method in METHODS if f"`{method}(" not in PAGE] == []
    assert [quota_type for quota_type in QuotaType if f"`{quota_type.value}`" not in PAGE] == []


def test_the_example_shares_limits_by_group() -> None:
    made = runpy.run_path(str(ROOT / "examples" / "group-quotas" / "quota_groups.py"))["GroupQuotas"]({"separator": "-"})
    assert isinstance(made, QuotaCallback)
    quotas = {
        Entity.of({"user": "payments-"}): {PRODUCE: 5.0},
        Entity.of({"user": "-"}): {PRODUCE: 7.0},
        Entity.of({"user": "payments-api", "client-id": "x"}): {PRODUCE: 1.0},
    }
    table = callback_limits(lambda: made, quotas, {1: None})[PRODUCE].at(1)
    found = {user: table.resolve(user, "any") for user in ("payments-api", "payments-batch", "orders-api", "alice")}
    group = BucketName(user="", client_id="", other=(("group", "payments"),))
    assert [found[user].bucket for user in ("payments-api", "payments-batch")] == [group, group]
    assert [found[user].value for user in found] == [5.0, 5.0, 7.0, None]
    made.remove_quota(QuotaType.PRODUCE, Entity.of({"user": "payments-"}))
    assert made.quota_limit(QuotaType.PRODUCE, {"group": "payments"}) == 7.0


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
    # Which limit applies never depends on what is remembered.
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
