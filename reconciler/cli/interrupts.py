"""SIGINT, SIGTERM and SIGHUP during a command that writes to a cluster.

A command that may have written owes a report. So signals are noted from the approval of a write to the command's last trace
(audit line, report, summary), and raise ``KeyboardInterrupt`` in one place alone: the executor, which reports what it has done.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

_NUMBERS: Final = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None  # not on Windows
)


class Interrupts:
    """The signals to this process. Handlers are set in the main thread only; a signal that is ignored stays ignored."""

    def __init__(self) -> None:
        self._holds = 0
        self._noted = False
        self._breaks = False
        self._before: dict[signal.Signals, Any] = {}

    def hold(self) -> None:
        """Note signals from now on, until the process ends."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._holds += 1
        if self._holds > 1:
            return
        for number in _NUMBERS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Note signals inside."""
        self.hold()
        try:
            yield
        finally:
            self._release()

    def stop_wanted(self) -> bool:
        """True once a signal was noted."""
        return self._noted

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """Let the first signal, and one that was noted before, raise ``KeyboardInterrupt`` inside. For the main thread."""
        self._breaks = True
        try:
            if self._noted:
                raise KeyboardInterrupt
            yield
        finally:
            self._breaks = False

    def _release(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._holds -= 1
        if self._holds == 0:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._noted = True
        if self._breaks:
            self._breaks = False
            raise KeyboardInterrupt


INTERRUPTS: Final = Interrupts()
"""Those of this process, which has one handler for each signal."""
