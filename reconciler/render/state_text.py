"""Quotas of a cluster: a table for people, text as the tool of KIP-546 prints it, and CSV (RFC 4180).

Text: the entity, below it a line for each key, then an empty line. CSV: a row for each entity and key. A name stands in the
column of its type: an empty cell is a type that is not part of the entity, ``<default>`` its default, and any other cell a name
as ``entity_text`` writes it. Names are chosen by strangers, and a spreadsheet takes a cell that begins with ``=``, ``+``,
``-``, ``@`` or a control character for a formula, and ``1E5`` for a number: text that begins with neither a letter nor an
underscore and is not an IPv4 address stands in quotes of its own. ``other`` has the parts of unknown types, as text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.model import DEFAULT, CurrentState, Entity, EntityName, EntityType, ValueExpiry, in_canonical_order
from reconciler.render.layout import Column, Style, Table, table
from reconciler.text import DEFAULT_TEXT, amount, entity_text, live_expiry_text, number_text, quoted, word

_NO_EXPIRIES: Final[Mapping[tuple[Entity, str], ValueExpiry]] = {}
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def state_as_text(state: CurrentState, *, color: bool = False) -> Iterator[str]:
    """Piece by piece; entities in canonical order, keys sorted, numbers as the broker has them."""
    before, after = (_BOLD, _PLAIN) if color else ("", "")
    words: dict[tuple[str, float], str] = {}
    entities = state.entities
    for entity in in_canonical_order(entities):
        quotas = entities[entity]
        lines = []
        for item in sorted(quotas.items()) if len(quotas) > 1 else quotas.items():
            # Few values are of one kind: clusters have thousands of entities and a handful of classes.
            if (text := words.get(item)) is None:
                key, value = item
                text = words[item] = f"  {word(key)}={number_text(value)}\n"
            lines.append(text)
        yield f"{before}{entity_text(entity)}{after}\n{''.join(lines)}\n"


def state_table(state: CurrentState, expiries: Mapping[tuple[Entity, str], ValueExpiry] = _NO_EXPIRIES) -> Table:
    """For people: each limit with its unit, beside the entity's name; in canonical order. A column for ``expiries``, if any."""
    rows: list[tuple[tuple[str, Style] | str, ...]] = []
    for entity in in_canonical_order(state.entities):
        quotas = sorted(state.entities[entity].items())
        names = (str(entity), *[""] * (len(quotas) - 1))
        for name, (key, value) in zip(names, quotas, strict=True):
            row = (name, Style.STRONG), key, amount(key, value)
            expiry = expiries.get((entity, key))
            rows.append((*row, "" if expiry is None else live_expiry_text(key, expiry)) if expiries else row)
    return table((*_TABLE, _TEMPORARY) if expiries else _TABLE, rows, indent=0)


_TABLE: Final = (Column(title="entity", least=16), Column(title="key", least=12), Column(title="limit", least=10))
_TEMPORARY: Final = Column(title="temporary", least=16)
_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)
COLUMNS: Final = (*_TYPES, "other", "key", "value")

_TAKEN_AS_TEXT: Final = re.compile(r"[A-Za-z_].*|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\".*")


def state_as_csv(state: CurrentState) -> Iterator[str]:
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
