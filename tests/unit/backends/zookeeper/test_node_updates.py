"""What an alteration makes of a node: its new text, or the answer when nothing is written."""

import math

import pytest

from reconciler.backends.zookeeper.writing import LONGEST_PATH, NodeRead, update_node, zookeeper_refusal
from reconciler.model.entity import Entity
from reconciler.model.plan import Alteration, AlterationResult
from tests.builders import client, ip, pair, user

SCRAM = b'"SCRAM-SHA-256":"salt=MTd,stored_key=U8g=,server_key=9O5=,iterations=4096"'


def node(config: bytes) -> NodeRead:
    return NodeRead(data=b'{"version":1,"config":{' + config + b"}}", version=3, created=7, has_children=False)


def intended(alteration: Alteration, read: NodeRead | None) -> bytes:
    found = update_node(alteration, read)
    assert not isinstance(found, AlterationResult), found
    return found.encoded()


def answered(alteration: Alteration, read: NodeRead | None) -> AlterationResult:
    found = update_node(alteration, read)
    assert isinstance(found, AlterationResult), found
    return found


def alteration(before: dict[str, float | None] | None = None, entity: Entity | None = None, **ops: float | None) -> Alteration:
    return Alteration(entity=entity or user("a"), ops=ops, before=before)


def test_a_node_that_is_not_there_gets_kafkas_text() -> None:
    assert intended(alteration(producer_byte_rate=1024.0, request_percentage=100.0), None) == (
        b'{"version":1,"config":{"request_percentage":"100.0","producer_byte_rate":"1024"}}'
    )


def test_credentials_stay_when_the_last_quota_goes() -> None:
    changed = alteration(producer_byte_rate=None)

    assert intended(changed, node(SCRAM + b',"producer_byte_rate":"5"')) == b'{"version":1,"config":{' + SCRAM + b"}}"


def test_what_the_node_has_already_is_not_written_again() -> None:
    read = node(b'"producer_byte_rate":"5","request_percentage":"12.50"')

    assert answered(alteration(producer_byte_rate=5.0, request_percentage=12.5, consumer_byte_rate=None), read).error_code == 0


def test_what_it_has_already_is_good_whatever_it_was_when_planned() -> None:
    """An earlier attempt whose answer was lost has done it."""
    done = answered(alteration(before={"producer_byte_rate": 1.0}, producer_byte_rate=5.0), node(b'"producer_byte_rate":"5"'))

    assert (done.error_code, done.stale) == (0, False)


@pytest.mark.parametrize(
    ("before", "config", "said"),
    [
        ({"producer_byte_rate": 1.0}, b'"producer_byte_rate":"2"', "was 1 when planned and is 2 now"),
        ({"producer_byte_rate": None}, b'"producer_byte_rate":"2"', "was not set when planned and is 2 now"),
        ({"producer_byte_rate": 1.0}, b"", "was 1 when planned and is not set now"),
    ],
)
def test_a_planned_value_that_changed_underneath_is_stale(before: dict[str, float | None], config: bytes, said: str) -> None:
    refused = answered(alteration(before=before, producer_byte_rate=5.0), node(config))

    assert refused.stale
    assert refused.error_code != 0
    assert said in (refused.error or "")


def test_other_keys_that_changed_underneath_do_not_matter() -> None:
    read = node(SCRAM + b',"producer_byte_rate":"1","consumer_byte_rate":"99"')
    changed = alteration(before={"producer_byte_rate": 1.0}, producer_byte_rate=5.0)

    assert (
        intended(changed, read) == b'{"version":1,"config":{' + SCRAM + b',"producer_byte_rate":"5","consumer_byte_rate":"99"}}'
    )


def test_a_credential_is_never_removed() -> None:
    removal = Alteration(entity=user("a"), ops={"SCRAM-SHA-256": None, "producer_byte_rate": None})
    refused = answered(removal, node(SCRAM))

    assert (refused.error_code, refused.stale) == (42, False)
    assert "does not remove" in (refused.error or "")


