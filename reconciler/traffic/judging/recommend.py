"""A limit that this history would not have reached, rounded up to a value that a person would write."""

from __future__ import annotations

import decimal
import math
from typing import Final

from reconciler.formats import BINARY_UNITS
from reconciler.model import QuotaKey, ValueType

_STEPS: Final = ((2, 0.125), (8, 0.25), (16, 0.5), (64, 1.0), (128, 2.0), (256, 5.0), (512, 10.0), (1024, 25.0))
"""Below each bound, the step of values in one unit; all are whole numbers of bytes from KiB on. At most an eighth is added."""


def safe_byte_rate(peak: float) -> tuple[float, str]:
    """The smallest round value at or above a peak rate, as a number of bytes/s and as text for a manifest (``5.25MiB``).

    ``peak`` is the largest open-loop sampled rate: it does not depend on the limit, and a broker throttles only above the
    limit, so no request of the same history is throttled at any limit from there on. (A fetch limit can only lower what is
    charged.)
    """
    if peak <= 1024:
        whole = float(max(10, math.ceil(peak / 10) * 10))
        return (whole, f"{whole:g}B") if whole < 1024 else (1024.0, "1KiB")
    unit, size = next((u, s) for u, s in reversed(BINARY_UNITS.items()) if peak > s)
    mantissa = peak / size
    step = next((step for bound, step in _STEPS if mantissa < bound), 100.0)
    rounded = math.ceil(mantissa / step) * step
    if rounded >= 1024 and unit != "TiB":
        names = list(BINARY_UNITS)
        unit, rounded = names[names.index(unit) + 1], 1.0
        size *= 1024
    return rounded * size, f"{rounded:g}{unit}"


_DECIMAL_STEPS: Final = ((2, "0.1"), (4, "0.25"), (10, "0.5"))
"""Below each bound of the leading digits, the step of values; at most an eighth is added."""
_SUFFIX: Final = {QuotaKey.REQUEST_PERCENTAGE: "%"}


def safe_limit(key: QuotaKey, peak: float) -> tuple[float, str]:
    """The same for any key, ``peak`` in its unit: ``6%``, ``12.5`` partitions/s, whole connections/s."""
    if key.is_bytes:
        return safe_byte_rate(peak)
    exact = max(decimal.Decimal(repr(float(peak))), decimal.Decimal("0.01"))
    place = decimal.Decimal(10) ** exact.adjusted()
    step = next(decimal.Decimal(step) for bound, step in _DECIMAL_STEPS if exact < bound * place) * place
    if key.value_type is ValueType.INT:
        step = step.to_integral_value(rounding=decimal.ROUND_UP)
    number = float((exact / step).to_integral_value(rounding=decimal.ROUND_CEILING) * step)
    return number, f"{number:.12g}{_SUFFIX.get(key, '')}"
