"""Numbers as text: exact ones that read back, and quota values for people with their unit, byte rates rounded and exact."""

from __future__ import annotations

import math
from typing import Final

from reconciler.model import KNOWN_KEYS, QuotaKey

_BINARY: Final = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
_SUFFIX: Final = {
    QuotaKey.REQUEST_PERCENTAGE: " %",
    QuotaKey.CONTROLLER_MUTATION_RATE: " partitions/s",
    QuotaKey.CONNECTION_CREATION_RATE: " connections/s",
}
_EXACT_INTEGER: Final = float(2**63)


def number_to_json(value: float) -> int | float:
    """Whole numbers without a fraction (``1024``), others in shortest round-trip form (``12.5``)."""
    return int(value) if float(value).is_integer() and abs(value) <= _EXACT_INTEGER else value


def number_text(value: float) -> str:
    """Shortest text that reads back as the same double; the form used in digests. NaN and infinities as Java spells them."""
    if value != value:  # noqa: PLR0124 - the portable test for NaN
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return str(number_to_json(value))


def amount(key: str, value: float | None) -> str:
    """``20 MiB/s (20971520)``, ``200 %``; ``not set`` for an unset key. Keys that this tool does not know get the bare number."""
    if value is None:
        return "not set"
    if key not in KNOWN_KEYS:
        return number_text(value)
    known = QuotaKey(key)
    if not known.is_bytes:
        return number_text(value) + _SUFFIX[known]
    rounded = byte_rate(value)
    return rounded if value < 1024 or not math.isfinite(value) else f"{rounded} ({number_text(value)})"


def byte_rate(value: float) -> str:
    """``20 MiB/s``, rounded to four digits."""
    if not math.isfinite(value):
        return f"{number_text(value)} B/s"
    for size, unit in _BINARY:
        if value >= size:
            return f"{value / size:.4g} {unit}/s"
    return f"{value:.4g} B/s"


def rate(key: str, value: float) -> str:
    """A measured rate in the unit of a key, rounded to four digits: ``20 MiB/s``, ``35.2 %``."""
    known = QuotaKey(key)
    return byte_rate(value) if known.is_bytes else f"{value:.4g}{_SUFFIX[known]}"


def factor(before: float | None, after: float | None) -> str:
    """``x0.5`` when both sides are positive numbers, else nothing: a wrong unit is the mistake that reviewers must catch."""
    if before is None or after is None or not (0 < before < math.inf and 0 < after < math.inf):
        return ""
    return f"x{after / before:.3g}"
