"""The real clock, for the ``Clock`` port."""

from __future__ import annotations

import datetime
import time


class SystemClock:
    """Wall clock in UTC, monotonic seconds, and real waiting."""

    def now(self) -> datetime.datetime:
        """Now, in UTC."""
        return datetime.datetime.now(datetime.UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
