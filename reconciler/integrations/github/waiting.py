"""What an answer asks of whoever sent the request: to wait, for how long, and why. Pure.

Source: GitHub's documentation of its REST API, "Rate limits" and "Best practices": ``retry-after`` first, then the moment in
``x-ratelimit-reset`` once nothing remains, else at least a minute, growing; and that 5xx may pass.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Final

from reconciler.integrations.github.transport import Answer

MOST_TRIES: Final = 4
"""Requests in a row that got no proper answer."""

_MINUTE: Final = 60.0
_LONGEST: Final = 366 * 86_400.0
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait so many seconds, because of ``why``."""

    seconds: float
    why: str
    limited: bool
    """A rate limit, which ends at a moment that can be told; else a fault that may pass."""


def pause_after_fault(tries: int, why: str) -> Pause:
    """After the so many-th try in a row without a proper answer: 1, 2, 4 seconds."""
    return Pause(seconds=float(2 ** (tries - 1)), why=why, limited=False)


def pause_asked_for(answer: Answer, *, now: datetime.datetime, times: int) -> Pause | None:
    """The pause of a rate limit, primary or secondary, or ``None``; ``times``: how often one was met before."""
    if answer.status not in (403, 429):
        return None
    after = _seconds(answer.headers.get("retry-after"))
    if after is not None:
        return Pause(seconds=after, why="a secondary rate limit", limited=True)
    reset = _seconds(answer.headers.get("x-ratelimit-reset"))
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        # A second more, since the moment is given in whole seconds and clocks differ.
        return Pause(seconds=max(0.0, reset - now.timestamp()) + 1.0, why="the rate limit", limited=True)
    if answer.status == 429 or b"secondary rate limit" in answer.body[:10_000].lower():
        return Pause(seconds=_MINUTE * 2**times, why="a secondary rate limit", limited=True)
    return None


def _seconds(header: str | None) -> float | None:
    if header is None or not _SECONDS.fullmatch(header.strip()):
        return None
    return min(float(header), 1e10)


def ends_at(pause: Pause, now: datetime.datetime) -> datetime.datetime:
    """When it is over, in UTC."""
    return now + datetime.timedelta(seconds=min(pause.seconds, _LONGEST))
