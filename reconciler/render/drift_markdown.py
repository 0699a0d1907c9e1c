"""Drift as Markdown within a number of bytes, for the page of a CI run or an issue: a table of what differs, key by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import Drift, EntityDrift, KeyDrift, display_name
from reconciler.render.amounts import amount
from reconciler.render.drift_text import overrides_words, summary_sentence
from reconciler.render.escape_markdown import code, in_cell, prose
from reconciler.render.markdown_lists import fitting, listed, size

_HEAD: Final = (
    "| Class | Entity | Key | Live | Last applied | Declared | Source |",
    "| --- | --- | --- | ---: | ---: | ---: | --- |",
)
_SENTENCES: Final = 400


def drift_markdown(drift: Drift, *, budget: int) -> str:
    """The differences in at most ``budget`` bytes; rows that have no room are counted."""
    name = f": {code(display_name(drift.cluster.name))}" if drift.cluster.name else ""
    head = (f"### Kafka quotas, drift{name}", "", f"**{summary_sentence(drift)}**", "")
    notes = listed("Notes", (f"- {prose(note)}" for note in drift.notes), total=len(drift.notes), room=budget // 10)
    unmanaged = listed(
        "Not declared, and in the scope",
        (f"- {code(str(one.entity))}" for one in drift.unmanaged_in_scope),
        total=len(drift.unmanaged_in_scope),
        room=budget // 10,
    )
    differing = [(one, key) for one in drift.entities if one.drift.is_difference for key in one.keys]
    room = budget - size(head) - size(notes.lines) - size(unmanaged.lines) - size(_HEAD) - _SENTENCES
    rows = fitting((_row(one, key, has_baseline=drift.baseline is not None) for one, key in differing), room)
    table = _table(rows, left_out=len(differing) - len(rows))
    return "\n".join((*head, *table, *unmanaged.lines, *notes.lines)).rstrip("\n") + "\n"


def _table(rows: list[str], *, left_out: int) -> Iterator[str]:
    if left_out:
        yield from (f"**{left_out} keys have no room here.** `kafka-quotas drift` prints all of them.", "")
    if rows:
        yield from (*_HEAD, *rows, "")


def _row(one: EntityDrift, key: KeyDrift, *, has_baseline: bool) -> str:
    cells = (
        one.drift.value,
        code(str(one.entity)),
        code(key.key),
        amount(key.key, key.live),
        amount(key.key, key.baseline) if has_baseline else "not known",
        amount(key.key, key.desired) + prose(overrides_words(key)),
        code(str(key.source)) if key.source else "no manifest declares it",
    )
    return "| " + " | ".join(in_cell(cell) for cell in cells) + " |"
