"""Names of users and client ids, percent-encoded as Kafka does it in ZooKeeper's nodes and in the metrics of users.

Source: Kafka's ``Sanitizer`` (``URLEncoder`` in UTF-8, then ``*`` and ``+`` encoded too). Over the wire and in KRaft names are
never encoded.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]*")


def sanitized(name: str) -> str:
    """``alice@EXAMPLE`` as ``alice%40EXAMPLE``. Raises ``UnicodeEncodeError`` for half a surrogate pair."""
    return name if _PLAIN.fullmatch(name) else quote(name, safe="").replace("~", "%7E")


def unsanitized(text: str) -> str | None:
    """The one name that ``sanitized`` makes this text of; ``None`` when there is none."""
    if _PLAIN.fullmatch(text):
        return text
    try:
        name = unquote_to_bytes(text).decode()
        return name if sanitized(name) == text else None
    except UnicodeError:
        return None
