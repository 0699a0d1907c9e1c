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
    """Between two stars the leftmost match is as good as any, so it is atomic: no pattern makes matching slow."""
    parts = [part for part in pattern.removeprefix("./").split("/") if part]
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_part(part))
    first, *others = runs
    if not others:
        return re.compile("/".join(first) + "(?:/.*)?", re.DOTALL)
    text = "".join(f"{part}/" for part in first)
    for run in others[:-1]:
        if run:
            text += f"(?>(?:[^/]+/)*?{'/'.join(run)}/)"
    last = others[-1]
    text += f"(?:[^/]+/)*?{'/'.join(last)}(?:/.*)?" if last else ".*"
    return re.compile(text, re.DOTALL)


def _part(part: str) -> str:
    chunks = ["".join("[^/]" if c == "?" else re.escape(c) for c in chunk) for chunk in re.split(r"\*+", part)]
    first, *others = chunks
    if not others:
        return first
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in others[:-1] if chunk)
    # The last chunk is at the end of the part.
    return f"{first}{middle}[^/]*{others[-1]}(?=/|\\Z)"
