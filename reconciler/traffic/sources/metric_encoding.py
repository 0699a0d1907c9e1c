r"""How names of clients stand in metrics: users percent-encoded, client-ids quoted, both mangled inside a metric name.

Sources: Kafka's ``Sanitizer`` (``sanitize``, and ``jmxSanitize`` with ``[\w-%\. \t]*``), Java's ``ObjectName.quote`` and
``URLEncoder``, and the jmx_exporter's ``JmxCollector.toSafeName``, which ``lowercaseOutputName`` follows.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import Final

_QUOTED: Final = re.compile(r'"(?:[^"\\*?\n]|\\[\\"*?n])*"', re.DOTALL)
_ESCAPES: Final = re.compile(r"\\([\\\"*?n])")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9:]+")


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


def mangle(text: str) -> str:
    """What a metric name keeps of a text: letters in lower case, digits and colons; runs of all else are one ``_``."""
    return _UNSAFE.sub("_", text).lower()
