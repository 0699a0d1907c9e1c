"""Freeze windows: when a cluster may not be written. The clock and the time zone rules are applied elsewhere; these are data."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reconciler.model.source import Span

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""The words of a manifest, at the index that ``datetime.weekday`` gives the day."""


class WindowKind(enum.StrEnum):
    """``deny``: frozen inside. ``allow``: where there are such windows, frozen outside all of them. Deny beats allow."""

    DENY = "deny"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """From one moment (with its offset) to another; an end that is absent is open: frozen until somebody takes it out."""

    start: datetime.datetime | None = None
    end: datetime.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """On some weekdays, by the wall clock of a time zone.

    ``start`` and ``end`` are minutes after midnight, ``end`` at most 1440; an ``end`` at or before ``start`` is on the next day,
    and the window belongs to the day on which it begins.
    """

    days: frozenset[int]
    start: int = 0
    end: int = 1440
    time_zone: str = "UTC"


Recurrence: TypeAlias = Once | Weekly


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeWindow:
    """One window of a Cluster document."""

    kind: WindowKind
    when: Recurrence
    reason: str | None = None
    span: Span | None = field(default=None, compare=False)
