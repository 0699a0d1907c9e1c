"""Names of entities as ZooKeeper nodes, and back."""

import pytest

from reconciler.backends.zookeeper.nodes import (
    UnwritableNameError,
    address_node,
    address_of_node,
    name_of_node,
    node_name,
    node_path,
    notification,
    parents,
)
from reconciler.model.entity import DEFAULT
from tests.builders import client, ip, pair, user

ENCODED = {
    "alice@EXAMPLE.COM": "alice%40EXAMPLE.COM",
    "CN=writeuser,OU=Unknown,O=Unknown": "CN%3Dwriteuser%2COU%3DUnknown%2CO%3DUnknown",
    "a b": "a%20b",
    "a+b": "a%2Bb",
    "a*b": "a%2Ab",
    "a/b": "a%2Fb",
    "a:b": "a%3Ab",
    "<default>": "%3Cdefault%3E",
    "%": "%25",
    "~tilde": "%7Etilde",
    "(p)!": "%28p%29%21",
    "'q'": "%27q%27",
    "ä": "%C3%A4",
    "日本": "%E6%97%A5%E6%9C%AC",
    "\U0001f600": "%F0%9F%98%80",
    "kafka/host.example.com@REALM": "kafka%2Fhost.example.com%40REALM",
    "user_1-2.3": "user_1-2.3",
    "\x00\n": "%00%0A",
    "%40": "%2540",
    "clients": "clients",
}


@pytest.mark.parametrize(("name", "node"), ENCODED.items())
def test_names_are_encoded_as_kafka_does_and_decoded_again(name: str, node: str) -> None:
    assert node_name(name) == node
    assert name_of_node(node) == name


def test_the_default_has_a_node_that_no_name_has() -> None:
    assert node_name(DEFAULT) == "<default>"
    assert name_of_node("<default>") is DEFAULT


@pytest.mark.parametrize(
    "node", ["raw name", "x%2fy", "x+y", "~t", "bad%zz", "%", "%4", "%C3", "%C3%28", "%ED%A0%80", "ä", "a*b"]
)
def test_a_node_that_kafka_makes_for_no_name_is_nobodys(node: str) -> None:
    assert name_of_node(node) is None


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_zookeeper_takes_for_steps_in_a_path_are_refused(name: str) -> None:
    with pytest.raises(UnwritableNameError, match="cannot store a node"):
        node_name(name)


def test_half_a_surrogate_pair_is_refused_in_words() -> None:
    with pytest.raises(UnwritableNameError, match="half a surrogate pair"):
        node_name("a\ud800")


@pytest.mark.parametrize("address", ["10.0.0.7", "::1", "fe80::1", "1", "broker-1.example.com"])
def test_addresses_are_nodes_as_they_are(address: str) -> None:
    assert address_node(address) == address
    assert address_of_node(address) == address


@pytest.mark.parametrize("address", ["", ".", "..", "a/b", "<default>", "ä", "a\nb", 'a"b', "a\\b"])
def test_what_is_no_address_has_no_node(address: str) -> None:
    with pytest.raises(UnwritableNameError):
        address_node(address)


@pytest.mark.parametrize("node", ["%3A%3A1", "fe80::1%1", "300.1.1.1.1:", "[::1"])
def test_an_address_that_brokers_cannot_resolve_is_nobodys(node: str) -> None:
    assert address_of_node(node) is None


def test_the_ten_shapes_have_ten_nodes() -> None:
    assert {
        node_path(entity)
        for entity in (
            user("a"), user(), client("a"), client(), pair("a", "a"), pair("a", DEFAULT), pair(DEFAULT, "a"),
            pair(DEFAULT, DEFAULT), ip("10.0.0.1"), ip(),
        )
    } == {
        "/config/users/a", "/config/users/<default>", "/config/clients/a", "/config/clients/<default>",
        "/config/users/a/clients/a", "/config/users/a/clients/<default>", "/config/users/<default>/clients/a",
        "/config/users/<default>/clients/<default>", "/config/ips/10.0.0.1", "/config/ips/<default>",
    }  # fmt: skip


def test_a_user_called_clients_is_no_folder() -> None:
    assert node_path(pair("clients", "clients")) == "/config/users/clients/clients/clients"
    assert parents(node_path(pair("clients", "clients"))) == ("/config/users/clients", "/config/users/clients/clients")
    assert parents(node_path(user("clients"))) == ()


def test_the_notification_names_the_path_below_config_as_a_broker_writes_it() -> None:
    assert notification(node_path(pair("a b", DEFAULT))) == b'{"version":2,"entity_path":"users/a%20b/clients/<default>"}'