def test_removing_an_unknown_key_that_is_not_there_is_nothing() -> None:
    assert answered(Alteration(entity=user("a"), ops={"no_such_key": None}), None).error_code == 0


def test_a_node_that_is_no_json_is_left_as_it_is() -> None:
    broken = NodeRead(data=b"hello", version=1, created=7, has_children=False)
    refused = answered(alteration(producer_byte_rate=5.0), broken)

    assert refused.error_code == 42
    assert "hello" not in (refused.error or "")


@pytest.mark.parametrize("value", [b'"abc"', b'"5.5"', b"1024", b"null", b'"9223372036854775808"', b'"1e3"'])
def test_a_value_that_brokers_cannot_read_is_set_right_and_else_stops_the_write(value: bytes) -> None:
    read = node(b'"producer_byte_rate":' + value)

    assert intended(alteration(producer_byte_rate=7.0), read) == b'{"version":1,"config":{"producer_byte_rate":"7"}}'
    assert "by hand" in (answered(alteration(consumer_byte_rate=7.0), read).error or "")
    assert intended(alteration(producer_byte_rate=None), read) == b'{"version":1,"config":{}}'


def test_a_number_that_is_right_and_not_readable_is_written_again() -> None:
    assert intended(alteration(producer_byte_rate=1000.0), node(b'"producer_byte_rate":"1e3"')) == (
        b'{"version":1,"config":{"producer_byte_rate":"1000"}}'
    )


@pytest.mark.parametrize(
    ("entity", "ops", "said"),
    [
        (user("a"), {"producer_byte_rate": 0.0}, "must be greater than 0"),
        (user("a"), {"connection_creation_rate": 1.0}, "Invalid configuration key"),
        (user("a"), {"producer_byte_rate": 1.0000001}, "whole number"),
        (user("a"), {"consumer_byte_rate": math.nan}, "whole number"),
        (user("a"), {"SCRAM-SHA-256": 1.0}, "Invalid configuration key"),
        (user("."), {"producer_byte_rate": 1.0}, "cannot store a node"),
        (pair("a", ".."), {"producer_byte_rate": None}, "cannot store a node"),
        (user("a\udc00"), {"producer_byte_rate": 1.0}, "half a surrogate pair"),
        (pair("é" * 16_000, "é" * 16_000), {"producer_byte_rate": 1.0}, str(LONGEST_PATH)),
        (ip("broker.example.com"), {"connection_creation_rate": 1.0}, "not a literal address"),
        (ip("fe80::1%1"), {"connection_creation_rate": 1.0}, "zone"),
        (ip("10.0.0.0/8"), {"connection_creation_rate": None}, "cannot store a node"),
        (Entity.of({"group": "g"}), {"producer_byte_rate": 1.0}, "Unhandled client quota entity type"),
        (Entity.of({"ip": "1.2.3.4", "user": "a"}), {"producer_byte_rate": 1.0}, "should"),
    ],
)
def test_what_a_broker_would_refuse_or_not_survive_is_refused(entity: Entity, ops: dict[str, float | None], said: str) -> None:
    assert said in (zookeeper_refusal(Alteration(entity=entity, ops=ops)) or "")


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        (user("a"), {"producer_byte_rate": 2.0**63, "request_percentage": 1e-5}),
        (user("a"), {"request_percentage": math.nan}),
        (client("%40"), {"controller_mutation_rate": math.inf}),
        (ip("::1"), {"connection_creation_rate": 2.0**31 - 1}),
        (ip("broker.example.com"), {"connection_creation_rate": None}),
    ],
)
def test_what_brokers_read_is_let_through(entity: Entity, ops: dict[str, float | None]) -> None:
    assert zookeeper_refusal(Alteration(entity=entity, ops=ops)) is None
