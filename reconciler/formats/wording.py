"""Words of messages about text that strangers wrote: quoted, escaped, shortened, and guessed at."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from reconciler.model import escaped

_LONGEST: Final = 60


def shown(text: str) -> str:
    """Text of a file for a message: quoted, escaped, and cut when it is long."""
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return f"'{escaped(cut)}'"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for a near miss, else the choices."""
    return _suggestion(word, tuple(sorted(known)))


@lru_cache(maxsize=1024)
def _suggestion(word: str, choices: tuple[str, ...]) -> str:
    """Cached, because a slip of the keyboard is copied from entry to entry."""
    from difflib import get_close_matches

    for spelling in (word[:100], word[:100].lower()):
        close = get_close_matches(spelling, choices, n=1, cutoff=0.6)
        if close:
            return f"; did you mean {shown(close[0])}?"
    return f"; known: {', '.join(shown(c) for c in choices[:12])}" if choices else ""
