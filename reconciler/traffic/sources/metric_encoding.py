r"""How names of clients stand in metrics: users percent-encoded, client-ids quoted, both mangled inside a metric name.

Sources: Kafka's ``Sanitizer`` (``sanitize``, and ``jmxSanitize`` with ``[\w-%\. \t]*``), Java's ``ObjectName.quote`` and
``URLEncoder``, and the jmx_exporter's ``JmxCollector.toSafeName``, which ``lowercaseOutputName`` follows.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import Final

_PLAIN_TAG: Final = re.compile(r"[\w\-%. \t]*", re.ASCII)
_QUOTED: Final = re.compile(r'"(?:[^"\\*?\n]|\\[\\"*?n])*"', re.DOTALL)
_TO_ESCAPE: Final = re.compile(r'[\\"*?\n]')
_ESCAPES: Final = re.compile(r"\\([\\\"*?n])")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9:]+")


def encode_user(user: str) -> str:
    """The user of a tag, as ``Sanitizer.sanitize`` writes it."""
    return urllib.parse.quote(user, safe="", errors="replace").replace("~", "%7E")


def decode_user(text: str) -> str:
    """The user of a tag or label."""
    return urllib.parse.unquote(text, errors="replace")


def quote_client_id(client_id: str) -> str:
    """The client-id of a tag of an MBean: as it is, or as ``ObjectName.quote`` writes it. It is never percent-encoded."""
    if _PLAIN_TAG.fullmatch(client_id):
        return client_id
    return '"' + _TO_ESCAPE.sub(lambda match: "\\n" if match[0] == "\n" else f"\\{match[0]}", client_id) + '"'


def unquote_client_id(text: str) -> str:
    """The client-id of a label. Text that ``ObjectName.quote`` cannot have made is the client-id itself."""
    if not _QUOTED.fullmatch(text):
        return text
    return _ESCAPES.sub(lambda match: "\n" if match[1] == "n" else match[1], text[1:-1])


def mangle(text: str) -> str:
    """What a metric name keeps of a text: letters in lower case, digits and colons; runs of all else are one ``_``."""
    return _UNSAFE.sub("_", text).lower()
