"""The state of every change during a run, and trying again: when that is safe, how often, how long to wait, and until when.

Alterations are idempotent, so sending one again is safe as long as the cluster still has what was there before. A controller
that is being replaced takes seconds, a broker that restarts somewhat longer; the waits add up to about that, and no further.
The budget counts writing and verifying, not the waits that were asked for.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from reconciler.errors import BackendError, OutcomeUnknownError, ReconcilerError, RequestRefusedError, UnreachableError
from reconciler.logs import log_event
from reconciler.model import AlterationResult, Change, ChangeOutcome, ChangeStatus, Entity
from reconciler.ports import Clock

DEADLINE: Final = "deadline"
"""The ``failure_reason`` of a run that ran out of time."""
_log: Final = logging.getLogger(__name__)
_REQUEST_TIMED_OUT: Final = 7
_NOT_CONTROLLER: Final = 41
_PASSING: Final = frozenset({_REQUEST_TIMED_OUT, _NOT_CONTROLLER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why nothing more is written. ``error``: to be raised instead of reported, when nothing was written at all."""

    reason: str
    message: str
    error: ReconcilerError | None = None

    @classmethod
    def of(cls, error: ReconcilerError) -> Stop:
        """The stop that an error makes."""
        return cls(reason=error.failure_reason, message=str(error), error=error)

    @classmethod
    def internal(cls, error: Exception) -> Stop:
        """The stop that a fault of this tool makes."""
        return cls(reason="internal", message=f"internal error: {type(error).__name__}: {error}. Please report it")


_Fate: TypeAlias = tuple[ChangeStatus, str | None, int | None]
"""A status, the error and its code. The changes of a request share one, and only a report makes an object for each."""
_FIRST: Final[_Fate] = (ChangeStatus.NOT_ATTEMPTED, None, None)


class Outcomes:
    """One outcome for each change, always; they start as not attempted."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes = changes
        self._of: dict[Entity, _Fate] = dict.fromkeys((change.entity for change in changes), _FIRST)

    def note(self, results: Iterable[AlterationResult], *, good: ChangeStatus) -> None:
        """Take over the cluster's answers; ``good`` is what code 0 means. Entities that were not sent are passed over."""
        done: _Fate = (good, None, None)
        for result in results:
            if result.entity not in self._of:
                continue
            code = result.error_code
            if code == 0 and result.error is None and not result.stale:
                self._of[result.entity] = done
                continue
            status = ChangeStatus.NOT_ATTEMPTED if result.stale else good if code == 0 else ChangeStatus.FAILED
            self._of[result.entity] = (status, result.error, code or None)

    def mark(self, changes: Iterable[Change], status: ChangeStatus, *, error: str | None = None) -> None:
        """Set them all to one status."""
        self._of.update(dict.fromkeys((change.entity for change in changes), (status, error, None)))

    def explain(self, change: Change, text: str) -> None:
        """Keep its status and add to its message."""
        self.mark((change,), self.status(change), error=text)

    def status(self, change: Change) -> ChangeStatus:
        """The status of one change."""
        return self._of[change.entity][0]

    def having(self, *statuses: ChangeStatus) -> tuple[Change, ...]:
        """The changes with one of these, in the plan's order."""
        return tuple(change for change in self._changes if self._of[change.entity][0] in statuses)

    @property
    def may_have_written(self) -> bool:
        """True when something may be on the cluster that was not there before."""
        return any(status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) for status, _, _ in self._of.values())

    def of(self, changes: Iterable[Change]) -> tuple[ChangeOutcome, ...]:
        """The outcomes of these changes, in their order."""
        fates = ((change, self._of[change.entity]) for change in changes)
        return tuple(ChangeOutcome(change=change, status=s, error=error, error_code=code) for change, (s, error, code) in fates)


Jitter: TypeAlias = Callable[[], float]
"""A source of random numbers, evenly from 0 to below 1."""
Answer = TypeVar("Answer")


class Budget:
    """Seconds that pass from its making on, but for those spent inside ``paused``."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left. From the deadline on, they are 0, and nothing new is begun."""
        return max(0.0, self._end - self._clock.monotonic())

    def sleep(self, seconds: float) -> None:
        """Wait, but not past the deadline."""
        self._clock.sleep(min(seconds, self.left))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop counting while the body runs."""
        start = self._clock.monotonic()
        try:
            yield
        finally:
            self._end += self._clock.monotonic() - start

    def __str__(self) -> str:
        return f"the deadline of {self._seconds:g} s for the whole run has passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often one request is sent at most, and the waits (seconds) between: doubling, half of each random."""

    attempts: int = 8
    first: float = 0.2
    longest: float = 5.0

    def waits(self, jitter: Jitter) -> Iterator[float]:
        """One wait for each attempt that may fail. Runs that broke off together do not come back together."""
        for attempt in range(self.attempts):
            whole = min(self.first * 2.0**attempt, self.longest)
            yield whole * (1 + jitter()) / 2


def is_transient(error: BackendError) -> bool:
    """True for what may be over in seconds, and after which looking and sending again is safe."""
    if isinstance(error, RequestRefusedError):
        return error.error_code in _PASSING
    return isinstance(error, OutcomeUnknownError | UnreachableError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How one run retries: the waits, the jitter in them, and the time that is left."""

    backoff: Backoff
    jitter: Jitter
    budget: Budget

    def ask(self, ask: Callable[[], Answer], *, also_unreachable: bool) -> Answer:
        """Ask for what changes nothing, again while the cluster has no controller. Raises the last ``BackendError``.

        ``also_unreachable``: again, too, when no broker answers, because one did a moment ago.
        """
        for wait in self.backoff.waits(self.jitter):
            try:
                return ask()
            except (RequestRefusedError, UnreachableError) as error:
                unreachable = isinstance(error, UnreachableError)
                if (unreachable and not also_unreachable) or not is_transient(error) or not self.budget.left:
                    raise
                log_event(_log, "asking again", level=logging.INFO, wait_seconds=round(wait, 3), reason=str(error))
                self.budget.sleep(wait)
        return ask()
