"""Connection limits by address, asked as a backtest asks them."""

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import AddressLimits

KEY = "connection_creation_rate"


def limits(**values: float) -> AddressLimits:
    return AddressLimits({Entity.of({"ip": DEFAULT if name == "default" else name}): {KEY: v} for name, v in values.items()})


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
