"""Quotas as CSV (RFC 4180): a row for each entity and key, for spreadsheets and for scripts.

A name stands in the column of its type: an empty cell is a type that is no part of the entity, ``<default>`` its default, and any
other cell a name as ``formats.entity_text`` writes it. Names are chosen by strangers, and a spreadsheet takes a cell that begins
with ``=``, ``+``, ``-``, ``@`` or a control character for a formula, and ``1E5`` for a number: what begins with neither a letter
nor an underscore and is no IPv4 address stands in quotes of its own. ``other`` has the parts of unknown types, as text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Final

from reconciler.formats import DEFAULT_TEXT, number_text, quoted, word
from reconciler.formats.entity_text import entity_text
from reconciler.model import DEFAULT, CurrentState, Entity, EntityName, EntityType, in_canonical_order

_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)
COLUMNS: Final = (*_TYPES, "other", "key", "value")

_TAKEN_AS_TEXT: Final = re.compile(r"[A-Za-z_].*|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\".*")


def describe_csv(state: CurrentState) -> Iterator[str]:
    """Row by row, each ending in CR LF, after a row with the names of the columns; in canonical order."""
    write = csv.writer(_Echo(), lineterminator="\r\n").writerow
    yield write(COLUMNS)
    words: dict[tuple[str, float], tuple[str, str]] = {}
    for entity in in_canonical_order(state.entities):
        cells = _cells(entity)
        for item in sorted(state.entities[entity].items()):
            # Few values are of one kind: clusters have thousands of entities and a handful of classes.
            if (pair := words.get(item)) is None:
                pair = words[item] = (_text(item[0]), number_text(item[1]))
            yield write(cells + pair)


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _cells(entity: Entity) -> tuple[str, ...]:
    cells = dict.fromkeys((*_TYPES, "other"), "")
    unknown = []
    for entity_type, name in entity.parts:
        if entity_type in _TYPES:
            cells[entity_type] = _name(name)
        else:
            unknown.append((entity_type, name))
    if unknown:
        cells["other"] = entity_text(Entity(parts=tuple(unknown)))
    return tuple(cells.values())


def _name(name: EntityName) -> str:
    return DEFAULT_TEXT if name is DEFAULT else _text(name)


def _text(text: str) -> str:
    cell = word(text)
    return cell if _TAKEN_AS_TEXT.fullmatch(cell) else quoted(text)
