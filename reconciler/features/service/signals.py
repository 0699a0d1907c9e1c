"""The signals that ask something of a service: SIGTERM and SIGINT to end, SIGHUP to read everything again at once."""

from __future__ import annotations

import contextlib
import queue
import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

_REREAD: Final = getattr(signal, "SIGHUP", None)  # not on Windows
_HANDLED: Final = (signal.SIGTERM, signal.SIGINT, *((_REREAD,) if _REREAD is not None else ()))


class SignalRequests:
    """The requests that come as signals while the block lasts; only in the main thread. ``stopped_by``: the first to end it.

    A second signal to end raises ``KeyboardInterrupt``, until ``hold`` is called.
    """

    def __init__(self) -> None:
        self.stopped_by: int | None = None
        self._reread = False
        self._held = False
        self._before: dict[int, Any] = {}
        # Unlike an event or a condition, this queue may be used by a handler of signals in the middle of a wait.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _HANDLED}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop_wanted(self) -> bool:
        """Whether a first SIGTERM or SIGINT came."""
        return self.stopped_by is not None

    def hold(self) -> None:
        """Raise nothing from now on: a write that begins is waited for, and recorded. Called by any thread."""
        self._held = True

    def take_reread(self) -> bool:
        """Whether SIGHUP came since the last call; several at once count as one."""
        taken, self._reread = self._reread, False
        return taken

    def wait(self, seconds: float) -> None:
        """Wait up to this many seconds, or until a signal or ``wake`` comes."""
        with contextlib.suppress(queue.Empty):
            self._wakes.get(timeout=seconds)
            while True:
                self._wakes.get_nowait()

    def wake(self) -> None:
        """End a ``wait``. Called by any thread."""
        self._wakes.put(None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == _REREAD:
            self._reread = True
        elif self.stopped_by is None:
            self.stopped_by = number
        elif not self._held:
            raise KeyboardInterrupt
        self.wake()
