"""Durations for people."""

from __future__ import annotations

import pytest

from reconciler.text import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.42, "0.4 s"), (8.04, "8 s"), (119, "119 s"), (120, "2 min"), (2_820, "47 min"), (7_200, "2 h"),
        (24_445, "6.8 h"), (100_000, "28 h"), (259_200, "3.0 days"),
    ],
)  # fmt: skip
def test_a_duration_has_one_unit_and_two_digits_or_three(seconds: float, text: str) -> None:
    assert duration(seconds) == text
