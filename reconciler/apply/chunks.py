"""Cutting a plan into requests: by changed keys and by size, never through an entity.

A KRaft controller refuses a request of more than 10,000 changed keys as a whole (since 3.5), and one atomic batch must fit its
8 MiB raft batch; requests stay far below both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import Change

_KEY_OVERHEAD: Final = 40
_ENTITY_OVERHEAD: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Upper bounds of one request; an entity that is larger alone still goes, alone."""

    keys: int = 5_000
    size: int = 400 * 1024
    """Bytes, estimated from the names' UTF-8 lengths."""


def chunks(changes: Sequence[Change], limits: ChunkLimits) -> Iterator[tuple[Change, ...]]:
    """Yield the changes in order, in requests within the limits."""
    pending: list[Change] = []
    keys = size = 0
    for change in changes:
        change_size = estimated_size(change)
        if pending and (keys + len(change.keys) > limits.keys or size + change_size > limits.size):
            yield tuple(pending)
            pending, keys, size = [], 0, 0
        pending.append(change)
        keys += len(change.keys)
        size += change_size
    if pending:
        yield tuple(pending)


def estimated_size(change: Change) -> int:
    """Bytes that a change takes in a request, rounded up."""
    names = sum(len(n.encode("utf-8", "surrogatepass")) for _, n in change.entity.parts if isinstance(n, str))
    return _ENTITY_OVERHEAD + names + _KEY_OVERHEAD * len(change.keys)
