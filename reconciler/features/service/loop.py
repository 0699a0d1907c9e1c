"""The loop: looks at the files every few seconds, runs a pass when they changed or it is time, until it is stopped.

The next pass begins after the interval with jitter, when a value of the manifests expires, or after a growing wait while
something is wrong that may pass by itself.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Final, Protocol, Self

from reconciler.features.service.passes import Passes, PassOutcome, PassResult
from reconciler.features.service.watch import Manifests
from reconciler.ports import Clock

_PASSING: Final = frozenset({"stale-plan", "locked"})
"""Refusals that mean that another writer is at work."""
_MOST_DOUBLINGS: Final = 32
_BEAT_S: Final = 1.0

_SETTLE_SECONDS: Final = 1.0
"""How long files must be unchanged before they are read, in seconds: a checkout in the middle of its update is not an intent."""
_AFTER_EXPIRY: Final = 0.1
"""Seconds between an expiry and the pass that sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds. ``jitter``: the share of an interval that is added at random, so that many services do not come at once.

    ``poll``: how often the files are looked at.
    """

    interval: float = 300.0
    jitter: float = 0.1
    poll: float = 5.0
    first_retry: float = 5.0
    longest_retry: float = 300.0


class Pacing:
    """Counts failures in a row and computes the wait after each pass."""

    def __init__(self, pace: Pace, *, jitter: Callable[[], float] = random.random) -> None:
        self.pace = pace
        self._jitter = jitter
        self.failures = 0

    def after(self, outcome: PassOutcome) -> float:
        """Seconds until the next pass, if no file changes before."""
        self.failures = 0 if outcome.result.is_success else self.failures + 1
        if not _may_pass(outcome):
            return self.pace.interval * (1 + self.pace.jitter * self._jitter())
        doubled = self.pace.first_retry * 2.0 ** min(self.failures - 1, _MOST_DOUBLINGS)
        return min(doubled, self.pace.longest_retry) * (1 + self._jitter()) / 2


def _may_pass(outcome: PassOutcome) -> bool:
    if outcome.result in (PassResult.CLUSTER, PassResult.FAILED, PassResult.PARTIAL, PassResult.CHANGING):
        return True
    return outcome.result is PassResult.REFUSED and outcome.reason in _PASSING


class Requests(Protocol):
    """What is asked of the service from outside."""

    def stop_wanted(self) -> bool:
        """True once it shall end."""
        ...

    def hold(self) -> None:
        """Raise no interrupt from now on, but where it is ``breakable``."""
        ...

    def breakable(self) -> AbstractContextManager[None]:
        """Inside, a second request to end may interrupt."""
        ...

    def take_reread(self) -> bool:
        """True once after each request to read everything now."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait, or shorter when something is asked."""
        ...


class Observer(Protocol):
    """Observer of passes: metrics, logs, health."""

    def beat(self) -> None:
        """The loop is alive."""
        ...

    def pass_ended(self, outcome: PassOutcome, *, failures: int) -> None:
        """A pass ended; ``failures`` in a row, 0 after a success."""
        ...


class Turns:
    """Bounds how many loops of one process run a pass at the same time."""

    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)

    def take(self, stop_wanted: Callable[[], bool], beat: Callable[[], None]) -> bool:
        """Wait for a turn; false when the loop shall end instead."""
        while not self._free.acquire(timeout=_BEAT_S):
            beat()
            if stop_wanted():
                return False
        return True

    def give_back(self) -> None:
        """Let another loop have the turn."""
        self._free.release()


class Loop:
    """Passes, one after the other, never two at once."""

    def __init__(
        self,
        manifests: Manifests,
        passes: Passes,
        *,
        pacing: Pacing,
        requests: Requests,
        observer: Observer,
        clock: Clock,
        turns: Turns | None = None,
    ) -> None:
        self._manifests = manifests
        self._turns = turns or Turns(1)
        self._passes = passes
        self._pacing = pacing
        self._poll_s = pacing.pace.poll
        self._requests = requests
        self._observer = observer
        self._clock = clock

    def _until_expiry(self, outcome: PassOutcome) -> float:
        """Seconds until a value of the manifests expires. The clock of ``monotonic`` may be a little ahead of the other."""
        if outcome.next_expiry is None:
            return math.inf
        return max(0.0, (outcome.next_expiry - self._clock.now()).total_seconds()) + _AFTER_EXPIRY

    def run(self, *, on_first: Callable[[PassOutcome], None] = lambda _: None) -> PassOutcome | None:
        """Go on until stopped; the last pass, if there was one. ``on_first`` is given the first, and may raise to end it all."""
        last, handled = None, None
        outcome: PassOutcome | None = None
        due, reread = self._clock.monotonic(), False
        while not self._requests.stop_wanted():
            self._observer.beat()
            reread = self._requests.take_reread() or reread
            files = self._manifests.fingerprint()
            settled, last = files == last, files
            if settled and (reread or files != handled or self._clock.monotonic() >= due):
                if not self._turns.take(self._requests.stop_wanted, self._observer.beat):
                    break
                first, reread = outcome is None, False
                try:
                    outcome = self._passes.run(files)
                finally:
                    self._turns.give_back()
                handled = handled if outcome.result is PassResult.CHANGING else files
                due = self._clock.monotonic() + min(self._pacing.after(outcome), self._until_expiry(outcome))
                self._observer.pass_ended(outcome, failures=self._pacing.failures)
                if first:
                    on_first(outcome)
                continue
            until_due = max(0.0, due - self._clock.monotonic())
            self._requests.wait(min(self._poll_s, until_due if settled else _SETTLE_SECONDS))
        return outcome


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
