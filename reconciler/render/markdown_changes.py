"""The changes of a plan in Markdown: a table as far as there is room, and every removal, whatever the room."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Change, KeyChange, Plan, escaped
from reconciler.render.amounts import amount, factor
from reconciler.render.direction import ChangeDirection, direction
from reconciler.render.escape_markdown import code, fence, in_cell, prose, shortened
from reconciler.render.markdown_lists import OPEN_ROWS, Section, fitting, folded, size

_HEAD: Final = (
    "| Action | Entity | Key | Now | Planned | Factor | Source | Note |",
    "| --- | --- | --- | ---: | ---: | ---: | --- | --- |",
)
_FRAME: Final = 300
"""Bytes that a fold and its title, a fence, and a sentence about what is left out may take beside the rows."""

_BRACED_NAME: Final = re.compile(r"([^\"{},]*[-_./:=])([^\"{},]*)")


def changes_section(plan: Plan, *, room: int, limit: int) -> Section:
    """All changes, removals first, in at most ``room`` bytes; ``limit`` is how much of one name is shown.

    Removals that have no room in the table become a bare list of entities, then one with shared beginnings written once; only
    when even that is too long are they cut, and the first line says so.
    """
    keys = [(change, key) for change in plan.changes for key in change.keys]
    removed = [one for one in keys if direction(one[1]) is ChangeDirection.REMOVED]
    others = [one for one in keys if direction(one[1]) is not ChangeDirection.REMOVED]
    space = room - size(_HEAD) - _FRAME
    rows = fitting((_row(*one, limit) for one in (*removed, *others)), space)
    if len(rows) >= len(removed):
        return Section(lines=_table(rows), left_out=len(keys) - len(rows))
    listed = _removal_list(plan, room=space, limit=limit)
    rows = fitting((_row(*one, limit) for one in others), space - size(listed.lines) - _FRAME)
    return Section(lines=(*listed.lines, *_table(rows)), left_out=listed.left_out + len(others) - len(rows))


def _row(change: Change, key: KeyChange, limit: int) -> str:
    way = direction(key)
    source = (
        code(str(key.source), limit=limit) if key.source else "no manifest declares it" if way is ChangeDirection.REMOVED else ""
    )
    note = prose(change.note, limit=limit) if change.note and key is change.keys[0] else ""
    cells = (
        f"{way.value} ({change.action.value})",
        code(str(change.entity), limit=limit),
        code(key.key, limit=limit),
        amount(key.key, key.before),
        f"**{amount(key.key, key.after)}**",
        factor(key.before, key.after),
        source,
        note,
    )
    return "| " + " | ".join(in_cell(cell) for cell in cells) + " |"


def _table(rows: Sequence[str]) -> tuple[str, ...]:
    if len(rows) > OPEN_ROWS:
        return folded(f"{len(rows)} changed keys", (*_HEAD, *rows))
    return (*_HEAD, *rows, "") if rows else ()


def _removal_list(plan: Plan, *, room: int, limit: int) -> Section:
    groups = _by_removed_keys(plan, limit)
    total = sum(len(names) for names in groups.values())
    for braces in (False, True):
        body = [line for keys, names in groups.items() for line in (f"{keys}:", *(_braced(names) if braces else names))]
        section = _block(body, total=total, left_out=0, braces=braces)
        if size(section) <= room:
            return Section(lines=section)
    flat = [f"{keys}: {name}" for keys, names in groups.items() for name in names]
    kept = fitting(flat, room - _FRAME)
    return Section(lines=_block(kept, total=total, left_out=total - len(kept), braces=False), left_out=total - len(kept))


def _by_removed_keys(plan: Plan, limit: int) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for change in plan.changes:
        keys = [escaped(key.key) for key in change.keys if direction(key) is ChangeDirection.REMOVED]
        if keys:
            groups.setdefault(shortened(", ".join(keys), limit), []).append(shortened(str(change.entity), limit))
    return groups


def _block(body: Sequence[str], *, total: int, left_out: int, braces: bool) -> tuple[str, ...]:
    ticks = fence("\n".join(body))
    legend = ("`a-{1,2}` stands for `a-1` and `a-2`.", "") if braces else ()
    warning = (f"**{left_out} of {total} removals have no room here.**", "") if left_out else ()
    return (*warning, *folded(f"{total} entities lose limits", (*legend, f"{ticks}text", *body, ticks)))


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
