"""The time that one run may take: writing and verifying, not the waits that were asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from reconciler.ports import Clock

DEADLINE: Final = "deadline"
"""The ``failure_reason`` of a run that ran out of time."""


class Budget:
    """Seconds that pass from its making on, but for those spent inside ``paused``."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds; never below zero."""
        return max(0.0, self._end - self._clock.monotonic())

    @property
    def spent(self) -> bool:
        """True from the deadline on: nothing new is begun any more."""
        return self.left <= 0

    def sleep(self, seconds: float) -> None:
        """Wait, but not past the deadline."""
        self._clock.sleep(min(seconds, self.left))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What is inside does not count."""
        start = self._clock.monotonic()
        try:
            yield
        finally:
            self._end += self._clock.monotonic() - start

    def __str__(self) -> str:
        return f"the deadline of {self._seconds:g} s for the whole run (--deadline) has passed"
