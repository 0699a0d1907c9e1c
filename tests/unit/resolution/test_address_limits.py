"""Connection limits by address, asked as a backtest asks them."""

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import AddressLimits, canonical_address

KEY = "connection_creation_rate"


def limits(**values: float) -> AddressLimits:
    return AddressLimits({Entity.of({"ip": DEFAULT if name == "default" else name}): {KEY: v} for name, v in values.items()})


def test_an_address_has_its_own_limit_before_the_default() -> None:
    table = limits(**{"10.0.0.7": 5.0, "default": 50.0})
    own, other = table.resolve("10.0.0.7"), table.resolve("10.0.0.8")
    assert (own.value, [c.value for c in own.overridden]) == (5.0, [50.0])
    assert (other.value, other.source, other.overridden) == (50.0, Entity.of({"ip": DEFAULT}), ())
    assert own.bucket != other.bucket
    assert own.bucket.other == (("ip", "10.0.0.7"),)


def test_without_a_default_an_address_is_unlimited_and_has_a_bucket_all_the_same() -> None:
    found = limits(**{"10.0.0.7": 5.0}).resolve("10.0.0.8")
    assert (found.value, found.source, found.bucket.other) == (None, None, (("ip", "10.0.0.8"),))


@pytest.mark.parametrize(
    ("written", "recorded"),
    [("::1", "0:0:0:0:0:0:0:1"), ("10.0.0.7", "::ffff:10.0.0.7"), ("2001:DB8::A", "2001:db8:0:0:0:0:0:a")],
)
def test_spellings_of_one_address_share_limit_and_bucket(written: str, recorded: str) -> None:
    table = limits(**{written: 5.0})
    assert table.resolve(recorded).value == 5.0
    assert table.resolve(recorded).bucket == table.resolve(written).bucket


def test_of_spellings_that_disagree_the_lower_limit_is_taken() -> None:
    found = limits(**{"::1": 9.0, "0:0:0:0:0:0:0:1": 4.0}).resolve("::1")
    assert found.value == 4.0
    assert {c.value for c in found.overridden} == {9.0}


def test_a_host_name_limits_no_recorded_address() -> None:
    table = limits(**{"gateway.example": 5.0})
    assert table.resolve("10.0.0.7").value is None
    assert canonical_address("gateway.example") == "gateway.example"


def test_quotas_of_users_do_not_matter() -> None:
    table = AddressLimits({Entity.of({"user": "10.0.0.7"}): {"producer_byte_rate": 1.0}})
    assert table.resolve("10.0.0.7").value is None
