"""Where results and progress go: exactly one document on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from reconciler.cli.parser import columns
from reconciler.errors import FileAccessError, OutputError, UsageError
from reconciler.hooks import added, load
from reconciler.model import escaped
from reconciler.render import Sink
from reconciler.text import duration

if TYPE_CHECKING:
    from reconciler.model import ApplyReport, ClusterSpec, Drift, Finding
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
    rest = iter(lines.lines if isinstance(lines, View) else lines)
    with _printing_to(target):
        while part := tuple(itertools.islice(rest, _AT_ONCE)):
            write(part, target, color=wants_color(target), width=text_width(target))


def print_pieces(pieces: str | Iterable[str]) -> None:
    """Print a result, or one that is made piece by piece. Raises ``OutputError`` when stdout takes no more."""
    with _printing_to(sys.stdout):
        if isinstance(pieces, str):
            sys.stdout.write(pieces)
        else:
            sys.stdout.writelines(pieces)


def print_text(text: str, stream: TextIO) -> None:
    """Print text as it is, and flush it. Raises ``OutputError`` when stdout takes no more."""
    with _printing_to(stream):
        stream.write(text)


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


class StderrProgress:
    """Progress for a person: only when stderr is a terminal and not ``--quiet``.

    ``every_s``: in a log, as of CI, the newest step after each so many seconds.
    """

    def __init__(self, *, every_s: float = math.inf) -> None:
        self._speaks = not _Console.quiet
        # In client mode spark-submit writes both streams of its program to its standard output, where the result stands alone.
        log_every_s = math.inf if "PYSPARK_GATEWAY_PORT" in os.environ else every_s
        self._every_s = 0.0 if sys.stderr.isatty() else log_every_s
        self._last = time.monotonic()

    def step(self, message: str) -> None:
        """One line."""
        now = time.monotonic()
        if self._speaks and now - self._last >= self._every_s:
            self._last = now
            tell(message)


def read_file(path: Path) -> str:
    """Read a small text file that the user named. Raises ``FileAccessError``."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        msg = f"cannot read {path}: {reason}"
        raise FileAccessError(msg) from error


_AFTER_SECONDS: Final = 2.0
_REDRAW_SECONDS: Final = 0.5
_COLUMNS: Final = 80


class PatientProgress:
    """A ``Progress`` on stderr, if that is a terminal and not ``--quiet``.

    A terminal shows one live line, twice a second, and nothing is left of it. A terminal that cannot erase (``TERM=dumb``) gets a
    line for each step that goes on for two seconds. A thread of its own prints, so a step that hangs shows, too. Leaving the
    block ends it.
    """

    def __init__(self, *, after_seconds: float = _AFTER_SECONDS, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._speaks = not _Console.quiet and self._stream.isatty()
        self._after = after_seconds
        erases = os.environ.get("TERM") != "dumb"
        self._live = self._stream if isinstance(self._stream, Sink) and self._stream.shows_status and erases else None
        self._begun: float | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._now = self._told = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stop()

    def step(self, message: str) -> None:
        """What is being done from now on."""
        if not self._speaks:
            return
        with self._lock:
            self._now = message
            if self._timer is None:
                self._begun = time.monotonic()
                self._wait(self._after)

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Print nothing inside, where a person is asked or reads; the time starts again with the next step."""
        self._stop()
        yield
        self._stop()

    def _wait(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def _tell(self) -> None:
        with self._lock:
            if threading.current_thread() is not self._timer:
                return
            if self._live is not None and self._begun is not None:
                took = duration(time.monotonic() - self._begun)
                self._live.show_status(f"kafka-quotas: {self._now} ({took})", columns=text_width(self._stream) or _COLUMNS)
            elif self._now != self._told:
                print(f"kafka-quotas: {escaped(self._now)}", file=self._stream, flush=True)
                self._told = self._now
            self._wait(self._after if self._live is None else min(self._after, _REDRAW_SECONDS))

    def _stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if self._live is not None:
                self._live.clear_status()


def notify(spec: ClusterSpec | None, result: ApplyReport | Drift | BaseException, *, command: str) -> None:
    """Send the notifications that the Cluster manifest asks for; not of a run that was called wrongly or interrupted.

    They are sent last, and are never the reason for another exit code.
    """
    is_end = isinstance(result, BaseException) and not isinstance(result, Exception)
    if spec is None or not spec.notifications or is_end or isinstance(result, UsageError):
        return
    for place in added("NOTIFIERS"):
        for problem in load(place)(spec, result, command=command):
            tell(f"warning: {problem}")
