"""``spec.freeze`` of a Cluster document: windows on the calendar."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Final

from reconciler.manifest.collector import Collector, items, scalar, text, texts
from reconciler.model import WEEKDAYS, FreezeWindow, Once, Recurrence, Weekly, WindowKind
from reconciler.text import shown
from reconciler.yaml import YamlMapping, YamlNode

_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]) ?- ?(?:([01][0-9]|2[0-3]):([0-5][0-9])|24:00)")
_ONCE: Final = ("from", "to")
_WEEKLY: Final = ("days", "hours", "timeZone")


def freeze_windows(spec: YamlMapping | None, out: Collector) -> tuple[FreezeWindow, ...]:
    """All windows that can be understood; whatever is wrong with the others is an error, so nothing is written without them."""
    return tuple(_windows(items(spec, "freeze"), out))


def _windows(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[FreezeWindow]:
    for node in nodes:
        if not isinstance(node, YamlMapping):
            continue
        when = _recurrence(node, out)
        if when is not None:
            kind = WindowKind.ALLOW if text(node, "kind") == WindowKind.ALLOW else WindowKind.DENY
            yield FreezeWindow(kind=kind, when=when, reason=text(node, "reason"), span=out.span(node))


def _recurrence(node: YamlMapping, out: Collector) -> Recurrence | None:
    once, weekly = (any(name in node.items for name in names) for names in (_ONCE, _WEEKLY))
    if once and weekly:
        out.add("invalid-freeze-window", "a window has from and to, or days, hours and timeZone, not both", node)
        return None
    if not once and not weekly:
        out.add("invalid-freeze-window", "a window needs from or to (once), or days (every week)", node)
        return None
    return _once(node, out) if once else _weekly(node, out)


def _once(node: YamlMapping, out: Collector) -> Once | None:
    moments: dict[str, datetime.datetime | None] = {}
    for name in _ONCE:
        written = scalar(node, name)
        moments[name] = None if written is None else _moment(written.text)
        if written is not None and moments[name] is None:
            example = "2026-12-23T18:00:00+01:00"
            message = f"{shown(written.text)} is not a moment with its offset from UTC, such as {example}"
            out.add("invalid-freeze-window", message, written)
            return None
    start, end = moments["from"], moments["to"]
    if start is not None and end is not None and start >= end:
        out.add("invalid-freeze-window", "the window ends before it begins", node)
        return None
    return Once(start=start, end=end)


def _moment(written: str) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(written)
        return moment.astimezone(datetime.UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _weekly(node: YamlMapping, out: Collector) -> Weekly | None:
    days = frozenset(WEEKDAYS.index(day) for day in texts(node, "days") if day in WEEKDAYS)
    if not days:
        out.add("invalid-freeze-window", "a weekly window needs days, such as [sat, sun]", node)
        return None
    start, end = 0, 1440
    hours = scalar(node, "hours")
    if hours is not None:
        match = _HOURS.fullmatch(hours.text)
        if match is None:
            out.add("invalid-freeze-window", f"{shown(hours.text)} are not hours such as 18:00-08:00 or 09:00-24:00", hours)
            return None
        start = int(match[1]) * 60 + int(match[2])
        end = 1440 if match[3] is None else int(match[3]) * 60 + int(match[4])
        if start == end:
            out.add("invalid-freeze-window", "the window ends when it begins; for whole days leave hours out", hours)
            return None
    zone = scalar(node, "timeZone")
    if zone is not None and not _known_zone(zone.text):
        message = f"there is no time zone {shown(zone.text)}; write a name of the IANA database, such as Europe/Berlin"
        out.add("invalid-freeze-window", message, zone)
        return None
    return Weekly(days=days, start=start, end=end, time_zone=zone.text if zone else "UTC")


def _known_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
