"""Names of entities as strangers choose them, to break whatever shows them."""

from __future__ import annotations

import re
from typing import Final

from hypothesis import strategies as st

HOSTILE: Final = (
    "a|b",
    "a\\|b",
    "\\",
    "a\\",
    "\\\\|",
    "`",
    "``a`",
    "`" * 255,
    "a`|`b",
    "line\nbreak",
    "carriage\r\nreturn",
    "tab\there",
    "@team",
    "@12",
    "me@example.org",
    "-->",
    "<!-- x -->",
    "100%",
    "%0A::error::x",
    "::error file=a::b",
    "::stop-commands::x",
    "  ::set-output name=digest::x",
    "\u200b:\ufe0f:add-mask::0",
    "\n::add-mask::0",
    "\r::error::x",
    "##[error]x",
    "#\u00ad#\ufe0f[set-output name=a]b",
    "x##[set-env name=PATH;]/tmp",
    "##vso[task.setvariable variable=a]b",
    "##vso[task.complete result=Succeeded;]DONE",
    "##teamcity[buildStatus status='SUCCESS']",
    "section_start:1560896352:a",
    "section_start:1560896352:a\r\x1b[0K",
    "😀" * 63,
    "x" * 255,
    "\x01" * 255,
    "# heading",
    "- item",
    "1. item",
    "| --- |",
    "> quote",
    "***bold***",
    "~~gone~~",
    "[text](https://example.org)",
    "![image](https://example.org/a.png)",
    "https://example.org/a",
    "www.example.org",
    "<https://example.org>",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</table><h1>x",
    "&lt;&amp;&#64;",
    "#12",
    "GH-12",
    "0123456789abcdef0123456789abcdef01234567",
    ":smile:",
    "$x^2$",
    "[^1]",
    "[!NOTE]",
    "<default>",
    "a b",
    " leading",
    "trailing ",
    "  ",
    "",
    '"quoted"',
    "\x1b[31mred",
    "\u202eevil",
    "\u2028\u2029\u0085",
    "zero\u200bwidth",
    "nul\x00",
    "é\u0301",
    "שלום",
    "\ud800",
)

_SPECIAL: Final = "|`<>@#-!&\\*_~[](){}\"'$:%,;\n\r\t \x00\x1b\u202e\u2028😀aZ1.é/=+"

NAMES: Final = st.one_of(st.sampled_from(HOSTILE), st.text(alphabet=st.sampled_from(_SPECIAL), max_size=40), st.text(max_size=40))
"""Any of them, and mixtures of the characters that mean something somewhere."""

_QUOTED: Final = re.compile(r'(?P<type>[a-z-]+)="(?P<name>.*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")


def name_shown(entity: str) -> str:
    """The name of a shown entity of one type, quotes and escapes undone: proof that showing it loses nothing."""
    match = _QUOTED.fullmatch(entity)
    if match is None:
        return entity.partition("=")[2]
    return _ESCAPE.sub(lambda found: found[3] or chr(int(found[1] or found[2], 16)), match["name"])
