"""Trying again: when that is safe, how often, and how long to wait in between.

Alterations are idempotent, so sending one again is safe as long as the cluster still has what was there before. A controller that
is being replaced takes seconds, a broker that restarts somewhat longer; the waits add up to about that, and no further.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from reconciler.apply.budget import Budget
from reconciler.errors import BackendError, OutcomeUnknownError, RequestRefusedError, UnreachableError
from reconciler.logs import log_event

_log: Final = logging.getLogger(__name__)

Chance: TypeAlias = Callable[[], float]
"""A source of random numbers, evenly from 0 to below 1."""

Answer = TypeVar("Answer")

_REQUEST_TIMED_OUT: Final = 7
_NOT_CONTROLLER: Final = 41
_PASSING: Final = frozenset({_REQUEST_TIMED_OUT, _NOT_CONTROLLER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often one request is sent at most, and the waits (seconds) between: doubling, half of each up to chance."""

    attempts: int = 8
    first: float = 0.2
    longest: float = 5.0

    def waits(self, chance: Chance) -> Iterator[float]:
        """One wait for each attempt that may fail. Runs that broke off together do not come back together."""
        for attempt in range(self.attempts):
            whole = min(self.first * 2.0**attempt, self.longest)
            yield whole * (1 + chance()) / 2


def passes_by_itself(error: BackendError) -> bool:
    """True for what may be over in seconds, and after which looking and sending again is safe."""
    if isinstance(error, RequestRefusedError):
        return error.error_code in _PASSING
    return isinstance(error, OutcomeUnknownError | UnreachableError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How one run tries again: the waits, the chance in them, and the time that is left."""

    backoff: Backoff
    chance: Chance
    budget: Budget

    def waits(self) -> Iterator[float]:
        """One wait for each attempt at one request."""
        return self.backoff.waits(self.chance)

    def ask(self, ask: Callable[[], Answer], *, also_unreachable: bool) -> Answer:
        """Ask for what changes nothing, again while the cluster has no controller. Raises the last ``BackendError``.

        ``also_unreachable``: again, too, when nobody answers, because somebody did a moment ago.
        """
        for wait in self.waits():
            try:
                return ask()
            except (RequestRefusedError, UnreachableError) as error:
                unreachable = isinstance(error, UnreachableError)
                if (unreachable and not also_unreachable) or not passes_by_itself(error) or self.budget.spent:
                    raise
                log_event(_log, "asking again", level=logging.INFO, wait_seconds=round(wait, 3), reason=str(error))
                self.budget.sleep(wait)
        return ask()
