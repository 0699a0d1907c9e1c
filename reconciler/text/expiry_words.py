"""Values that expire, in the words of every output."""

from __future__ import annotations

import datetime

from reconciler.model import ValueExpiry
from reconciler.text.amounts import amount


def moment_text(moment: datetime.datetime) -> str:
    """``2026-12-01`` for the start of a day in UTC, ``2026-12-01 17:00 UTC`` for another moment."""
    moment = moment.astimezone(datetime.UTC)
    if moment.time() == datetime.time():
        return f"{moment:%Y-%m-%d}"
    return f"{moment:%Y-%m-%d %H:%M} UTC" if not moment.second else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def expiry_text(key: str, expiry: ValueExpiry) -> str:
    """``until 2026-12-01: then 10 MiB/s``, ``expired on 2026-12-01: was 20 MiB/s``."""
    when = moment_text(expiry.at)
    if expiry.expired:
        return f"expired on {when}" if expiry.other is None else f"expired on {when}: was {amount(key, expiry.other)}"
    return live_expiry_text(key, expiry)


def live_expiry_text(key: str, expiry: ValueExpiry) -> str:
    """The same for the value that is there for a while: ``expired on 2026-12-01 and was not taken back yet``."""
    when = moment_text(expiry.at)
    if expiry.expired:
        return f"expired on {when} and was not taken back yet"
    return f"until {when}: then {'no value of its own' if expiry.other is None else amount(key, expiry.other)}"
