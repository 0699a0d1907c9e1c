"""When a log line was written: every layout of the time before the message, in whatever zone, to microseconds."""

from __future__ import annotations

import datetime
import functools
import zoneinfo
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from reconciler.errors import UsageError

_COMMON_LENGTH: Final = 23
"""Of ``2026-11-21 13:00:00,123``, which nearly every log has, in brackets at the very start."""
_DATE: Final = r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,6})\d*)? ?(?:([+-]\d{2}):?(\d{2})|(Z))?"
_FIRST_YEAR, _LAST_YEAR = 2011, 2041
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_DAY: Final = datetime.timedelta(days=1)


def checked_zone(name: str, option: str = "--log-timezone") -> str:
    """The name of a zone that there is. Raises ``UsageError``, which blames ``option``."""
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise UsageError(f"{option} {name}: no such time zone; write a name such as UTC or Europe/Berlin") from error
    return name


def line_micros(head: Column, zone: str) -> Column:
    """Microseconds since 1970, of the text before the message; null where there is no time, or no such day."""
    local = F.concat(F.substring(head, 2, 10), F.lit(" "), F.substring(head, 13, 8), F.lit("."), F.substring(head, 22, 3))
    quick = F.concat(local, F.lit(_suffix(zone)))
    return F.when(_is_common(head), F.unix_micros(quick.try_cast("timestamp"))).otherwise(_any_layout(head, zone))


def is_unclear(head: Column, zone: str) -> Column:
    """Whether the local time of a line is one that its zone has twice, or never; false for a time with an offset."""
    turns = clock_turns(zone)
    if not turns:
        return F.lit(False)
    wall = F.unix_micros(F.concat(_local_text(head), F.lit("Z")).try_cast("timestamp"))
    hit = F.lit(False)
    for begin, end in turns:
        hit |= (wall >= begin) & (wall < end)
    has_offset = ~_is_common(head) & (F.concat(*(F.regexp_extract(head, _DATE, group) for group in (4, 6))) != "")
    return F.coalesce(hit & ~has_offset, F.lit(False))


@functools.cache
def clock_turns(zone: str) -> tuple[tuple[int, int], ...]:
    """The spans of local time that are there twice or never, as microseconds of the wall clock, end excluded.

    For the years 2011 to 2040.
    """
    info = zoneinfo.ZoneInfo(zone)
    moment, last = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (_FIRST_YEAR, _LAST_YEAR))
    found = []
    while moment < last:
        before, after = _offset(info, moment), _offset(info, moment + _DAY)
        if before != after:
            turn = _turn(info, moment)
            begin, end = sorted((turn + before, turn + after))
            found.append(((begin - _EPOCH) // _MICROSECOND, (end - _EPOCH) // _MICROSECOND))
        moment += _DAY
    return tuple(found)


def _turn(info: zoneinfo.ZoneInfo, begin: datetime.datetime) -> datetime.datetime:
    """The second of a day from which on the offset is another one."""
    low, high, before = 0, int(_DAY.total_seconds()), _offset(info, begin)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(info, begin + datetime.timedelta(seconds=middle)) == before else (low, middle)
    return begin + datetime.timedelta(seconds=high)


def _offset(info: zoneinfo.ZoneInfo, moment: datetime.datetime) -> datetime.timedelta:
    return moment.astimezone(info).utcoffset() or datetime.timedelta()


def _suffix(zone: str) -> str:
    return "Z" if zone == "UTC" else f" {zone}"


def _is_common(head: Column) -> Column:
    bracketed = (F.substring(head, 1, 1) == "[") & (F.substring(head, _COMMON_LENGTH + 2, 1) == "]")
    return bracketed & (F.substring(head, 21, 1) == ",")


def _local_text(head: Column) -> Column:
    day, clock, fraction = (F.regexp_extract(head, _DATE, group) for group in range(1, 4))
    return F.concat(day, F.lit(" "), clock, F.lit("."), F.rpad(fraction, 6, "0"))


def _any_layout(head: Column, zone: str) -> Column:
    hours, minutes, zulu = (F.regexp_extract(head, _DATE, group) for group in range(4, 7))
    offset = (
        F.when(hours != "", F.concat(hours, F.lit(":"), minutes)).when(zulu != "", F.lit("Z")).otherwise(F.lit(_suffix(zone)))
    )
    return F.unix_micros(F.concat(_local_text(head), offset).try_cast("timestamp"))
