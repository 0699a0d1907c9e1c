"""The selectors' regular expressions against Python's own engine, and against expressions that would hang it."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.entity import Entity
from reconciler.model.linear_regex import LinearPattern
from reconciler.model.regex_syntax import LONGEST, PatternError
from reconciler.model.selector import MatchKind, Selector, TypeMatch

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "-",
        r"\.",
        ".",
        r"\d",
        r"\W",
        "[ab]",
        "[^a-c]",
        r"[\d_]",
        "[]a]",
        "[a-]",
        r"[^\s]",
        "é",
        r"\x61",
        "^",
        "$",
        "{",
        "]",
    ]
)
COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?", "+?", "??", "{1,3}?"])


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, COUNTS).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.tuples(inner, inner).map("|".join),
    )


EXPRESSIONS = st.recursive(ATOMS, grown, max_leaves=6)
NAMES = st.text("abc-.19_é {]", max_size=6)


@given(EXPRESSIONS, st.lists(NAMES, min_size=1, max_size=8))
def test_what_matches_is_what_pythons_engine_matches(expression: str, names: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(expression)
    pattern = LinearPattern(expression)
    for name in names:
        assert pattern.matches(name) == (expected.fullmatch(name) is not None), (expression, name)


@given(st.text("ab(|)[]^-*+?{1,}\\d.$P<>:=!", max_size=12))
def test_what_is_no_expression_for_python_is_none_here(text: str) -> None:
    try:
        LinearPattern(text)
    except PatternError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        re.compile(text)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (r"(a+)+b", "a" * 30_000),
        (r"(a|aa)*b", "a" * 30_000),
        (r".*.*.*.*.*x", "a" * 30_000),
        (r"(.*)*(.*)*c", "ab" * 15_000),
        (r"(a?){100}a{100}", "a" * 99),
        (r"([a-z]+)*[0-9]", "a" * 30_000),
        (r"(x+x+)+y", "x" * 30_000),
    ],
)
def test_expressions_that_hang_other_engines_answer(expression: str, name: str) -> None:
    assert not LinearPattern(expression).matches(name)
    assert (
        Selector(types=(("user", TypeMatch(kind=MatchKind.REGEX, text=expression)),)).matches(Entity.of({"user": name})) is False
    )


@given(st.text("ab", min_size=1, max_size=300))
def test_what_is_remembered_is_bounded_by_what_is_looked_at(name: str) -> None:
    pattern = LinearPattern("(a|b)*a(a|b){12}")
    pattern.matches(name)
    assert len(pattern._known) <= len(name) + 1


@given(st.lists(st.text("ab", max_size=8), max_size=20))
def test_what_was_forgotten_is_found_again(names: list[str]) -> None:
    forgetful, steady = (LinearPattern("(a|b)*a(a|b){3}", remember=count) for count in (3, 50_000))
    assert [forgetful.matches(name) for name in names] == [steady.matches(name) for name in names]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (r"(a)\1", r"\1"),
        (r"(?=a)a", "look-around"),
        (r"(?i)a", "flags"),
        (r"a\b", r"\b"),
        (r"a*+", "possessive"),
        (r"a**", "two quantifiers"),
        (r"*a", "nothing to repeat"),
        (r"^*", "nothing to repeat"),
        (r"(a", "( without its )"),
        (r"a)", ") without its ("),
        (r"[a", "[ without its ]"),
        (r"[b-a]", "range"),
        (r"a{3,2}", "smallest"),
        (r"a\q", r"\q"),
        ("a\\", "backslash at the end"),
        (r"((a{100}){100}){100}", "states"),
        (r"a{1000000000}", "too large"),
        (r"(" * 60 + ")" * 60, "deep"),
        ("a" * (LONGEST + 1), "characters"),
        (r"\xZZ", "hexadecimal"),
    ],
)
def test_what_is_not_supported_says_so(expression: str, why: str) -> None:
    with pytest.raises(PatternError, match=re.escape(why)):
        LinearPattern(expression)
