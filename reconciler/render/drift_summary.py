"""Drift as Markdown, for the page of a run: whole rows within a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import Drift, EntityDrift, KeyDrift, display_name
from reconciler.render.drift_text import drift_sentence, overrides_words
from reconciler.render.markdown_text import code, in_cell, list_section, prose, rows_that_fit, size
from reconciler.text import amount

_DRIFT_HEAD: Final = (
    "| Class | Entity | Key | Live | Last applied | Declared | Source |",
    "| --- | --- | --- | ---: | ---: | ---: | --- |",
)
_DRIFT_SENTENCES: Final = 400


def drift_markdown(drift: Drift, *, budget: int) -> str:
    """The differences in at most ``budget`` bytes; rows that have no room are counted."""
    name = f": {code(display_name(drift.cluster.name))}" if drift.cluster.name else ""
    head = (f"### Kafka quotas, drift{name}", "", f"**{drift_sentence(drift)}**", "")
    notes = list_section("Notes", (f"- {prose(note)}" for note in drift.notes), total=len(drift.notes), room=budget // 10)
    unmanaged = list_section(
        "Not declared, and in the scope",
        (f"- {code(str(one.entity))}" for one in drift.unmanaged_in_scope),
        total=len(drift.unmanaged_in_scope),
        room=budget // 10,
    )
    differing = [(one, key) for one in drift.entities if one.drift.is_difference for key in one.keys]
    room = budget - size(head) - size(notes.lines) - size(unmanaged.lines) - size(_DRIFT_HEAD) - _DRIFT_SENTENCES
    rows = rows_that_fit((_drift_row(one, key, has_baseline=drift.baseline is not None) for one, key in differing), room)
    table = _drift_table(rows, left_out=len(differing) - len(rows))
    return "\n".join((*head, *table, *unmanaged.lines, *notes.lines)).rstrip("\n") + "\n"


def _drift_table(rows: list[str], *, left_out: int) -> Iterator[str]:
    if left_out:
        yield from (f"**{left_out} keys have no room here.** `kafka-quotas drift` prints all of them.", "")
    if rows:
        yield from (*_DRIFT_HEAD, *rows, "")


def _drift_row(one: EntityDrift, key: KeyDrift, *, has_baseline: bool) -> str:
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
