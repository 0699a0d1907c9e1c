"""The signals that ask something of a service: SIGTERM and SIGINT to end, SIGHUP to read everything again at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

_REREAD: Final = getattr(signal, "SIGHUP", None)
"""Windows has no such signal."""
_HANDLED: Final = (signal.SIGTERM, signal.SIGINT, *(() if _REREAD is None else (_REREAD,)))


class SignalRequests:
    """The requests that come as signals while the block lasts; only in the main thread. ``stopped_by``: the first to end it.

    A second signal to end raises ``KeyboardInterrupt``, until ``hold`` is called.
    """

    def __init__(self) -> None:
        self.stopped_by: int | None = None
        self._reread = False
        self._held = False
        self._before: dict[int, Any] = {}
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _HANDLED}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read_end)
        # The other end stays open as long as this object: a thread that is left behind may still call ``wake``.

    def __del__(self) -> None:
        os.close(self._write_end)

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
        select.select([self._read_end], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._read_end, 4096)

    def wake(self) -> None:
        """End a ``wait``. Called by any thread."""
        # A full pipe wakes the loop, too. A pipe without a reader belongs to a loop that has ended.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._write_end, b"\0")

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == _REREAD:
            self._reread = True
        elif self.stopped_by is None:
            self.stopped_by = number
        elif not self._held:
            raise KeyboardInterrupt
        self.wake()
