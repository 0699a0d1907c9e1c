r"""How names of clients stand in metrics: users percent-encoded, client-ids quoted.

Sources: Kafka's ``Sanitizer`` (``sanitize``, and ``jmxSanitize`` with ``[\w-%\. \t]*``), Java's ``ObjectName.quote`` and
``URLEncoder``.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import Final

_QUOTED: Final = re.compile(r'"(?:[^"\\*?\n]|\\[\\"*?n])*"', re.DOTALL)
_ESCAPES: Final = re.compile(r"\\([\\\"*?n])")


def encode_user(user: str) -> str:
    """The user of a tag, as ``Sanitizer.sanitize`` writes it."""
    return urllib.parse.quote(user, safe="", errors="replace").replace("~", "%7E")


def decode_user(text: str) -> str:
    """The user of a tag or label."""
    return urllib.parse.unquote(text, errors="replace")


def unquote_client_id(text: str) -> str:
    """The client-id of a label. Text that ``ObjectName.quote`` cannot have made is the client-id itself."""
    if not _QUOTED.fullmatch(text):
        return text
    return _ESCAPES.sub(lambda match: "\n" if match[1] == "n" else match[1], text[1:-1])
