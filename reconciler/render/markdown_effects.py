"""The effects of a plan in Markdown: the lines of the terminal, in a block that reads nothing into them."""

from __future__ import annotations

from reconciler.model import Plan, escaped
from reconciler.render.effects_text import effects_lines
from reconciler.render.escape_markdown import LIMIT, fence, prose, shortened
from reconciler.render.markdown_lists import Section, fitting, folded, size


def effects_section(plan: Plan, *, room: int) -> Section:
    """Nothing when the plan was made without effects; else at most ``room`` bytes, folded unless it is one sentence."""
    if plan.effects is None:
        return Section()
    title, *rows = (
        shortened(escaped("".join(segment.text for segment in line)), LIMIT)
        for line in effects_lines(plan.effects, changed=len(plan.changes))
    )
    if not rows:
        return Section(lines=(f"**{prose(title)}**", ""))
    kept = fitting(rows, room - size(folded(title, ())) - 2 * size((fence("".join(rows)),)))
    ticks = fence("\n".join(kept))
    # A client is a line of its own, its effects are below it and stand further in.
    left_out = sum(1 for row in rows[len(kept) :] if row.startswith("      "))
    return Section(lines=folded(title, (f"{ticks}text", *kept, ticks)) if kept else (), left_out=left_out)
