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

from reconciler.formats.canonical import number_text
from reconciler.formats.entity_text import DEFAULT_TEXT, entity_text, quoted, word
from reconciler.model.entity import DEFAULT, Entity, EntityName, EntityType
from reconciler.model.entity_order import in_canonical_order
from reconciler.model.state import CurrentState

_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)
COLUMNS: Final = (*_TYPES, "other", "key", "value")

_TAKEN_AS_TEXT: Final = re.compile(r"[A-Za-z_].*|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\".*")


def describe_csv(state: CurrentState) -> Iterator[str]:
    """Row by row, each ending in CR LF, after a row with the names of the columns; in canonical order."""
    writer = csv.writer(_Echo(), lineterminator="\r\n")
    yield writer.writerow(COLUMNS)
    for entity in in_canonical_order(state.entities):
        cells = _cells(entity)
        for key, value in sorted(state.entities[entity].items()):
            yield writer.writerow((*cells, _text(key), number_text(value)))


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _cells(entity: Entity) -> tuple[str, ...]:
    unknown = tuple(part for part in entity.parts if part[0] not in _TYPES)
    names = dict(entity.parts)
    known = (_name(names[entity_type]) if entity_type in names else "" for entity_type in _TYPES)
    return (*known, entity_text(Entity(parts=unknown)) if unknown else "")


def _name(name: EntityName) -> str:
    return DEFAULT_TEXT if name is DEFAULT else _text(name)


def _text(text: str) -> str:
    cell = word(text)
    return cell if _TAKEN_AS_TEXT.fullmatch(cell) else quoted(text)
