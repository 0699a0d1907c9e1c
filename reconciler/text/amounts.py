"""Numbers as text: exact ones that read back, and quota values for people with their unit, byte rates rounded and exact."""

from __future__ import annotations

import datetime
import math
from typing import Final

from reconciler.model import KNOWN_KEYS, MessagePart, PartKind, QuotaKey, ValueExpiry

_BINARY: Final = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
_SUFFIX: Final = {
    QuotaKey.REQUEST_PERCENTAGE: " %",
    QuotaKey.CONTROLLER_MUTATION_RATE: " partitions/s",
    QuotaKey.CONNECTION_CREATION_RATE: " connections/s",
}
_DURATIONS: Final = ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h"))
_EXACT_INTEGER: Final = float(2**63)


def number_to_json(value: float) -> int | float:
    """Whole numbers without a fraction (``1024``), others in shortest round-trip form (``12.5``)."""
    return int(value) if float(value).is_integer() and abs(value) <= _EXACT_INTEGER else value


def number_text(value: float | None) -> str:
    """Shortest text that reads back as the same double; the form used in digests. NaN and infinities as Java spells them."""
    if value is None:
        return "not set"
    if math.isfinite(value):
        return str(number_to_json(value))
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def amount(key: str, value: float | None) -> str:
    """``20 MiB/s``, ``200 %``; ``not set`` for an unset key. Keys that this tool does not know get the bare number.

    Where the unit is not exact, the exact number follows: ``9.537 MiB/s (10,000,000 B/s)``.
    """
    if value is None:
        return "not set"
    if key not in KNOWN_KEYS:
        return number_text(value)
    known = QuotaKey(key)
    if not known.is_bytes:
        return number_text(value) + _SUFFIX[known]
    if not math.isfinite(value):
        return byte_rate(value)
    size, unit = _scale(value)
    rounded = f"{value / size:.4g}"
    if float(rounded) * size == value:
        return f"{rounded} {unit}/s"
    exact = number_to_json(value)
    return f"{rounded} {unit}/s ({exact:,} B/s)" if size > 1 else f"{exact:,} B/s"


def amount_part(key: str, value: float | None) -> MessagePart:
    """A quota value as a part of a message: text in the unit of its key, and the exact number."""
    return MessagePart(kind=PartKind.AMOUNT, text=amount(key, value), value=value)


def rate_part(key: str, value: float) -> MessagePart:
    """A measured rate as a part of a message."""
    return MessagePart(kind=PartKind.AMOUNT, text=rate(key, value), value=value)


def bound_text(key: str, value: float, *, up: bool | None) -> str:
    """A measured rate in three digits. ``up``: rounded up or down, so that a bound stays one; ``None``: to the nearest."""
    size = _scale(value)[0] if QuotaKey(key).is_bytes and math.isfinite(value) else 1
    number = value / size
    if not (number > 0 and math.isfinite(number)) or up is None:
        return rate(key, float(f"{number:.3g}") * size)
    step = 10.0 ** (math.floor(math.log10(number)) - 2)
    steps = math.ceil(number / step - 1e-9) if up else math.floor(number / step + 1e-9)
    return rate(key, steps * step * size)


def byte_rate(value: float) -> str:
    """``20 MiB/s``, rounded to four digits."""
    if not math.isfinite(value):
        return f"{number_text(value)} B/s"
    size, unit = _scale(value)
    return f"{value / size:.4g} {unit}/s"


def _scale(value: float) -> tuple[int, str]:
    return next(((size, unit) for size, unit in _BINARY if value >= size), (1, "B"))


def progress_amount(done: float, total: float | None, unit: str) -> str:
    """``14.2 of 23.3 GiB``, ``412 of 1,980 quota groups``, ``24.4 million rows``. ``unit``: a plural; bytes without it."""
    largest, size = done if total is None else total, 1
    if not unit:
        size, unit = _scale(largest)
    elif largest >= 10_000_000:
        size, unit = 1_000_000, f"million {unit}"
    numbers = [f"{value / size:,.{int(size > 1)}f}" for value in (done, total) if value is not None]
    return f"{' of '.join(numbers)} {unit}"


def rate(key: str, value: float) -> str:
    """A measured rate in the unit of a key, rounded to four digits: ``20 MiB/s``, ``35.2 %``."""
    known = QuotaKey(key)
    if known.is_bytes:
        return byte_rate(value)
    number = f"{value:,.0f}" if 10_000 <= value < 1e15 else f"{value:.4g}"
    return f"{number}{_SUFFIX[known]}"


def factor(before: float | None, after: float | None) -> str:
    """``x0.5`` when both sides are positive numbers, else nothing: a wrong unit is the mistake that reviewers must catch."""
    if before is None or after is None or not (0 < before < math.inf and 0 < after < math.inf):
        return ""
    return f"x{after / before:.3g}"


def percent_text(share: float, *, digits: int = 1) -> str:
    """``57 %``, ``0.8 %``, ``0.01 %``. Neither hardly anything nor hardly all is rounded to nothing or all.

    ``digits``: how many a share below one percent has.
    """
    percent = 100 * share
    if 0 < percent < 0.01:
        return "< 0.01 %"
    if 99.5 <= percent < 100:
        return "> 99 %"
    return f"{percent:.0f} %" if percent >= 10 or not percent else f"{percent:.{digits if percent < 1 else 2}g} %"


def duration(seconds: float) -> str:
    """``8 s``, ``47 min``, ``6.8 h``, ``3.1 days``: rounded for people; under a second ``0.4 s``."""
    if seconds < 0.95:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "0 s"
    for limit, size, unit in _DURATIONS:
        if seconds < limit:
            value = seconds / size
            return (
                f"{value:.1f} {unit}" if value < 9.95 and size > 60 and not float(value).is_integer() else f"{value:.0f} {unit}"
            )
    return f"{seconds / 86_400:.1f} days"


def length_text(seconds: float) -> str:
    """``23 h 59 min 58 s``, ``6 days 23 h 59 min``, ``30 min``: never rounded up, so that it can stand beside a length needed."""
    if seconds < 1:
        return duration(seconds)
    # A length that was divided and multiplied again may be short of a whole number by the last bit.
    whole = int(seconds + 1e-6)
    days, rest = divmod(whole, 86_400) if whole >= 172_800 else (0, whole)
    parts = [(days, "days"), (rest // 3_600, "h"), (rest % 3_600 // 60, "min"), (0 if days else rest % 60, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def short_date(moment: datetime.datetime) -> str:
    """``20 Nov``, whatever the locale."""
    return f"{moment.day} {_MONTHS[moment.month - 1]}"


def short_moment(moment: datetime.datetime) -> str:
    """``20 Nov 11:20``."""
    return f"{short_date(moment)} {moment:%H:%M}"


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
