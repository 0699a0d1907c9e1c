"""When a log line was written: every layout of the time before the message, in whatever zone, to microseconds."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Final, NamedTuple

from reconciler.errors import UsageError

_COMMON_LENGTH: Final = 23
"""Of ``2026-11-21 13:00:00,123``, which nearly every log has, in brackets at the very start."""
_SECONDS: Final = slice(1, 20)
_SECONDS_KEPT: Final = 1 << 12
_DATE: Final = re.compile(rb"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,6})\d*)? ?(?:([+-]\d{2}):?(\d{2})|(Z))?")
_COMMON: Final = re.compile(rb"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def check_zone(name: str, option: str = "--log-timezone") -> str:
    """The name of a zone that there is. Raises ``UsageError``, which blames ``option``."""
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise UsageError(f"{option} {name}: no such time zone: write a name such as UTC or Europe/Berlin") from error
    return name


class Moment(NamedTuple):
    """``micros``: since 1970. ``unclear``: the local time occurs twice or never, because the clocks were changed."""

    micros: int
    unclear: bool = False


class LineClock:
    """Reads the times of lines; local times are of one zone. Each second of the usual layout is read once."""

    def __init__(self, zone: str) -> None:
        self._zone = zoneinfo.ZoneInfo(zone)
        self._seconds: dict[bytes, Moment | None] = {}

    def read(self, raw: bytes, end: int) -> Moment | None:
        """The moment of a line whose message begins at ``end``; ``None`` without a time or a day of the calendar."""
        if end > _COMMON_LENGTH + 1 and raw.startswith(b"[") and raw.startswith(b",", 20) and raw.startswith(b"]", 24):
            milliseconds = raw[21:24]
            if milliseconds.isdigit():
                second = raw[_SECONDS]
                moment = self._seconds[second] if second in self._seconds else self._read_second(second)
                return moment and Moment(moment.micros + int(milliseconds) * 1000, moment.unclear)
        return self._any_layout(raw[:end])

    def _read_second(self, second: bytes) -> Moment | None:
        if len(self._seconds) >= _SECONDS_KEPT:
            self._seconds.clear()
        moment = self._seconds[second] = self._common(second)
        return moment

    def _common(self, second: bytes) -> Moment | None:
        return self._any_layout(second) if _COMMON.fullmatch(second) else None

    def _any_layout(self, head: bytes) -> Moment | None:
        match = _DATE.search(head)
        if not match:
            return None
        day, clock, fraction, hours, minutes, zulu = (part.decode("ascii") if part else "" for part in match.groups())
        try:
            wall = datetime.datetime.fromisoformat(f"{day} {clock}.{fraction.ljust(6, '0')}")
            if zulu:
                return Moment(_micros(wall.replace(tzinfo=datetime.UTC)))
            if hours:
                return Moment(_micros(datetime.datetime.fromisoformat(f"{wall.isoformat()}{hours}:{minutes}")))
            local = wall.replace(tzinfo=self._zone)
            return Moment(_micros(local), unclear=local.utcoffset() != local.replace(fold=1).utcoffset())
        except (ValueError, OverflowError):
            return None


def _micros(moment: datetime.datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
