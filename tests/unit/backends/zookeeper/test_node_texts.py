"""The JSON of a node: read whole, changed in its quotas only."""

import json

import pytest

from reconciler.backends.zookeeper.node_text import UnreadableNodeError, parse_node

CREDENTIAL = b'"SCRAM-SHA-512":"salt=MTJ4,stored_key=Nd/ON+Q==,server_key=fSq7==,iterations=4096"'


@pytest.mark.parametrize("data", [None, b"", b" \n", b'{"version":1,"config":{}}', b"{}", b'{"version":1}', b'{"config":{ } }'])
def test_a_node_without_a_config_is_empty(data: bytes | None) -> None:
    node = parse_node(data)

    assert node.values() == {}
    assert node.is_empty


def test_keys_are_written_in_the_order_in_which_a_broker_writes_them() -> None:
    texts = {
        "controller_mutation_rate": "1.0", "producer_byte_rate": "1", "consumer_byte_rate": "2", "request_percentage": "12.5",
    }  # fmt: skip

    assert parse_node(None).altered(texts).encoded() == (
        b'{"version":1,"config":{"request_percentage":"12.5","producer_byte_rate":"1","consumer_byte_rate":"2",'
        b'"controller_mutation_rate":"1.0"}}'
    )


def test_credentials_keep_their_bytes_and_their_place() -> None:
    node = parse_node(b'{"version":1,"config":{' + CREDENTIAL + b"}}")

    added = node.altered({"producer_byte_rate": "5"})
    assert added.encoded() == b'{"version":1,"config":{' + CREDENTIAL + b',"producer_byte_rate":"5"}}'
    assert added.altered({"producer_byte_rate": None}).encoded() == node.encoded()
    assert not node.is_empty


def test_nothing_but_the_altered_member_changes_a_byte() -> None:
    data = (
        b'{ "version" : 1 ,\n "x":{"a":[1, 2,{"config":1}]},'
        b' "config" : { "b" : "\\u00e4" , "producer_byte_rate":"5", "z":"1" } , "t":1}  '
    )
    node = parse_node(data)

    assert node.encoded() == data
    assert node.values() == {"b": "ä", "producer_byte_rate": "5", "z": "1"}
    assert node.altered({"producer_byte_rate": "77"}).encoded() == data.replace(b'"5"', b'"77"')
    assert node.altered({"producer_byte_rate": None}).encoded() == data.replace(b' "producer_byte_rate":"5",', b"")
    assert json.loads(node.altered({"request_percentage": "1.0"}).encoded())["config"]["request_percentage"] == "1.0"


def test_a_node_says_something_without_a_config_too() -> None:
    assert (
        not parse_node(b'{"version":1,"owner":"x","config":{"producer_byte_rate":"5"}}')
        .altered({"producer_byte_rate": None})
        .is_empty
    )


def test_a_node_without_a_config_object_gets_one() -> None:
    assert parse_node(b'{"version":1}').altered({"producer_byte_rate": "5"}).encoded() == (
        b'{"version":1,"config":{"producer_byte_rate":"5"}}'
    )
    assert parse_node(b" { } ").altered({"producer_byte_rate": "5"}).encoded() == b' { "config":{"producer_byte_rate":"5"}} '


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"hello", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b'{"config":[]}', "config is not"),
        (b'{"config":null}', "config is not"),
        (b'{"config":{}} x', "more than one"),
        (b'{"config":{"a":"1","a":"2"}}', "same key twice"),
        (b'{"config":{},"config":{}}', "same key twice"),
        (b'{"config":{"a":NaN}}', "not JSON"),
        (b'{"a"}', "not JSON"),
        (b"{1:2}", "not JSON"),
        (b'{"config":{"a":"1",}}', "not JSON"),
        (b'{"a":1 "b":2}', "not JSON"),
        (b'{"config":{', "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not a JSON"),
        (b'{"config":{"a":' + b"[" * 100_000, "not JSON"),
        (b'{"config":{"a":' + b"9" * 10_000 + b"}}", "not JSON"),
    ],
)
def test_what_is_no_config_is_unreadable_and_not_quoted(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableNodeError, match=why) as unreadable:
        parse_node(data)
    assert "hello" not in str(unreadable.value)
