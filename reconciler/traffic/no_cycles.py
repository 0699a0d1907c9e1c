"""Python without its search for cycles, where very many small values are made and none refers back: it is a third of the time."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Off inside, and as it was afterwards; also a decorator."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            if not gc.get_freeze_count():
                # What was made is old now, without being gone through once more.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
