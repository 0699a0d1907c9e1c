"""A result that refreshes in place on a terminal, until Ctrl-C; a resize shows it anew at once."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reconciler.cli.output import text_width, wants_color
from reconciler.render import Sink

if TYPE_CHECKING:
    from reconciler.render import Block

_WITHOUT_SIZE: Final = 24


def can_refresh() -> bool:
    """Whether stdout is a terminal that can show a screen."""
    return isinstance(sys.stdout, Sink) and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def watch_screen(read: Callable[[], Callable[[], Sequence[Block]]], *, interval_s: float) -> None:
    """Show what ``read`` gives, again after each interval; it never returns, Ctrl-C ends it.

    ``read`` reads the data once, and its result draws them for any width.
    """
    sink = sys.stdout
    if not isinstance(sink, Sink):
        raise TypeError("a screen needs a terminal")
    with _resized() as wait:
        try:
            while True:
                due = time.monotonic() + interval_s
                draw = read()
                sink.show_screen(_rows(draw()))
                while (left := due - time.monotonic()) > 0:
                    if wait(left):
                        sink.show_screen(_rows(draw()))
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


@contextmanager
def _resized() -> Iterator[Callable[[float], bool]]:
    """A wait of so many seconds that a resize ends early, and then returns true."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)
    before = signal.signal(signal.SIGWINCH, lambda *_: None)
    earlier = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def wait(seconds: float) -> bool:
        ready, _, _ = select.select([reading], [], [], seconds)
        if ready:
            os.read(reading, 4096)
        return bool(ready)

    try:
        yield wait
    finally:
        signal.set_wakeup_fd(earlier)
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
