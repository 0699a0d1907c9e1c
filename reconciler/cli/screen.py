"""A result that refreshes in place on a terminal, until Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.cli.output import text_width, wants_color
from reconciler.render import Sink

if TYPE_CHECKING:
    from reconciler.render import Block

_WITHOUT_SIZE: Final = 24


def can_refresh() -> bool:
    """Whether stdout is a terminal that can show a screen."""
    return isinstance(sys.stdout, Sink) and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def watch_screen(read: Callable[[], Sequence[Block]], *, interval_s: float) -> None:
    """Show what ``read`` gives, again after each interval; it never returns, Ctrl-C ends it."""
    sink = sys.stdout
    if not isinstance(sink, Sink):
        raise TypeError("a screen needs a terminal")
    try:
        while True:
            due = time.monotonic() + interval_s
            sink.show_screen(_rows(read()))
            time.sleep(max(0.0, due - time.monotonic()))
    finally:
        sink.leave_screen()


def _rows(blocks: Sequence[Block]) -> list[str]:
    import io

    from reconciler.render import write

    made = io.StringIO()
    write(blocks, made, color=wants_color(sys.stdout), width=text_width(sys.stdout))
    return made.getvalue().splitlines()[: _height()]


def _height() -> int:
    try:
        return max(2, os.get_terminal_size(sys.stdout.fileno()).lines or _WITHOUT_SIZE)
    except (OSError, ValueError):
        return _WITHOUT_SIZE
