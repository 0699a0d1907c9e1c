"""Regular expressions of selectors: whole names, RE2's syntax, bounded size; and expressions that hang other engines."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.entity import MAX_REGEX_LENGTH, Entity, MatchKind, PatternError, Selector, TypeMatch, compile_regex

ATOMS = st.sampled_from(
    ["a", "b", "-", r"\.", ".", "[ab]", "[^a-c]", r"[\d_]", "[]a]", "[a-]", r"[^\s]", "é", r"\x61", "^", "$", "(?:b)"]
)
COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "*?", "+?", "??", "{1,3}?"])


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, COUNTS).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.tuples(inner, inner).map("|".join),
    )


EXPRESSIONS = st.recursive(ATOMS, grown, max_leaves=6)
NAMES = st.text("abc-.19_é ]", max_size=6)


def selects(expression: str, name: str) -> bool:
    return Selector(types=(("user", TypeMatch(kind=MatchKind.REGEX, text=expression)),)).matches(Entity.of({"user": name}))


@given(EXPRESSIONS, st.lists(NAMES.filter(bool), min_size=1, max_size=8))
def test_the_common_syntax_selects_what_pythons_engine_matches(expression: str, names: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(expression)
    for name in names:
        assert selects(expression, name) == (expected.fullmatch(name) is not None), (expression, name)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (r"(a+)+b", "a" * 30_000),
        (r"(a|aa)*b", "a" * 30_000),
        (r".*.*.*.*.*x", "a" * 30_000),
        (r"(.*)*(.*)*c", "ab" * 15_000),
        (r"(a?){100}a{100}", "a" * 99),
        (r"([a-z]+)*[0-9]", "a" * 30_000),
        (r"(a|b)*a(a|b){150}c", "abbabaab" * 4_000),
    ],
)
def test_expressions_that_hang_other_engines_answer(expression: str, name: str) -> None:
    assert selects(expression, name) is False


def test_digits_and_word_characters_are_ascii() -> None:
    assert [selects(r"\d", "7"), selects(r"\d", "\u0667"), selects(r"\w", "é"), selects(r"\pL", "é")] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (r"(a)\1", r"\1"),
        (r"(?=a)a", "(?="),
        (r"a**", "**"),
        (r"*a", "*"),
        (r"(a", "missing )"),
        (r"[a", "missing ]"),
        (r"[b-a]", "b-a"),
        (r"a{,3}", "{0,3}"),
        ("a\\", "trailing \\"),
        (r"((a{100}){100}){100}", "repetition"),
        (r"(\pL{30}){30}", "too large"),
        ("a" * (MAX_REGEX_LENGTH + 1), "1001 characters"),
        ("\ud800", "not Unicode"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_with_the_reason(expression: str, why: str) -> None:
    with pytest.raises(PatternError, match=re.escape(why)):
        compile_regex(expression)
