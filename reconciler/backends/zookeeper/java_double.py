"""Doubles as Java prints them: the text of ``Double.toString``, which is what brokers store for fractional quotas.

Source: the specification of ``Double.toString`` as of JDK 19. Older JDKs print some values with one digit more than needed
(JDK-4511638); the two texts are the same double.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

_LOWEST_PLAIN: Final = 1e-3
_LOWEST_SCIENTIFIC: Final = 1e7
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?", re.ASCII)
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf}
_BLANKS: Final = "".join(map(chr, range(33)))


def java_text(value: float) -> str:
    """``12.5``, ``1.0E-5``, ``NaN``, ``Infinity``."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    size = abs(value)
    if math.isinf(size):
        return f"{sign}Infinity"
    if size == 0:
        return f"{sign}0.0"
    digits, exponent = _decimal(size)
    if _LOWEST_PLAIN <= size < _LOWEST_SCIENTIFIC:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def parse_java(text: str) -> float | None:
    """What ``Double.parseDouble`` makes of a text; ``None`` where it throws."""
    text = text.strip(_BLANKS)
    bare = text.removeprefix("-")
    if bare in _NOT_FINITE:
        return math.copysign(_NOT_FINITE[bare], -1.0 if bare != text else 1.0)
    if text.removeprefix("+") in _NOT_FINITE:
        return _NOT_FINITE[text[1:]]
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if found := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    return None


def _decimal(size: float) -> tuple[str, int]:
    """The digits to print, without zeros at the end, and the power of ten of the first one."""
    number = Decimal(repr(size)).normalize()
    if len(number.as_tuple().digits) == 1:
        # Java prints two digits at least, so it takes the closest of two: 4.9E-324, where one digit would be 5E-324.
        closer = Decimal(f"{size:.1e}")
        number = closer.normalize() if float(closer) == size else number
    return "".join(map(str, number.as_tuple().digits)), number.adjusted()


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"
