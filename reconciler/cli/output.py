"""Where results and progress go: exactly one document on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from reconciler.cli.parser import columns
from reconciler.errors import FileAccessError, OutputError
from reconciler.model import escaped
from reconciler.render import Sink

if TYPE_CHECKING:
    from reconciler.model import Finding
    from reconciler.render import Block, View


class _Console:
    """How this process prints. No context variable: clusters are written, and their reports printed, by threads."""

    color = "auto"
    quiet = False
    log_format = "text"


@contextlib.contextmanager
def console(*, color: str, quiet: bool, log_format: str = "text") -> Iterator[None]:
    """Print with ``--color``, ``--quiet`` and ``--log-format`` inside."""
    before = _Console.color, _Console.quiet, _Console.log_format
    _Console.color, _Console.quiet, _Console.log_format = color, quiet, log_format
    try:
        yield
    finally:
        _Console.color, _Console.quiet, _Console.log_format = before


def is_quiet() -> bool:
    """Whether the user wants no progress and no notes."""
    return _Console.quiet


def log_format() -> str:
    """``text`` or ``json``: what a service writes its log as."""
    return _Console.log_format


def wants_color(stream: TextIO) -> bool:
    """``--color`` wins; then NO_COLOR, then FORCE_COLOR, then whether the stream is a terminal that is not dumb."""
    if _Console.color != "auto":
        return _Console.color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


_WIDEST: Final = 120
"""Longer rows of words are hard to read."""


def text_width(stream: TextIO) -> int | None:
    """The columns that text may take: ``COLUMNS`` where it is set, else those of the terminal, 120 at most.

    ``None`` for a pipe or a file: text is not wrapped there, so that ``grep`` finds a whole sentence on one line.
    """
    width = columns(stream)
    return None if width is None else min(width, _WIDEST)


_AT_ONCE: Final = 10_000
"""Blocks that are written together."""


def print_lines(lines: View | Iterable[Block], stream: TextIO | None = None) -> None:
    """Print text to a stream (stdout by default) and flush it. Raises ``OutputError`` when stdout takes no more."""
    from reconciler.render import View, write

    target = stream or sys.stdout
    width = text_width(target)
    rest = iter(lines.lines if isinstance(lines, View) else lines)
    with _printing_to(target):
        while part := tuple(itertools.islice(rest, _AT_ONCE)):
            write(part, target, color=wants_color(target), width=width)


def print_pieces(pieces: str | Iterable[str]) -> None:
    """Print a result, or one that is made piece by piece. Raises ``OutputError`` when stdout takes no more."""
    with _printing_to(sys.stdout):
        if isinstance(pieces, str):
            sys.stdout.write(pieces)
        else:
            sys.stdout.writelines(pieces)


@contextlib.contextmanager
def _printing_to(stream: TextIO) -> Iterator[None]:
    """Flush at the end. Raises ``OutputError`` when stdout takes no more."""
    try:
        yield
        stream.flush()
    except OSError as error:
        if stream is not sys.stdout:
            raise
        msg = f"cannot print the result: {error.strerror}"
        raise OutputError(msg) from error


def tell(message: str) -> None:
    """Print one line for the user on stderr. A stderr that takes nothing must not change the exit code."""
    with contextlib.suppress(OSError):
        print(f"kafka-quotas: {escaped(message)}", file=sys.stderr, flush=True)


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings on stderr, beside a result."""
    from reconciler.render import findings_lines

    print_lines(findings_lines(findings), sys.stderr)


def read_file(path: Path) -> str:
    """Read a small text file that the user named. Raises ``FileAccessError``."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        msg = f"cannot read {path}: {reason}"
        raise FileAccessError(msg) from error


_AFTER_S: Final = 2.0
_REDRAW_S: Final = 0.5
_LOG_LINE_S: Final = 10.0
_COLUMNS: Final = 80


class LiveProgress:
    """The ``Progress`` of all commands, on stderr. Nothing with ``--quiet``.

    A terminal shows one live line after two seconds, twice a second, and nothing is left of it. A log, as of CI, or a terminal
    that cannot erase (``TERM=dumb``) gets a line each ten seconds. A thread of its own prints, so a step that hangs shows, too.
    Leaving the block ends it, and an interrupt that leaves it gets a note on the step that it ended.
    """

    def __init__(self, *, after_s: float = _AFTER_S, every_s: float = _LOG_LINE_S, stream: TextIO | None = None) -> None:
        """``after_s``: when a terminal shows the line first. ``every_s``: between two lines of a log."""
        self._stream = stream or sys.stderr
        # In client mode spark-submit writes both streams of its program to its standard output, where the result stands alone.
        self._speaks = not _Console.quiet and "PYSPARK_GATEWAY_PORT" not in os.environ
        self._live: Sink | None = None
        if isinstance(self._stream, Sink) and self._stream.isatty():
            self._live = None if os.environ.get("TERM") == "dumb" else self._stream
        self._first_s, self._every_s = (every_s, every_s) if self._live is None else (after_s, min(after_s, _REDRAW_S))
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._now, self._begun = "", 0.0
        self._first: tuple[float, float] | None = None
        self._count: tuple[float, float | None, str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stop()
        if isinstance(error, KeyboardInterrupt) and self._now:
            error.add_note(f"interrupted while {self._now}")

    def step(self, message: str) -> None:
        """Begin a step, or go on with the same one, as ``Progress.step``."""
        if message == self._now and self._timer is not None:
            return
        if not message:
            self._stop()
        with self._lock:
            self._now, self._begun, self._first, self._count = message, time.monotonic(), None, None
            if message and self._timer is None and self._speaks:
                self._timer = threading.Timer(self._first_s, self._show)
                self._timer.daemon = True
                self._timer.start()

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        """Note how much is done, as ``Progress.count``. Less than before begins again, as in a second pass over the same rows."""
        if self._first is None or self._count is None or done < self._count[0]:
            self._first = done, time.monotonic()
        self._count = done, total, unit

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Print nothing inside, where a person is asked or reads; the time starts again with the next step."""
        self._stop()
        yield
        self._stop()

    def _show(self) -> None:
        from reconciler.render import progress_text

        with self._lock:
            if threading.current_thread() is not self._timer:
                return
            now = time.monotonic()
            first, begun = self._first or (0.0, now)
            per_s = 0.0 if self._count is None else (self._count[0] - first) / max(now - begun, 1e-9)
            text = progress_text(self._now, self._count, per_s=per_s, seconds=now - self._begun)
            if self._live is not None:
                self._live.show_status(text, columns=text_width(self._stream) or _COLUMNS)
            else:
                print(f"kafka-quotas: {escaped(text)}", file=self._stream, flush=True)
            self._timer = threading.Timer(self._every_s, self._show)
            self._timer.daemon = True
            self._timer.start()

    def _stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if self._live is not None:
                self._live.clear_status()
