"""Waiting for something to become true, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_until(look: Callable[[], Found], *, within_s: float = 180.0) -> Found:
    """Calls ``look`` until it returns something true, and returns that; fails at the deadline.

    What takes long is looked at less often: a look can be a read of many files, or a conversation with a broker.
    """
    begun = time.monotonic()
    while not (found := look()):
        waited_s = time.monotonic() - begun
        assert waited_s < within_s, f"still not so after {within_s:.0f} s"
        time.sleep(min(max(waited_s / 20, 0.02), 0.2))
    return found
