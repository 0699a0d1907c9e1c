"""EffectiveQuotas beyond users and client ids by name: addresses, odd names, and what cannot be told."""

from __future__ import annotations

import pytest

from reconciler.model.effect import OTHER, KnownAddress, KnownClient
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.effective_quotas import ADDRESS_KEY, KEYS, Caveats, EffectiveQuotas, RungStatus
from reconciler.resolution.kafka_names import client_of, entity_of
from tests.builders import ip, pair, user

PRODUCE = "producer_byte_rate"


def limited(**by_name: float) -> dict[Entity, dict[str, float]]:
    return {ip(DEFAULT if name == "default" else name): {ADDRESS_KEY: value} for name, value in by_name.items()}


@pytest.mark.parametrize(
    ("asked", "value", "source", "level", "bucket"),
    [
        ("10.0.0.7", 5.0, "10.0.0.7", 1, "10.0.0.7"),
        ("::ffff:10.0.0.7", 5.0, "10.0.0.7", 1, "10.0.0.7"),
        ("0:0:0:0:0:0:0:1", 7.0, "::1", 1, "0:0:0:0:0:0:0:1"),
        ("::1", 7.0, "::1", 1, "0:0:0:0:0:0:0:1"),
        ("db.internal", 8.0, "db.internal", 1, "db.internal"),
        ("DB.internal", 9.0, DEFAULT, 2, "DB.internal"),
        ("10.0.0.8", 9.0, DEFAULT, 2, "10.0.0.8"),
        (DEFAULT, 9.0, DEFAULT, 2, None),
    ],
)
def test_an_address_is_found_in_every_spelling_and_a_host_name_in_its_own(
    asked: str, value: float, source: str, level: int, bucket: str | None
) -> None:
    answers = EffectiveQuotas(limited(**{"10.0.0.7": 5.0, "::1": 7.0, "db.internal": 8.0, "default": 9.0}))
    answer = answers.answer(ip(asked), explain=True)
    found = answer.quotas[ADDRESS_KEY]
    assert (found.value, found.source, found.level, found.bucket) == (value, ip(source), level, {"ip": bucket})
    assert found.overridden is not None
    assert [o.value for o in found.overridden] == ([9.0] if level == 1 else [])
    assert answer.keys == (ADDRESS_KEY,)


def test_spellings_of_one_address_that_disagree_make_its_limit_unknown() -> None:
    answers = EffectiveQuotas(limited(**{"::1": 7.0, "0:0:0:0:0:0:0:1": 8.0, "default": 9.0}))
    for asked in ("::1", "0::1"):
        answer = answers.answer(ip(asked), explain=True)
        assert answer.quotas == {}
        assert "ip=0:0:0:0:0:0:0:1" in answer.unknown[ADDRESS_KEY]
        assert "ip=::1" in answer.unknown[ADDRESS_KEY]
        assert answer.ladder is not None
        assert not any(rung.status is RungStatus.WINS for rung in answer.ladder[ADDRESS_KEY])
    same = EffectiveQuotas(limited(**{"::1": 7.0, "0:0:0:0:0:0:0:1": 7.0}))
    assert same.answer(ip("0::1")).quotas[ADDRESS_KEY].value == 7.0
    assert same.answer(ip("0:0:0:0:0:0:0:1")).quotas[ADDRESS_KEY].source == ip("0:0:0:0:0:0:0:1")


def test_a_callback_of_the_brokers_own_leaves_only_addresses_known() -> None:
    answers = EffectiveQuotas({user("a"): {PRODUCE: 1.0}, ip("10.0.0.7"): {ADDRESS_KEY: 2.0}}, Caveats(callback="custom"))
    answer = answers.answer(user("a"), explain=True)
    assert answer.quotas == answer.ladder == {}
    assert answer.unknown == dict.fromkeys(KEYS, "custom")
    assert answers.answer(ip("10.0.0.7")).quotas[ADDRESS_KEY].value == 2.0


@pytest.mark.parametrize(
    ("asked", "unknown"),
    [
        (pair("a", "c"), {"consumer_byte_rate"}),
        (pair("b", "c"), {PRODUCE, "consumer_byte_rate"}),
        (pair("b", DEFAULT), {PRODUCE, "consumer_byte_rate"}),
        (user("b"), set()),
        (pair("b", ""), set()),
        (ip("10.0.0.7"), set()),
    ],
)
def test_static_defaults_may_limit_byte_rates_of_client_ids_without_a_quota(asked: Entity, unknown: set[str]) -> None:
    answers = EffectiveQuotas(
        {user("a"): {PRODUCE: 1.0}}, Caveats(static_defaults={PRODUCE: "before 3.0", "consumer_byte_rate": "before 3.0"})
    )
    assert answers.answer(asked).unknown == dict.fromkeys(unknown, "before 3.0")


def test_everybody_is_each_entity_and_other_client_ids_where_those_differ() -> None:
    odd = Entity.of({"client-id-prefix": "x"})
    answers = EffectiveQuotas(
        {user("a"): {PRODUCE: 1.0}, user("b"): {PRODUCE: 2.0}, pair("b", DEFAULT): {PRODUCE: 3.0}, odd: {PRODUCE: 4.0}}
    )
    assert [entity for entity, _ in answers.known_clients()] == [user("a"), user("b"), pair("b", DEFAULT)]
    with_default = EffectiveQuotas({user("a"): {"request_percentage": 1.0}, pair(DEFAULT, DEFAULT): {PRODUCE: 3.0}})
    assert [entity for entity, _ in with_default.known_clients()] == [user("a"), pair("a", DEFAULT), pair(DEFAULT, DEFAULT)]


@pytest.mark.parametrize(
    "known", [KnownClient(user="a", client_id=""), KnownClient(user=OTHER, client_id=OTHER), KnownAddress(ip=OTHER)]
)
def test_a_client_can_be_asked_about_by_an_entity(known: KnownClient | KnownAddress) -> None:
    assert client_of(entity_of(known)) == known
