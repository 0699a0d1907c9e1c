"""Moments in manifests: a date, or a time with its offset from UTC."""

from __future__ import annotations

import datetime
import re
from typing import Final

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_moment(written: str) -> datetime.datetime | None:
    """A time with its offset, in UTC. ``None`` for anything else, and without an offset."""
    try:
        moment = datetime.datetime.fromisoformat(written)
        return moment.astimezone(datetime.UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def parse_date(written: str) -> datetime.datetime | None:
    """The start of a day in UTC. ``None`` for anything else."""
    try:
        return datetime.datetime.fromisoformat(f"{written}T00:00:00+00:00") if _DATE.fullmatch(written) else None
    except ValueError:
        return None


def lacks_zone(written: str) -> bool:
    """True for a date with a time of day and without an offset from UTC."""
    try:
        return ":" in written and datetime.datetime.fromisoformat(written).tzinfo is None
    except ValueError:
        return False
