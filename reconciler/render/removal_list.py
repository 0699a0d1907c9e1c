"""Removed limits as a bare list of entities, for plans whose removals have no room in a table."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Plan, escaped
from reconciler.render.markdown_text import Section, fence, fold, rows_that_fit, shorten, size

_FRAME: Final = 300
"""Bytes that a fold and its title, a fence, and a sentence about what is left out may take beside the rows."""

_BRACED_NAME: Final = re.compile(r"([^\"{},]*[-_./:=])([^\"{},]*)")


def removal_list(plan: Plan, *, room: int, limit: int) -> Section:
    """All removed limits; shared beginnings are written once where that is needed, and the rest is counted."""
    groups = _by_removed_keys(plan, limit)
    total = sum(len(names) for names in groups.values())
    for braces in (False, True):
        body = [line for keys, names in groups.items() for line in (f"{keys}:", *(_braced(names) if braces else names))]
        section = _block(body, total=total, left_out=0, braces=braces)
        if size(section) <= room:
            return Section(lines=section)
    flat = [f"{keys}: {name}" for keys, names in groups.items() for name in names]
    kept = rows_that_fit(flat, room - _FRAME)
    return Section(lines=_block(kept, total=total, left_out=total - len(kept), braces=False), left_out=total - len(kept))


def _by_removed_keys(plan: Plan, limit: int) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for change in plan.changes:
        keys = [escaped(key.key) for key in change.keys if key.after is None]
        if keys:
            groups.setdefault(shorten(", ".join(keys), limit), []).append(shorten(str(change.entity), limit))
    return groups


def _block(body: Sequence[str], *, total: int, left_out: int, braces: bool) -> tuple[str, ...]:
    ticks = fence("\n".join(body))
    legend = ("`a-{1,2}` stands for `a-1` and `a-2`.", "") if braces else ()
    warning = (f"**{left_out} of {total} removals have no room here.**", "") if left_out else ()
    return (*warning, *fold(f"{total} entities lose limits", (*legend, f"{ticks}text", *body, ticks)))


def _braced(names: Sequence[str]) -> Iterator[str]:
    """``user=a-1``, ``user=a-2`` as ``user=a-{1,2}``; names with braces, commas or quotes stand alone."""
    parts = [(match.group(1), match.group(2)) if (match := _BRACED_NAME.fullmatch(name)) else (name, None) for name in names]
    parts.sort(key=lambda part: (part[0], part[1] or ""))
    for prefix, group in itertools.groupby(parts, key=lambda part: part[0]):
        ends = [end for _, end in group if end is not None]
        if len(ends) > 1:
            yield f"{prefix}{{{','.join(ends)}}}"
        else:
            yield prefix + (ends[0] if ends else "")
