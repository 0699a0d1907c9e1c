"""Freeze windows on the calendar of their time zones: whether a cluster is frozen at a moment, and until when.

A weekly window is from one wall-clock time to another. Where clocks change, a wall-clock time may come twice or never; both
readings are then taken, and the one that freezes longer counts: in doubt nothing is written.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.model import FreezeWindow, Once, Weekly, WindowKind, compose, name_part
from reconciler.policy.guard_context import GuardContext, Measurement

_DAY: Final = datetime.timedelta(days=1)
_FAR: Final = datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC)
"""Far enough: dates near the calendar's end cannot be calculated with, and mean "for ever"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A cluster that is frozen. ``window`` is the one that denies, or ``None`` when no window allows.

    ``until`` is the first moment at which it is not (UTC); ``None`` when there is none.
    """

    window: FreezeWindow | None
    until: datetime.datetime | None


def freeze_at(windows: Sequence[FreezeWindow], now: datetime.datetime) -> Freeze | None:
    """The freeze in effect at a moment (with time zone), or ``None``. Deny beats allow; the end of a window is outside of it."""
    if not _frozen(windows, now):
        return None
    denying = (w for w in windows if w.kind is WindowKind.DENY and _contains(w, now))
    return Freeze(window=next(denying, None), until=_thawed(windows, now))


def _frozen(windows: Sequence[FreezeWindow], moment: datetime.datetime) -> bool:
    if any(w.kind is WindowKind.DENY and _contains(w, moment) for w in windows):
        return True
    allowing = [w for w in windows if w.kind is WindowKind.ALLOW]
    return bool(allowing) and not any(_contains(w, moment) for w in allowing)


def _thawed(windows: Sequence[FreezeWindow], now: datetime.datetime) -> datetime.datetime | None:
    """Whether it is frozen changes only where a window begins or ends, so only those moments are looked at.

    Two weeks after the last single event every week is like the one before.
    """
    single = [edge for w in windows if isinstance(w.when, Once) for edge in (w.when.start, w.when.end) if edge is not None]
    last = min(max([now, *single]), _FAR) + 15 * _DAY
    moment = now
    while moment <= last:
        ends = [w.when.end for w in windows if w.kind is WindowKind.DENY and isinstance(w.when, Once) and _contains(w, moment)]
        later = [edge for window in windows for edge in _edges(window, moment) if edge > moment]
        if None in ends or not later:
            return None
        moment = max(e for e in ends if e is not None) if ends else min(later)
        if moment < _FAR and not _frozen(windows, moment):
            return moment.astimezone(datetime.UTC)
    return None


def _contains(window: FreezeWindow, moment: datetime.datetime) -> bool:
    when = window.when
    if isinstance(when, Once):
        return (when.start is None or when.start <= moment) and (when.end is None or moment < when.end)
    return any(start <= moment < end for start, end in _occurrences(window.kind, when, moment))


def _edges(window: FreezeWindow, moment: datetime.datetime) -> Iterator[datetime.datetime]:
    when = window.when
    if isinstance(when, Once):
        yield from (edge for edge in (when.start, when.end) if edge is not None)
    else:
        for start, end in _occurrences(window.kind, when, moment):
            if start < end:
                yield from (start, end)


def _occurrences(
    kind: WindowKind, weekly: Weekly, moment: datetime.datetime
) -> Iterator[tuple[datetime.datetime, datetime.datetime]]:
    """Those that begin from two days before a moment to eight days after it, in UTC."""
    today = moment.astimezone(_zone(weekly.time_zone)).date()
    for offset in range(-2, 9):
        day = today + offset * _DAY
        if day.weekday() in weekly.days:
            yield _occurrence(kind, weekly, day)


@lru_cache(maxsize=4096)
def _occurrence(kind: WindowKind, weekly: Weekly, day: datetime.date) -> tuple[datetime.datetime, datetime.datetime]:
    length = weekly.end if weekly.end > weekly.start else weekly.end + 1440
    starts, ends = (_readings(day, minutes, _zone(weekly.time_zone)) for minutes in (weekly.start, length))
    return (min(starts), max(ends)) if kind is WindowKind.DENY else (max(starts), min(ends))


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _readings(day: datetime.date, minutes: int, zone: ZoneInfo) -> tuple[datetime.datetime, datetime.datetime]:
    """A wall-clock time, minutes after a day's midnight, as it may be read where clocks change (elsewhere twice the same)."""
    wall = datetime.datetime.combine(day, datetime.time()) + datetime.timedelta(minutes=minutes)
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
    return first, second


FREEZE_WINDOW: Final = "freeze-window"
"""Its id; a refusal by it alone passes with time."""


def freeze_window(context: GuardContext) -> Measurement:
    """Any change while the cluster is frozen. A plan only reports it, and ``apply`` refuses."""
    windows = context.spec.safety.freeze
    frozen = freeze_at(windows, context.now) if windows and context.changes else None
    if frozen is None:
        measured = "not frozen" if context.changes else "no change"
        return Measurement(entities=(), measured=measured, limit="no change while frozen", why=compose(""))
    until = f"until {_utc(frozen.until)}" if frozen.until else "without end"
    if frozen.window is None:
        why = compose("The cluster is frozen {until}. Changes are allowed in its allow windows only.", until=until)
    elif frozen.window.reason:
        why = compose("The cluster is frozen {until}: {reason}.", until=until, reason=name_part(frozen.window.reason))
    else:
        why = compose("The cluster is frozen {until}.", until=until)
    return Measurement(
        entities=tuple(c.entity for c in context.changes),
        measured=f"frozen {until}",
        limit="no change while frozen",
        why=why,
        set_in=(frozen.window.span if frozen.window else None) or context.spec.place("freeze"),
    )


def _utc(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
