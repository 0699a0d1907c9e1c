"""Nodes of ZooKeeper: names of entities as paths and back, the JSON, and what an alteration makes of it."""

import json
import math

import pytest

from reconciler.backends.zookeeper.nodes import (
    UnreadableNodeError,
    UnwritableNameError,
    address_node,
    address_of_node,
    name_of_node,
    parse_java,
    parse_node,
)
from reconciler.backends.zookeeper.writing import LONGEST_PATH, NodeRead, update_node, zookeeper_refusal
from reconciler.model.entity import Entity
from reconciler.model.plan import Alteration, AlterationResult
from tests.builders import client, ip, pair, user

SCRAM = b'"SCRAM-SHA-256":"salt=MTd"'


@pytest.mark.parametrize(
    "node", ["raw name", "x%2fy", "x+y", "~t", "bad%zz", "%", "%4", "%C3", "%C3%28", "%ED%A0%80", "ä", "a*b"]
)
def test_a_node_that_kafka_makes_for_no_name_is_nobodys(node: str) -> None:
    assert name_of_node(node) is None


@pytest.mark.parametrize("address", ["", ".", "..", "a/b", "<default>", "ä", "a\nb", 'a"b', "a\\b"])
def test_what_is_no_address_has_no_node(address: str) -> None:
    with pytest.raises(UnwritableNameError):
        address_node(address)


@pytest.mark.parametrize("node", ["%3A%3A1", "fe80::1%1"])
def test_an_address_that_brokers_cannot_resolve_is_nobodys(node: str) -> None:
    assert address_of_node(node) is None


@pytest.mark.parametrize("data", [None, b"", b" \n", b'{"version":1,"config":{}}', b"{}", b'{"config":{ } }'])
def test_a_node_without_a_config_is_empty(data: bytes | None) -> None:
    assert parse_node(data).is_empty


@pytest.mark.parametrize(
    "data",
    [
        b"hello", b"[]", b"null", b'{"config":[]}', b'{"config":null}', b'{"config":{}} x', b'{"config":{"a":"1","a":"2"}}',
        b'{"config":{},"config":{}}', b'{"config":{"a":NaN}}', b'{"config":{},"x":1e999}', b'{"config":{"a":"1",}}', b"\xff\xfe",
        b"\xef\xbb\xbf{}", b'{"config":{"a":' + b"[" * 100_000, b'{"config":{"a":' + b"9" * 10_000 + b"}}",
    ],
)  # fmt: skip
def test_what_is_no_config_is_unreadable_and_not_quoted(data: bytes) -> None:
    with pytest.raises(UnreadableNodeError) as unreadable:
        parse_node(data)
    assert "hello" not in str(unreadable.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [(" 12 ", 12.0), ("+3", 3.0), (".5", 0.5), ("5.", 5.0), ("1E-2", 0.01), ("1e400", math.inf), ("+Infinity", math.inf)]
    + [(text, None) for text in ("", " ", "abc", "1_0", "1,5", "0x1", "inf", "nan", "1e", "--1", "٣", "12 d", "+-1")],
)  # fmt: skip
def test_a_number_is_what_java_parses(text: str, value: float | None) -> None:
    assert parse_java(text) == value


def node(config: bytes) -> NodeRead:
    return NodeRead(data=b'{"version":1,"config":{' + config + b"}}", version=3, created=7, has_children=False)


def intended(alteration: Alteration, read: NodeRead | None) -> object:
    found = update_node(alteration, read)
    assert not isinstance(found, AlterationResult), found
    return json.loads(found.encoded())["config"]


def answered(alteration: Alteration, read: NodeRead | None) -> AlterationResult:
    found = update_node(alteration, read)
    assert isinstance(found, AlterationResult), found
    return found


def alteration(before: dict[str, float | None] | None = None, entity: Entity | None = None, **ops: float | None) -> Alteration:
    return Alteration(entity=entity or user("a"), ops=ops, before=before)


def test_a_node_that_is_not_there_is_made() -> None:
    changed = alteration(producer_byte_rate=1024.0, request_percentage=1e-5)
    assert intended(changed, None) == {"producer_byte_rate": "1024", "request_percentage": "1e-05"}


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

    assert intended(changed, read) == {"SCRAM-SHA-256": "salt=MTd", "producer_byte_rate": "5", "consumer_byte_rate": "99"}


def test_a_credential_is_never_removed() -> None:
    removal = Alteration(entity=user("a"), ops={"SCRAM-SHA-256": None, "producer_byte_rate": None})
    refused = answered(removal, node(SCRAM))

    assert (refused.error_code, refused.stale) == (42, False)
    assert "does not remove" in (refused.error or "")


@pytest.mark.parametrize("value", [b'"abc"', b'"5.5"', b"1024", b"null", b'"9223372036854775808"', b'"1e3"'])
def test_a_value_that_brokers_cannot_read_is_set_right_and_else_stops_the_write(value: bytes) -> None:
    read = node(b'"producer_byte_rate":' + value)

    assert intended(alteration(producer_byte_rate=7.0), read) == {"producer_byte_rate": "7"}
    assert "by hand" in (answered(alteration(consumer_byte_rate=7.0), read).error or "")
    assert intended(alteration(producer_byte_rate=None), read) == {}


def test_a_number_that_is_right_and_not_readable_is_written_again() -> None:
    assert intended(alteration(producer_byte_rate=1000.0), node(b'"producer_byte_rate":"1e3"')) == {"producer_byte_rate": "1000"}


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
        (ip("fe80::1%1"), {"connection_creation_rate": 1.0}, "not a literal address"),
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
