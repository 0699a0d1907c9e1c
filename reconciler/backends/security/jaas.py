"""The one line of JAAS configuration that ``sasl.jaas.config`` holds, read as Kafka's ``JaasConfig`` reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<sign>[=;])
      | (?P<word>[^\s"'=;]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_NAMED_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS: Final = {"required", "requisite", "sufficient", "optional"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasLine:
    """A login module's class name and its options; options are in no ``repr``, for passwords are among them."""

    module: str
    options: dict[str, str] = field(repr=False)


def parse_jaas(text: str) -> JaasLine:
    """``Module required key="value" ...;``. Raises ``ValueError`` that says what is missing, never what was written."""
    tokens = list(_tokens(text))
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise ValueError("it begins with a login module's class and the word required")
    if tokens[-1] != _END:
        raise ValueError("it ends with a semicolon")
    rest = tokens[2:-1]
    if _END in rest:
        raise ValueError("it has more than one login module")
    if len(rest) % 3 or any(sign != _EQUALS for sign in rest[1::3]):
        raise ValueError(
            "the options after the class are key=value pairs, with quotes around a value that has special characters"
        )
    return JaasLine(module=tokens[0], options=dict(zip(rest[0::3], rest[2::3], strict=True)))


_END: Final = "\0;"
_EQUALS: Final = "\0="


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError("a quote is not closed")
        at = found.end()
        if found["quoted"] is not None:
            yield _ESCAPE.sub(_unescaped, found["quoted"][1:-1])
        elif found["sign"] is not None:
            yield "\0" + found["sign"]
        elif found["word"] is not None:
            yield found["word"]


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    return chr(int(said, 8)) if said[0] in "01234567" else _NAMED_ESCAPES.get(said, said)
