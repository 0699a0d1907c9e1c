"""Waiting for something to become true, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_until(look: Callable[[], Found], *, within_s: float = 180.0) -> Found:
    """Calls ``look`` until it returns something true, and returns that; fails at the deadline."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"still not so after {within_s:.0f} s"
        time.sleep(0.02)
    return found
