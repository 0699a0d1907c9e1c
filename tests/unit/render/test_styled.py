"""Coloured lines: the text is that of plain ones, between ANSI sequences that end where the piece ends."""

from __future__ import annotations

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from reconciler.render.layout import Line, Style, line
from reconciler.render.terminal import plain, write

SEQUENCE = re.compile(r"\x1b\[([0-9;]+)m")


def coloured(lines: list[Line]) -> str:
    stream = io.StringIO()
    write(lines, stream, color=True)
    return stream.getvalue()


def test_each_style_has_its_ansi_codes() -> None:
    assert (
        coloured([line("a ", ("b", Style.BAD), (" c", Style.FAINT), ("", Style.GOOD))])
        == "a \x1b[1;31mb\x1b[0m\x1b[2m c\x1b[0m\n"
    )
    assert [coloured([line(("x", style))]) for style in (Style.CREATE, Style.UPDATE, Style.DELETE)] == [
        f"\x1b[{code}mx\x1b[0m\n" for code in (32, 33, 31)
    ]


@given(st.lists(st.lists(st.tuples(st.text(max_size=5), st.sampled_from(Style)), max_size=4), max_size=3))
def test_without_its_colours_a_text_is_the_plain_one(parts: list[list[tuple[str, Style]]]) -> None:
    lines = [line(*one) for one in parts]
    painted = coloured(lines)
    assert SEQUENCE.sub("", painted) == plain(lines)
    codes = SEQUENCE.findall(painted)
    assert set(codes[1::2]) <= {"0"}
    assert "0" not in codes[::2]
