"""Lines and tables on terminals of some width: nothing is lost, nothing is too wide, columns begin below each other."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.render.layout import Column, Style, labelled, line, table
from reconciler.render.terminal import cells, plain

SENTENCE = "Cuts producer_byte_rate for user=orders-service from 8 MiB/s to 2 MiB/s, which is 25 % of its current value."
COLUMNS = (Column(title="verdict"), Column(title="group", least=8), Column(title="over", to_the_right=True))
ROWS = ((("throttled", Style.BAD), "user orders-service with a long name", "57 %"), ("clear", "user bob", "0 %"))


def test_wrapped_rows_hang_below_the_text_and_break_between_words() -> None:
    rows = plain([labelled("Note: ", Style.FAINT, SENTENCE)], width=40).splitlines()
    assert rows[0].startswith("Note: Cuts")
    assert all(row.startswith("      ") and row[6] != " " for row in rows[1:])
    assert " ".join(row.strip() for row in rows) == f"Note: {SENTENCE}"


@pytest.mark.parametrize("width", range(24, 110, 5))
def test_a_number_stays_with_its_unit(width: int) -> None:
    rows = plain([line(SENTENCE)], width=width).splitlines()
    assert all(any(amount in row for row in rows) for amount in ("8 MiB/s", "2 MiB/s", "25 %"))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.integers(20, 60))
def test_no_row_is_wider_than_the_terminal_and_no_character_but_blanks_is_lost(text: str, width: int) -> None:
    one = line(text)
    rows = plain([one], width=width).removesuffix("\n").split("\n")
    assert all(cells(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(one.text.split())


def test_wide_characters_take_two_columns_and_combining_marks_none() -> None:
    assert [cells(text) for text in ("abc", "漢字", "🙂", "e\u0301", "")] == [3, 4, 2, 1, 0]
    assert all(cells(char) == 2 for char in "漢字かな" if unicodedata.east_asian_width(char) == "W")


def test_a_table_wraps_the_column_that_may_shrink() -> None:
    assert plain([table(COLUMNS, ROWS)], width=40) == (
        "  verdict    group                  over\n"
        "  throttled  user orders-service    57 %\n"
        "             with a long name\n"
        "  clear      user bob                0 %\n"
    )


def test_rows_of_a_table_too_wide_for_the_terminal_are_lines_that_wrap() -> None:
    assert plain([table(COLUMNS, ROWS)], width=24) == (
        "  throttled  user\n    orders-service with\n    a long name  57 %\n  clear  user bob  0 %\n"
    )


@given(
    st.lists(st.tuples(st.text(max_size=30), st.text(max_size=60), st.text(max_size=9)), min_size=1, max_size=5),
    st.integers(20, 90),
)
def test_a_table_is_never_wider_than_the_terminal_and_loses_nothing(rows: list[tuple[str, str, str]], width: int) -> None:
    made = table((Column(title="a"), Column(title="b", least=4), Column(title="c", to_the_right=True)), rows)
    text = plain([made], width=width)
    assert all(cells(row) <= width for row in text.split("\n"))
    printed = sorted("".join(text.split()))
    wanted = sorted("".join("".join("".join(cell.text.split()) for cell in row) for row in made.rows if isinstance(row, tuple)))
    for char in set(wanted):
        assert printed.count(char) >= wanted.count(char)
