"""What somebody who wrote a value that is not in the grammar most likely meant."""

from __future__ import annotations

import re
from typing import Final

_SPELLINGS: Final = {
    "b": "B",
    "byte": "B",
    "bytes": "B",
    "bps": "B/s",
    "k": "KB or KiB",
    "m": "MB or MiB",
    "g": "GB or GiB",
    "t": "TB or TiB",
    "ki": "KiB",
    "mi": "MiB",
    "gi": "GiB",
    "ti": "TiB",
    "kbps": "KB/s",
    "mbps": "MB/s",
    "gbps": "GB/s",
    "tbps": "TB/s",
}
_BITS: Final = frozenset({"Kb", "kb", "Mb", "Gb", "Tb", "Kbps", "kbps", "Mbps", "Gbps", "Tbps"})
_NO_LIMIT: Final = frozenset(
    {"unlimited", "infinite", "infinity", "inf", "none", "nolimit", "no limit", "max", "nan", ".inf", ".nan", "off"}
)
_LEAVE_OUT: Final = "to set no limit, leave the key out"
_GRAMMAR: Final = "write a number such as 20, 0.5 or 1e6"
_SHAPES: Final = (
    (re.compile(r"-.*"), "value-not-positive", f"a limit is above 0; {_LEAVE_OUT}"),
    (re.compile(r"\+.*"), "value-syntax", "write it without the sign"),
    (re.compile(r"0[xX].*"), "value-syntax", "write it as a decimal number"),
    (re.compile(r"0[oO]?[0-9].*"), "value-syntax", "write it without the leading zero"),
    (re.compile(r"[0-9][0-9,.' ]*[,'_][0-9].*|[0-9]+_.*"), "value-syntax", "write the digits without separators"),
    (re.compile(r"[0-9]+(:[0-9]+)+"), "value-syntax", "write it as a decimal number"),
    (re.compile(r"\.[0-9].*"), "value-syntax", "write a zero before the point"),
    (re.compile(r"[0-9]+\..*"), "value-syntax", "write digits after the point"),
    (re.compile(r"\s.*|.*\s", re.DOTALL), "value-syntax", "write it without blanks around it"),
    (re.compile(r"[0-9.]+(?:[eE][0-9]+)?\s{2,}\S+|[0-9.]+\t\S+"), "value-syntax", "write at most one blank before the unit"),
)


def unit_hint(text: str, unit: str) -> str:
    """A suggestion for a unit that is not one of a byte rate's."""
    per_second = "/s" if unit.lower().endswith(("/s", "/sec", "ps")) else ""
    bare = re.sub(r"(/s|/sec|/second)$", "", unit, flags=re.IGNORECASE)
    guess = _SPELLINGS.get(bare.lower()) or _cased(bare)
    if guess is None:
        return "the units are B KB MB GB TB (powers of 1000) and KiB MiB GiB TiB (powers of 1024)"
    number = text[: len(text) - len(unit)].strip()
    choices = " or ".join(f"{number}{one.removesuffix('/s')}{per_second}" for one in guess.split(" or "))
    bits = " (a small b would be bits, and Kafka counts bytes)" if bare in _BITS else ""
    return f"did you mean {choices}?{bits}"


def _cased(unit: str) -> str | None:
    known = {one.lower(): one for one in ("KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")}
    return known.get(unit.lower())


def syntax_hint(text: str, *, is_bytes: bool) -> tuple[str, str]:
    """A finding id and a suggestion for text that is no value at all."""
    if text.strip().lower() in _NO_LIMIT:
        return "value-not-finite", f"a limit is a number; {_LEAVE_OUT}"
    for shape, problem_id, hint in _SHAPES:
        if shape.fullmatch(text):
            return problem_id, hint
    return "value-syntax", f"{_GRAMMAR}{', or with a unit such as 10MiB' if is_bytes else ''}"
