"""Progress of what is usually quick: nothing at all in the first two seconds, then what is being done."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self, TextIO

from reconciler.cli.arguments import OutputArguments
from reconciler.model import escaped

_AFTER_SECONDS: Final = 2.0


class PatientProgress:
    """A ``Progress`` on stderr, if that is a terminal and not ``--quiet``; every two seconds at most one line.

    A line is printed while its step goes on, by a thread of its own: the step that hangs is the one that is told. Leaving the
    block ends it.
    """

    def __init__(self, args: OutputArguments, *, after_seconds: float = _AFTER_SECONDS, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._speaks = not args.quiet and self._stream.isatty()
        self._after = after_seconds
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
                self._wait()

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Print nothing inside, where a person is asked or reads; the time starts again with the next step."""
        self._stop()
        yield
        self._stop()

    def _wait(self) -> None:
        self._timer = threading.Timer(self._after, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def _tell(self) -> None:
        with self._lock:
            if threading.current_thread() is not self._timer:
                return
            if self._now != self._told:
                print(f"kafka-quotas: {escaped(self._now)}", file=self._stream, flush=True)
                self._told = self._now
            self._wait()

    def _stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
