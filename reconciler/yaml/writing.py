"""Writes text as a YAML scalar that every reader of YAML 1.1 or 1.2 returns unchanged."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,200}|(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def scalar_text(text: str) -> str:
    """Plain when nothing can go wrong, else in double quotes; what does not print is an escape. One line, whatever the text."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_character(c) for c in text) + '"'


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
