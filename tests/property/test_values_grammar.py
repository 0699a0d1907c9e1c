"""Laws of the value grammar: what is written is what the broker holds, and every value finds its way back."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.formats.units import ValueRefusedError, declarable, parse_value, value_text
from reconciler.model.quota import QuotaKey

# Of the standards (SI, IEC 80000-13), not of the code.
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
INTEGERS = st.integers(min_value=1, max_value=2**53)


def parsed(key: QuotaKey, text: str) -> float | None:
    try:
        return parse_value(key, text).number
    except ValueRefusedError:
        return None


@given(key=st.sampled_from(QuotaKey), value=st.floats() | INTEGERS.map(float))
def test_what_can_be_declared_has_a_text_and_nothing_else_has_one(key, value):
    if declarable(key, value):
        assert parse_value(key, value_text(key, value)).number == value
    else:
        with pytest.raises(ValueError, match="cannot be declared"):
            value_text(key, value)


@given(count=st.integers(min_value=1, max_value=10**9), unit=st.sampled_from(sorted(UNITS)), per_second=st.booleans())
def test_a_unit_multiplies_exactly(count, unit, per_second):
    number = parsed(QuotaKey.CONSUMER_BYTE_RATE, f"{count}{unit}{'/s' if per_second else ''}")

    exact = count * UNITS[unit]
    assert number == (exact if exact <= 2**63 and int(float(exact)) == exact else None)


@given(whole=st.integers(min_value=0, max_value=10**6), digits=st.text("0123456789", min_size=1, max_size=6))
def test_a_fraction_of_a_unit_is_taken_exactly_or_refused(whole, digits):
    number = parsed(QuotaKey.PRODUCER_BYTE_RATE, f"{whole}.{digits}MiB")

    exact = Fraction(f"{whole}.{digits}") * 1024**2
    assert number == (exact if exact.denominator == 1 and exact > 0 else None)


@given(
    sign=st.sampled_from(["", "+", "-"]),
    body=st.text("0123456789.eE_xX:, ", max_size=12),
    unit=st.sampled_from(["", *UNITS, "kb", "Mb", "%", "/s"]),
)
def test_any_text_is_refused_or_is_a_value_that_can_be_declared(sign, body, unit):
    for key in QuotaKey:
        number = parsed(key, sign + body + unit)
        assert number is None or (declarable(key, number) and not sign)


@given(text=st.text(max_size=30))
def test_no_text_breaks_the_grammar(text):
    for key in QuotaKey:
        number = parsed(key, text)
        assert number is None or math.isfinite(number)


@given(value=st.integers(min_value=2**53 + 1, max_value=2**63))
def test_an_integer_that_a_double_cannot_hold_is_refused_and_never_rounded(value):
    number = parsed(QuotaKey.PRODUCER_BYTE_RATE, str(value))

    assert number is None if int(float(value)) != value else number == value
