"""Signals as requests to a service.

A handler only notes what was asked and wakes the loop through a pipe: nothing is torn out of a write. A second SIGTERM or SIGINT
means not to wait any longer; that one interrupts. From the first write on, it interrupts the executor alone, which reports what
it has done.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Final, Self

_REREAD: Final = getattr(signal, "SIGHUP", None)
"""Windows has no such signal."""
_HANDLED: Final = (signal.SIGTERM, signal.SIGINT, *(() if _REREAD is None else (_REREAD,)))


class SignalRequests:
    """The requests that come as signals while the block lasts; only in the main thread. ``stopped_by``: the first to end it."""

    def __init__(self) -> None:
        self.stopped_by: int | None = None
        self._reread = False
        self._impatient = False
        self._held = False
        self._breaks = False
        self._before: dict[int, Any] = {}
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _HANDLED}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read_end)
        os.close(self._write_end)

    def stop_wanted(self) -> bool:
        """True after a first SIGTERM or SIGINT."""
        return self.stopped_by is not None

    def hold(self) -> None:
        """Raise nothing from now on, but where it is ``breakable``."""
        self._held = True

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """Let a second signal, and one that came before, raise ``KeyboardInterrupt`` inside. For the main thread."""
        self._breaks = True
        try:
            if self._impatient:
                raise KeyboardInterrupt
            yield
        finally:
            self._breaks = False

    def take_reread(self) -> bool:
        """True once after SIGHUP; several at once count as one."""
        taken, self._reread = self._reread, False
        return taken

    def wait(self, seconds: float) -> None:
        """Wait up to this many seconds, or until a signal comes."""
        select.select([self._read_end], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._read_end, 4096)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == _REREAD:
            self._reread = True
        elif self.stopped_by is not None:
            self._impatient = True
            if self._breaks or not self._held:
                self._breaks = False
                raise KeyboardInterrupt
        else:
            self.stopped_by = number
        # A full pipe wakes the loop just as well.
        with contextlib.suppress(BlockingIOError):
            os.write(self._write_end, b"\0")
