"""Quotas as the tool of KIP-546 prints them: the entity, below it a line for each key, then an empty line."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.formats import number_text, word
from reconciler.formats.entity_text import entity_text
from reconciler.model import CurrentState, in_canonical_order

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def describe_text(state: CurrentState, *, color: bool = False) -> Iterator[str]:
    """Piece by piece; entities in canonical order, keys sorted, numbers as the broker holds them."""
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
