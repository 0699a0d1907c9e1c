"""Which address a literal is to a broker."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.resolution.kafka_names import literal_address


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::1", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::", "::"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:FFFF:7f00:1", "127.0.0.1"),
        ("64:ff9b::10.0.0.7", "64:ff9b::a00:7"),
        ("2001:DB8::", "2001:db8::"),
    ],
)
def test_a_literal_is_the_address_that_java_reads(name: str, address: str) -> None:
    assert literal_address(name) == ipaddress.ip_address(address)


@pytest.mark.parametrize("name", ["", "localhost", "10.0.0.256", "fe80::1%3", "0x7f.1", "10.0.0.7 ", "10.7", "[::1]"])
def test_what_is_no_literal_has_no_address(name: str) -> None:
    assert literal_address(name) is None


@given(st.ip_addresses())
def test_every_spelling_of_python_is_its_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    mapped = getattr(address, "ipv4_mapped", None)
    assert literal_address(str(address)) == literal_address(address.exploded) == (mapped or address)
