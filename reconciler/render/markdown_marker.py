"""The hidden first line of a comment, by which it is found again and told from others."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.render.escape_markdown import LIMIT, shortened

_VERSION: Final = 1
_START: Final = "<!-- kafka-quotas:"
_END: Final = " -->"


class CommentState(enum.StrEnum):
    """How far the change is that a posted comment speaks of."""

    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    OUTDATED = "outdated"


_STATES: Final = frozenset(state.value for state in CommentState)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What the line says. ``kind`` is ``plan``, ``findings`` or ``status``; only a plan has a digest.

    A body that is not posted yet has none of the fields from ``label`` on.
    """

    kind: str
    cluster: str | None
    digest: str | None
    empty: bool = False
    """There is nothing to do and nothing to say: no reason for a new comment."""
    label: str = ""
    """Tells comments about one cluster from each other, e.g. of two repositories' folders."""
    state: CommentState | None = None
    commit: str | None = None
    checksum: str | None = None
    """Of what follows the marker, as it was posted; it differs once somebody has edited the comment."""

    @property
    def address(self) -> tuple[str | None, str]:
        """What there is one comment for: a cluster (``None`` for the whole repository) and a label."""
        return self.cluster, self.label


def marker_line(marker: Marker) -> str:
    """The line. No name can end the HTML comment, because ``<``, ``>`` and ``-`` are escaped inside."""
    cluster = None if marker.cluster is None else shortened(marker.cluster, LIMIT)
    always = {"v": _VERSION, "kind": marker.kind, "cluster": cluster, "digest": marker.digest}
    posted = {
        "empty": marker.empty,
        "label": marker.label,
        "state": marker.state,
        "commit": marker.commit,
        "sum": marker.checksum,
    }
    content = json.dumps(always | {key: value for key, value in posted.items() if value}, ensure_ascii=True)
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
    except (ValueError, RecursionError):
        return None
    match document:
        case {"v": 1, "kind": str(kind), "cluster": str() | None as cluster, "digest": str() | None as digest}:
            return _with_posted(Marker(kind=kind, cluster=cluster, digest=digest), document)
    return None


def _with_posted(marker: Marker, document: Mapping[str, object]) -> Marker | None:
    known = {"empty": False, "label": "", "state": None, "commit": None, "sum": None}
    match known | {key: document[key] for key in known if key in document}:
        case {
            "empty": bool(empty),
            "label": str(label),
            "state": str() | None as state,
            "commit": str() | None as commit,
            "sum": str() | None as checksum,
        } if state is None or state in _STATES:
            return Marker(
                kind=marker.kind,
                cluster=marker.cluster,
                digest=marker.digest,
                empty=empty,
                label=label,
                state=CommentState(state) if state else None,
                commit=commit,
                checksum=checksum,
            )
    return None
