"""Quotas of a cluster: a table for people, and text as the tool of KIP-546 prints it.

Text: the entity, below it a line for each key, then an empty line.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import CurrentState, in_canonical_order
from reconciler.render.layout import Column, Style, Table, table
from reconciler.text import amount, entity_text, number_text, word

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


def state_table(state: CurrentState) -> Table:
    """Return a table of limits with units beside the entities' names, in canonical order."""
    rows: list[tuple[tuple[str, Style] | str, ...]] = []
    for entity in in_canonical_order(state.entities):
        quotas = sorted(state.entities[entity].items())
        names = (str(entity), *[""] * (len(quotas) - 1))
        rows += [((name, Style.STRONG), key, amount(key, value)) for name, (key, value) in zip(names, quotas, strict=True)]
    columns = (Column(title="entity", least=16), Column(title="key", least=12), Column(title="limit", least=10))
    return table(columns, rows, indent=0)
