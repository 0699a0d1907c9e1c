"""The hidden first line of a comment, by which it is found again and told from others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from reconciler.render.escape_markdown import LIMIT, shortened

_VERSION: Final = 1
_START: Final = "<!-- kafka-quotas:"
_END: Final = " -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What the line says. ``kind`` is ``plan`` or ``findings``; findings have no digest."""

    kind: str
    cluster: str | None
    digest: str | None


def marker_line(marker: Marker) -> str:
    """The line. No name can end the HTML comment, because ``<``, ``>`` and ``-`` are escaped inside."""
    cluster = None if marker.cluster is None else shortened(marker.cluster, LIMIT)
    content = json.dumps({"v": _VERSION, "kind": marker.kind, "cluster": cluster, "digest": marker.digest}, ensure_ascii=True)
    for character in "<>-":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return f"{_START}{marker.kind} {content}{_END}"


def read_marker(comment: str) -> Marker | None:
    """The marker of a comment, or ``None`` without one that this version understands.

    Anybody can paste a marker, so whoever looks for one compares the comment's author too.
    """
    first = comment.partition("\n")[0].strip()
    if not (first.startswith(_START) and first.endswith(_END)):
        return None
    content = first.removeprefix(_START).removesuffix(_END).partition(" ")[2]
    try:
        document = json.loads(content)
    except ValueError:
        return None
    match document:
        case {"v": 1, "kind": str(kind), "cluster": str() | None as cluster, "digest": str() | None as digest}:
            return Marker(kind=kind, cluster=cluster, digest=digest)
    return None
