"""The grammar of quota values: text with units into the number that a broker has, and back. All arithmetic is exact.

The grammar: decimal digits with optional fraction and exponent, an optional blank, an optional unit. Units are ``B KB MB GB TB``
(powers of 1000) and ``KiB MiB GiB TiB`` (powers of 1024), with an optional ``/s``, for byte rates, and ``%`` for the percentage.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from reconciler.model import INT_MAX, LONG_MAX, QuotaKey, ValueType, compose
from reconciler.text import number_text, shown_part

DECIMAL_UNITS: Final = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
BINARY_UNITS: Final = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_UNITS: Final = DECIMAL_UNITS | BINARY_UNITS
_RATES: Final = _UNITS | {f"{unit}/s": size for unit, size in _UNITS.items()}
_SIZES: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: _RATES, QuotaKey.CONSUMER_BYTE_RATE: _RATES, QuotaKey.REQUEST_PERCENTAGE: {"%": 1},
}  # fmt: skip
"""Of the keys that take units, what a number with each is multiplied by."""

_VALUE: Final = re.compile(
    r"(?P<whole>0|[1-9][0-9]*)(?:\.(?P<fraction>[0-9]+))?(?:[eE](?P<exponent>[+-]?[0-9]+))?"
    r"(?P<blank> ?)(?P<unit>[A-Za-z%][A-Za-z/%]*)?"
)
_LONGEST: Final = 400
_LARGEST_EXPONENT: Final = 1000
_LARGEST: Final = {ValueType.LONG: LONG_MAX, ValueType.INT: INT_MAX, ValueType.DOUBLE: int(math.ldexp(1.0 - 2.0**-53, 1024))}


class ValueRefusedError(ValueError):
    """A value that cannot be declared. ``id`` is a finding id; the text states why and what to write."""

    def __init__(self, problem_id: str, message: str) -> None:
        super().__init__(message)
        self.id = problem_id


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenValue:
    """A value of a manifest: the number that a broker has (per broker, in the key's own unit), and the text as written."""

    number: float
    text: str


def no_limit_advice(key: QuotaKey) -> str:
    """Return the advice on "no limit", which Kafka has no value for."""
    example = value_text(key, key.unreachable)
    return (
        "Without the key, the next weaker precedence level decides, such as a default. To exempt from that, write "
        f"{example}, which no client reaches"
    )


@lru_cache(maxsize=65536)
def parse_value(key: QuotaKey, text: str) -> WrittenValue:
    """The value of one key.

    Raises ``ValueRefusedError``: not in the grammar, a unit of another key, not positive, not finite, a fraction for an integer
    key, above the key's type, or a number beyond a double. For the two keys that are doubles a decimal is accepted when
    it is the shortest text of its double (``0.1``): it is then printed by everyone as it was written.
    """
    match = _VALUE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise _not_in_grammar(key, text)
    unit = match["unit"] or ""
    if match["blank"] and not unit:
        raise ValueRefusedError(
            "value-syntax",
            compose("{text} ends in a blank. Write {stripped}", text=shown_part(text), stripped=shown_part(text.strip())),
        )
    factor = _factor(key, text, unit)
    exponent = int(match["exponent"] or "0")
    if abs(exponent) > _LARGEST_EXPONENT:
        raise _out_of_range(key, text) if exponent > 0 else _inexact(text, None)
    exact: int | Fraction = int(match["whole"]) * factor
    if exponent or match["fraction"]:
        digits = match["whole"] + (match["fraction"] or "")
        exact = int(digits) * factor * Fraction(10) ** (exponent - len(match["fraction"] or ""))
    return WrittenValue(number=_checked(key, text, exact), text=text)


def _factor(key: QuotaKey, text: str, unit: str) -> int:
    size = _SIZES.get(key, {}).get(unit) if unit else 1
    if size is not None:
        return size
    if key.is_bytes:
        words = "the unit of {text} is not known. {hint}"
        raise ValueRefusedError("unknown-unit", compose(words, text=shown_part(text), hint=_unit_hint(text, unit)))
    wanted = "Write the number alone, or with %" if key is QuotaKey.REQUEST_PERCENTAGE else "Write the number alone"
    raise ValueRefusedError(
        "unknown-unit",
        compose(
            "{text}: {key} is in {unit_of_key} and takes no unit {unit}. {wanted}",
            text=shown_part(text),
            key=key,
            unit_of_key=key.unit,
            unit=shown_part(unit),
            wanted=wanted,
        ),
    )


def _checked(key: QuotaKey, text: str, exact: int | Fraction) -> float:
    if exact == 0:
        message = compose(
            "{text}: Kafka refuses 0, and older versions read it in several ways. A limit is above 0. {advice}",
            text=shown_part(text),
            advice=no_limit_advice(key),
        )
        raise ValueRefusedError("value-not-positive", message)
    integer = key.value_type is not ValueType.DOUBLE
    if integer and exact.denominator != 1:
        nearest = max(1, round(exact))
        message = compose(
            "{text} is {decimal_exact} {unit_of_key}, and {key} takes whole numbers only. The nearest is {nearest}",
            text=shown_part(text),
            decimal_exact=number_text(float(exact)),
            unit_of_key=key.unit,
            key=key,
            nearest=nearest,
        )
        raise ValueRefusedError("value-fractional", message)
    if exact > _LARGEST[key.value_type]:
        raise _out_of_range(key, text)
    number = float(exact)
    if number == 0.0:
        raise _inexact(text, None)
    if number != exact and (integer or Fraction(repr(number)) != exact):
        raise _inexact(text, number)
    return number


def _out_of_range(key: QuotaKey, text: str) -> ValueRefusedError:
    most = number_text(float(_LARGEST[key.value_type]))
    return ValueRefusedError(
        "value-too-large",
        compose(
            "{text} is above the largest value of {key} ({most}). {advice}",
            text=shown_part(text),
            key=key,
            most=most,
            advice=no_limit_advice(key),
        ),
    )


def _inexact(text: str, number: float | None) -> ValueRefusedError:
    held = f"The nearest that it can is {number_text(number)}" if number else "The value is too small"
    message = compose(
        "{text} is a number that Kafka (a 64-bit float) cannot keep exactly. {held}", text=shown_part(text), held=held
    )
    return ValueRefusedError("value-not-exact", message)


def _not_in_grammar(key: QuotaKey, text: str) -> ValueRefusedError:
    problem_id, hint = _syntax_hint(key, text)
    words = "{text} is not a value for {key}. {hint}"
    return ValueRefusedError(problem_id, compose(words, text=shown_part(text), key=key, hint=hint))


@lru_cache(maxsize=65536)
def declarable(key: QuotaKey, number: float) -> bool:
    """True when a manifest can declare this value: finite, positive, whole for an integer key, and within the key's type."""
    if not math.isfinite(number) or number <= 0 or number > _LARGEST[key.value_type]:
        return False
    return key.value_type is ValueType.DOUBLE or number.is_integer()


@lru_cache(maxsize=65536)
def value_text(key: QuotaKey, number: float) -> str:
    """The shortest text for people that ``parse_value`` reads as exactly this number: ``10MiB``, ``1500B``, ``12.5``.

    Raises ``ValueError`` when the value cannot be declared at all.
    """
    if not declarable(key, number):
        msg = f"{number_text(number)} cannot be declared for {key}"
        raise ValueError(msg)
    if not key.is_bytes:
        return number_text(number)
    whole = int(number)
    fitting = [(whole // size, unit) for unit, size in _UNITS.items() if whole % size == 0]
    count, unit = min(fitting, key=lambda pair: (pair[0], pair[1] not in BINARY_UNITS))
    return f"{count}{unit}"


def value_like(key: QuotaKey, number: float, like: str) -> str:
    """A value in the largest unit that has a short text, with the ``/s`` or ``%`` of the text that it replaces.

    Raises ``ValueError`` as ``value_text`` does.
    """
    text = value_text(key, number)
    if key.is_bytes:
        units = [f"{number / size:g}{unit}" for unit, size in BINARY_UNITS.items() if number >= size]
        text = next((each for each in reversed(units) if parse_value(key, each).number == number), text)
    ending = next((end for end in ("/s", "%") if like.endswith(end)), "")
    return text + ending if text[-1:] != ending else text


_NO_LIMIT: Final = frozenset({"unlimited", "infinity", "inf", "none", "no limit", "max", "nan", ".inf", ".nan", "off"})


def _unit_hint(text: str, unit: str) -> str:
    """A suggestion for a unit in other capitals or without its byte: ``Mb``, ``M``, ``mib``, ``MBps``."""
    bare = unit.lower().removesuffix("/s").removesuffix("ps")
    per_second = "" if bare == unit.lower() else "/s"
    meant = [known for known in _UNITS if known.lower() in (bare, f"{bare}b", f"{bare}ib")]
    if not meant:
        return "The units are B KB MB GB TB (powers of 1000) and KiB MiB GiB TiB (powers of 1024)"
    number = text.removesuffix(unit).strip()
    return f"Did you mean {' or '.join(f'{number}{known}{per_second}' for known in meant)}?"


def _syntax_hint(key: QuotaKey, text: str) -> tuple[str, str]:
    """A finding id and a suggestion for text that is not a value at all."""
    if text.strip().lower() in _NO_LIMIT:
        return "value-not-finite", f"A limit is a number. {no_limit_advice(key)}"
    if text.startswith("-"):
        return "value-not-positive", f"A limit is above 0. {no_limit_advice(key)}"
    unit = ", or with a unit such as 10MiB" if key.is_bytes else ""
    return "value-syntax", f"Write a number such as 20, 0.5 or 1e6, without sign, separators and leading zeros{unit}"
