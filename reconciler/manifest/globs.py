"""Path patterns of the Repository document: ``*`` and ``?`` within a folder, ``**`` across folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A test for paths relative to the root, with ``/`` between parts; a pattern that matches a folder takes all below it."""
    compiled = [_compiled(pattern) for pattern in patterns]
    return lambda path: any(one.fullmatch(path) for one in compiled)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = [part for part in pattern.removeprefix("./").split("/") if part]
    text = ""
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            text += ".*" if last else "(?:[^/]+/)*"
        else:
            text += _part(part) + ("" if last else "/")
    return re.compile(text + "(?:/.*)?", re.DOTALL)


def _part(part: str) -> str:
    # Runs of stars are one star: two in a row would make matching slow, and mean the same.
    shorter = re.sub(r"\*+", "*", part)
    return "".join("[^/]*" if c == "*" else "[^/]" if c == "?" else re.escape(c) for c in shorter)
