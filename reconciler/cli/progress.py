"""Progress of quick steps: nothing in the first two seconds, then one line that shows the step and the time."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self, TextIO

from reconciler.cli.output import is_quiet, text_width
from reconciler.model import escaped
from reconciler.render import Sink
from reconciler.text import duration

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
        self._speaks = not is_quiet() and self._stream.isatty()
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
