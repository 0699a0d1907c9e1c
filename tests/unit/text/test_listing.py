"""Counts and long lists in sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.text import count_of, list_some


@pytest.mark.parametrize(("number", "text"), [(0, "0 entities"), (1, "1 entity"), (2, "2 entities"), (24445, "24,445 entities")])
def test_singular_and_plural_agree(number: int, text: str) -> None:
    assert count_of(number, "entity", "entities") == text


@given(st.lists(st.sampled_from("abc"), max_size=9), st.integers(1, 5), st.sampled_from([", ", "; "]))
def test_what_is_shown_and_what_is_counted_are_all(texts: list[str], most: int, between: str) -> None:
    head, _, tail = list_some(texts, most, between=between).partition("and ")
    shown = [text for text in head.replace(";", ",").replace(" ", "").split(",") if text]
    assert shown == texts[:most]
    assert len(shown) + (int(tail.removesuffix(" more")) if tail else 0) == len(texts)


def test_a_long_list_ends_in_a_number() -> None:
    assert list_some(["a", "b", "c"], 2) == "a, b and 1 more"
    assert list_some(["a", "b", "c"], 1, between="; ") == "a; and 2 more"
