"""Other open pull requests that change the same entities: each comment has the entities of its plan, hidden in one line."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import Final

from reconciler.errors import ForgeError
from reconciler.features.pull_requests.forge import Forge, Request
from reconciler.features.pull_requests.sticky_comment import Content, is_edited, read_marker
from reconciler.formats import entity_from_json, entity_to_json
from reconciler.model import Entity, Message, Plan, compose, flag_part
from reconciler.text import count_of, list_entities

MOST_REQUESTS: Final = 30
"""How many other pull requests are looked at, those changed last: each costs a request."""
_MOST_COMMENTS: Final = 100
_SHOWN: Final = 3
_START: Final = "<!-- kafka-quotas:entities "
_END: Final = " -->"
_MOST_LINE: Final = 6_000
_MOST_TEXT: Final = 1_000_000


def entities_line(plan: Plan) -> str | None:
    """The line of a plan; ``None`` when nothing changes, or so many entities that the line would be too long."""
    entities = {change.entity for change in plan.changes}
    entities |= {change.entity for withheld in plan.withheld for change in withheld.changes}
    if not entities:
        return None
    rows = [entity_to_json(entity) for entity in sorted(entities, key=lambda entity: entity.sort_key)]
    packed = zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 9)
    line = f"{_START}{base64.b64encode(packed).decode()}{_END}"
    return line if len(line) <= _MOST_LINE else None


def hidden_entities(comment: str) -> frozenset[Entity]:
    """The entities in a comment; none without a line that can be read."""
    for line in comment.splitlines():
        if line.startswith(_START) and line.endswith(_END):
            try:
                packed = base64.b64decode(line.removeprefix(_START).removesuffix(_END), validate=True)
                rows = json.loads(zlib.decompressobj().decompress(packed, _MOST_TEXT))
                return frozenset(entity_from_json(row) for row in rows)
            except (ValueError, TypeError, AttributeError, KeyError, zlib.error, RecursionError):
                return frozenset()
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Another open pull request that changes the same entities, sorted."""

    number: int
    """Its number."""
    name: str
    entities: tuple[Entity, ...]
    """Entities that both change: type to name, ``None`` for the default."""

    @property
    def message(self) -> Message:
        """One sentence."""
        return compose(
            "{name} changes {entities}, too. Merge one of the two, and plan the other again.",
            name=flag_part(self.name[:1].upper() + self.name[1:]),
            entities=list_entities(self.entities, _SHOWN),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapSearch:
    """What was found. ``problem``: why not all was seen."""

    overlaps: tuple[Overlap, ...] = ()
    problem: str | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """All in sentences."""
        return (*(overlap.message for overlap in self.overlaps), *([] if self.problem is None else [self.problem]))


def find_overlaps(forge: Forge, request: Request, content: Content | None, *, author: str) -> OverlapSearch:
    """The other open pull requests whose comments by ``author`` name an entity of ``content``, for the same cluster.

    A forge that does not answer is a problem, not an error: the comment itself must not fail for it.
    """
    own = hidden_entities("\n".join(content.lines)) if content is not None else frozenset()
    if content is None or not own:
        return OverlapSearch()
    overlaps: list[Overlap] = []
    problem = None
    try:
        for count, other in enumerate(islice(forge.others(request), MOST_REQUESTS + 1)):
            if count == MOST_REQUESTS:
                problem = f"Only {count_of(MOST_REQUESTS, 'other open request')} were compared with this one"
                break
            seen: frozenset[Entity] = frozenset()
            for comment in forge.comments(other, most=_MOST_COMMENTS):
                marker, by_us = read_marker(comment.body), (comment.author or "").casefold() == author.casefold()
                # Only of comments that this tool wrote and that no user changed.
                if marker is not None and by_us and marker.cluster == content.marker.cluster and not is_edited(comment.body):
                    seen |= hidden_entities(comment.body)
            if shared := own & seen:
                entities = tuple(sorted(shared, key=lambda entity: entity.sort_key))
                overlaps.append(Overlap(number=other.number, name=forge.name(other.number), entities=entities))
    except ForgeError as error:
        problem = f"The other open requests were not all compared with this one: {error}"
    return OverlapSearch(overlaps=tuple(overlaps), problem=problem)
