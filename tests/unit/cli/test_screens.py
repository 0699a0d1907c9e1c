"""A result on a screen: what fits it is not repeated."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from typing import TextIO, cast

import pytest

from reconciler.cli.output import print_lines
from reconciler.render import View, line
from reconciler.render.sink import Sink


def printed(view: View, rows: int) -> str:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    with open(slave, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
        print_lines(view, cast("TextIO", Sink(stream, breaks=False)))
        seen = os.read(master, 65536).decode()
    os.close(master)
    return seen


@pytest.mark.parametrize(("rows", "times"), [(24, 1), (8, 2)])
def test_the_answer_stands_once_on_a_screen_that_has_room(rows: int, times: int) -> None:
    blocks = tuple(line(f"row {number}") for number in range(10))
    view = View(kind="backtest", cluster=None, title=line("All clear."), answer=line("All clear."), blocks=blocks)
    text = printed(view, rows)
    assert (text.count("All clear."), text.count("row ")) == (times, 10)


def test_an_answer_that_the_title_does_not_have_stays() -> None:
    view = View(kind="plan", cluster=None, title=line("Plan for prod"), answer=line("No changes."), blocks=())
    assert printed(view, 24).splitlines() == ["Plan for prod", "No changes."]
