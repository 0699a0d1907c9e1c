"""Durations and amounts for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.text import amount, bound_text, duration, length_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.42, "0.4 s"), (8.04, "8 s"), (119, "119 s"), (120, "2 min"), (2_820, "47 min"), (7_200, "2 h"),
        (24_445, "6.8 h"), (100_000, "28 h"), (259_200, "3.0 days"),
    ],
)  # fmt: skip
def test_a_duration_has_one_unit_and_two_digits_or_three(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.4 s"), (1, "1 s"), (86_398, "23 h 59 min 58 s"), (86_400, "24 h"), (28_800, "8 h"), (1_800, "30 min"),
        (3_601.9, "1 h 1 s"), (172_799.999, "47 h 59 min 59 s"), (2 / 86_400 * 86_400, "2 s"), (604_740, "6 days 23 h 59 min"),
    ],
)  # fmt: skip
def test_a_length_is_never_rounded_up(seconds: float, text: str) -> None:
    assert length_text(seconds) == text


@given(st.integers(1, 10**8))
def test_a_length_reads_back_to_the_second_or_from_two_days_on_to_the_minute(seconds: int) -> None:
    size = {"days": 86_400, "h": 3_600, "min": 60, "s": 1}
    words = length_text(seconds).split()
    back = sum(int(count) * size[unit] for count, unit in zip(words[::2], words[1::2], strict=True))
    assert back == (seconds if seconds < 172_800 else seconds - seconds % 60)


@given(st.floats(min_value=1e-3, max_value=1e15), st.booleans())
def test_a_bound_in_three_digits_is_still_a_bound(value: float, up: bool) -> None:
    number, unit = bound_text("producer_byte_rate", value, up=up).split(" ")
    shown = float(number) * {"B/s": 1, "KiB/s": 1024, "MiB/s": 1024**2, "GiB/s": 1024**3, "TiB/s": 1024**4}[unit]
    assert shown >= value * (1 - 1e-9) if up else shown <= value * (1 + 1e-9)
    assert abs(shown / value - 1) <= 0.011


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("producer_byte_rate", 20971520.0, "20 MiB/s"),
        ("producer_byte_rate", 512.0, "512 B/s"),
        ("producer_byte_rate", None, "not set"),
        ("producer_byte_rate", float("inf"), "Infinity B/s"),
        ("request_percentage", 12.5, "12.5 %"),
        ("controller_mutation_rate", 0.1, "0.1 partitions/s"),
        ("connection_creation_rate", 5.0, "5 connections/s"),
        ("key_of_the_future", 7.0, "7"),
    ],
)
def test_amounts_carry_their_unit(key: str, value: float | None, text: str) -> None:
    assert amount(key, value) == text
