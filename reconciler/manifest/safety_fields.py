"""What a Cluster manifest demands of a change: limits of guards, freeze windows, and guards that are accepted."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reconciler.formats import ChoiceShape, ListShape, NumberShape, RecordShape, TextShape
from reconciler.manifest.fields import SELECTOR
from reconciler.manifest.quota_values import parse_moment
from reconciler.manifest.reading import Collector
from reconciler.model import (
    WEEKDAYS,
    Acceptance,
    CountLimit,
    FreezeWindow,
    GuardLimits,
    Once,
    QuotaKey,
    ReductionLimit,
    VolumeLimit,
    Weekly,
    WindowKind,
)
from reconciler.yaml import YamlMapping, YamlScalar


def _volume(built_in: VolumeLimit, node: YamlMapping, out: Collector, **values: Any) -> VolumeLimit:
    return replace(built_in, **values, set_in=out.span(node))


GUARDS: Final = RecordShape(
    GuardLimits,
    "Limits of the guards. Those left out keep their built-in limits.",
    {
        "too-many-removals": RecordShape(
            partial(_volume, GuardLimits().too_many_removals),
            "How many entities may lose limits in one run. More than percent or more than count trips the guard.",
            {
                "percent": NumberShape("Percent of the entities in scope (default 10).", minimum=0, maximum=100),
                "count": NumberShape("Number of entities (default 5).", type="integer", minimum=0),
                "minimum": NumberShape(
                    "The percentage applies only while more entities than this are in scope (default 5).",
                    type="integer",
                    minimum=0,
                ),
            },
            min_properties=1,
        ),
        "too-many-changes": RecordShape(
            partial(_volume, GuardLimits().too_many_changes),
            "How many entities that the cluster has may change in one run, new ones not counted. More than percent and more than "
            "count trips the guard.",
            {
                "percent": NumberShape("Percent of the entities in scope (default 30).", minimum=0, maximum=100),
                "count": NumberShape("Number of entities (default 10).", type="integer", minimum=0),
            },
            min_properties=1,
        ),
        "large-reduction": RecordShape(
            ReductionLimit,
            "How far a value may fall in one run. Below its factor times the current value the guard trips.",
            {
                "factor": NumberShape(
                    "The smallest new value, as a share of the current one (default 0.5).", minimum=0, maximum=1
                ),
                "keys": RecordShape(
                    None,
                    "Other factors for some keys.",
                    {key.value: NumberShape(f"The factor for {key}.", minimum=0, maximum=1) for key in QuotaKey},
                    min_properties=1,
                ),
            },
            min_properties=1,
        ),
        "unknown-current-keys": RecordShape(
            CountLimit,
            "Declared entities on which the cluster has keys that this version does not know. They are never written. Without a "
            "count the guard only warns.",
            {"count": NumberShape("Number of such entities above which the guard trips.", type="integer", minimum=0)},
            required=("count",),
        ),
    },
)


def _moment(node: YamlScalar, out: Collector) -> datetime.datetime | None:
    moment = parse_moment(node.text)
    if moment is None and node.data is not None:
        words = "{written} is not a moment with its offset from UTC, such as 2026-12-23T18:00:00+01:00"
        out.add("invalid-freeze-window", words, node, written=node.text)
    return moment


_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]) ?- ?(?:([01][0-9]|2[0-3]):([0-5][0-9])|24:00)")


def _hours(node: YamlScalar, out: Collector) -> tuple[int, int] | None:
    """Minutes after midnight."""
    if node.data is None:
        return None
    match = _HOURS.fullmatch(node.text)
    if match is None:
        out.add("invalid-freeze-window", "{hours} are not hours such as 18:00-08:00 or 09:00-24:00", node, hours=node.text)
        return None
    start = int(match[1]) * 60 + int(match[2])
    end = 1440 if match[3] is None else int(match[3]) * 60 + int(match[4])
    if start == end:
        out.add("invalid-freeze-window", "the window ends when it begins. For whole days leave hours out", node)
        return None
    return start, end


def _zone(node: YamlScalar, out: Collector) -> str | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if node.data is None:
        return None
    try:
        ZoneInfo(node.text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        words = "{zone} is not a time zone. Write a name of the IANA database, such as Europe/Berlin"
        out.add("invalid-freeze-window", words, node, zone=node.text)
        return None
    return node.text


def _window(
    node: YamlMapping,
    out: Collector,
    *,
    kind: WindowKind = WindowKind.DENY,
    reason: str | None = None,
    days: tuple[int, ...] = (),
    hours: tuple[int, int] = (0, 1440),
    time_zone: str = "UTC",
    **moments: datetime.datetime,
) -> FreezeWindow | None:
    weekly = not node.items.keys().isdisjoint({"days", "hours", "timeZone"})
    start, end = moments.get("start"), moments.get("end")
    problem = ""
    if moments and weekly:
        problem = "a window has from and to, or days, hours and timeZone, not both"
    elif not moments and not weekly and node.items:
        problem = "a window needs from or to (once), or days (every week)"
    elif start is not None and end is not None and start >= end:
        problem = "the window ends before it begins"
    elif weekly and "days" not in node.items:
        problem = "a weekly window needs days, such as [sat, sun]"
    if problem:
        out.add("invalid-freeze-window", problem, node)
    if problem or not node.items or (weekly and not days):
        return None
    week = Weekly(days=frozenset(days), start=hours[0], end=hours[1], time_zone=time_zone)
    return FreezeWindow(kind=kind, when=week if weekly else Once(start=start, end=end), reason=reason, span=out.span(node))


REASON: Final = TextShape("The reason, for the user whose change is refused.")
FREEZE: Final = ListShape(
    RecordShape(
        _window,
        "Once, with from and to (either may be left open), or every week, with days.",
        {
            "kind": ChoiceShape(
                WindowKind,
                "deny: frozen inside this window (the default). allow: frozen outside all such windows.",
                default="deny",
            ),
            "from": TextShape("The beginning, as 2026-12-23T18:00:00+01:00. Left out: since ever.", parse=_moment),
            "to": TextShape("The end, which is outside of the window. Left out: until the window is taken out.", parse=_moment),
            "days": ListShape(
                ChoiceShape({day: number for number, day in enumerate(WEEKDAYS)}),
                "Weekdays on which the window begins.",
                min_items=1,
            ),
            "hours": TextShape(
                "Wall-clock times, as 18:00-08:00 (which ends on the next day) or 09:00-24:00. Left out: the whole day.",
                parse=_hours,
            ),
            "timeZone": TextShape("IANA name of the zone whose clocks count, such as Europe/Berlin (default UTC).", parse=_zone),
            "reason": REASON,
        },
        attributes={"from": "start", "to": "end"},
        min_properties=1,
    ),
    "When apply writes nothing unless guard freeze-window is accepted. Deny beats allow. Where there are allow windows, the "
    "cluster is frozen outside all of them.",
    examples=[
        [
            {"from": "2026-12-23T18:00:00+01:00", "to": "2027-01-04T08:00:00+01:00", "reason": "end of the year"},
            {"kind": "allow", "days": ["mon", "tue", "wed", "thu"], "hours": "09:00-16:00", "timeZone": "Europe/Berlin"},
        ]
    ],
)


def _day(node: YamlScalar, out: Collector) -> datetime.date | None:
    if node.data is None:
        return None
    try:
        return datetime.date.fromisoformat(node.text)
    except ValueError:
        out.add("invalid-date", "{until} is not a day written as YYYY-MM-DD", node, until=node.text)
        return None


DAY: Final = TextShape("The last day, as YYYY-MM-DD.", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", parse=_day)
ACCEPT: Final = ListShape(
    RecordShape(
        Acceptance,
        "A guard, a last day and a reason.",
        {
            "guard": TextShape("The id of the guard."),
            "match": SELECTOR,
            "until": DAY,
            "reason": TextShape("The reason, for later readers.", pattern=r"\S", type=("string", "number", "boolean")),
        },
        required=("guard", "until", "reason"),
    ),
    "Guards accepted here, each with a last day and a reason.",
)
