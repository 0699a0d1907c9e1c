"""A source line below a finding fits its width, prints nothing that controls a terminal, and has its caret under the column."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.model import Span
from reconciler.render.findings_text import excerpt_lines
from reconciler.render.layout import Style

LETTERS = st.one_of(
    st.characters(codec="utf-8"), st.sampled_from("ab {}:\t名前\u0301\u202e\u200d\x1b😀"), st.sampled_from("abcdefgh")
)
TEXTS = st.one_of(st.text(LETTERS, max_size=60), st.text(LETTERS, max_size=400), st.builds(lambda one: one * 20_000, LETTERS))


def columns(text: str) -> int:
    """Columns of a terminal, by Unicode's own properties: marks take none, wide characters two."""
    return sum(
        0 if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me")
        else 2 if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )  # fmt: skip


def rows(text: str, column: int, width: int | None, line: int = 7) -> tuple[str, str]:
    shown, caret = excerpt_lines(text, Span(file="a.yaml", line=line, column=column), Style.BAD, width=width)
    return shown.text, caret.text


@given(TEXTS, st.integers(1, 25_000), st.one_of(st.none(), st.integers(20, 200)), st.sampled_from([1, 99, 123_456]))
@example("x" * 20_000, 10_000, 40, 1)
@example("\u0301" * 20_000, 10_000, 40, 1)
@example("", 1, None, 1)
def test_rows_fit_and_print(text: str, column: int, width: int | None, line: int) -> None:
    shown, caret = rows(text, column, width, line)

    gutter = f"  {line} | "
    assert shown.startswith(gutter)
    assert caret.strip(" ") == "|" + " " * (len(caret.strip(" ")) - 2) + "^"
    assert caret.index("|") == gutter.index("|")
    assert (shown + caret).isprintable()
    assert len(caret) <= max(width or 100, len(gutter) + 12) + 1


@given(
    st.text(st.sampled_from("ab {}:\t名前\u0301é\u202e\x1b"), max_size=3_000),
    st.data(),
    st.one_of(st.none(), st.integers(60, 200)),
)
def test_the_caret_is_below_its_character(text: str, data: st.DataObject, width: int | None) -> None:
    at = data.draw(st.integers(0, len(text)))
    # A letter that occurs once says where it is shown.
    text = f"{text[:at]}Z{text[at:]}"
    shown, caret = rows(text, at + 1, width)

    assert shown.count("Z") == 1
    assert columns(shown[: shown.index("Z")]) == caret.index("^")
    assert columns(shown) <= (width or 100)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=90), st.integers(1, 91))
def test_a_line_that_fits_stands_as_it_is(text: str, column: int) -> None:
    shown, caret = rows(text, min(column, len(text) + 1), None)

    assert shown == f"  7 | {text}"
    assert caret == f"    | {' ' * (min(column, len(text) + 1) - 1)}^"
