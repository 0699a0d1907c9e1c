"""Values that a backtest recommends, as edits of the manifests that declare them."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.entity import Entity
from reconciler.model.finding import Span
from reconciler.model.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedValue:
    """One value of a manifest that throttles recorded traffic, and the recommended one.

    ``before`` and ``after`` are texts of a manifest. ``entities`` take their value from this place, the shared value is safe for
    each of them. ``profile`` is the profile that has it.
    """

    source: Span
    key: str
    before: str
    after: str
    entities: tuple[Entity, ...]
    profile: str | None = None
    clusters: tuple[str, ...] = ()
    """Other clusters that take a value from this place, whose traffic was not judged."""
    is_lower_bound: bool = False
    """A quota throttled clients of it when they were recorded: they may need more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwrittenValue:
    """A recommended value that no manifest can be given, and why."""

    entity: Entity
    key: str
    after: str
    why: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueProposals:
    """All that a backtest recommends, in the order of the files."""

    values: tuple[ProposedValue, ...] = ()
    unwritten: tuple[UnwrittenValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRevision:
    """A file before and after a change. ``path`` is as the user would type it, ``target`` where links lead."""

    path: str
    target: str
    before: bytes
    after: bytes
