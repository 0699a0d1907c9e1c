"""Other open pull requests that change the same entities, as the comments on them show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from reconciler.errors import ForgeError
from reconciler.features.pull_requests.comment_entities import hidden_entities
from reconciler.features.pull_requests.posted_comment import Comment
from reconciler.features.pull_requests.sticky_comment import Content, is_edited, read_marker
from reconciler.model import Entity, Message, compose, flag_part
from reconciler.text import count_of, list_entities

MOST_REQUESTS: Final = 30
"""How many other pull requests are looked at, those changed last: each costs a request."""
_SHOWN: Final = 3


class OpenRequests(Protocol):
    """The pull requests with the same target branch. Every method raises ``ForgeError``."""

    def others(self) -> Iterator[int]:
        """The numbers of those that are open, without the own one, the last changed first."""
        ...

    def first_comments(self, number: int) -> Sequence[Comment]:
        """The comments of the first page, the oldest first."""
        ...

    def name(self, number: int) -> str:
        """As people write it: ``pull request #12``."""
        ...


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


def find_overlaps(requests: OpenRequests, content: Content | None, *, author: str) -> OverlapSearch:
    """The other open pull requests whose comments by ``author`` name an entity of ``content``, for the same cluster.

    A forge that does not answer is a problem, not an error: the comment itself must not fail for it.
    """
    own = hidden_entities("\n".join(content.lines)) if content is not None else frozenset()
    if content is None or not own:
        return OverlapSearch()
    overlaps: list[Overlap] = []
    try:
        for count, number in enumerate(islice(requests.others(), MOST_REQUESTS + 1)):
            if count == MOST_REQUESTS:
                problem = f"Only {count_of(MOST_REQUESTS, 'other open request')} were compared with this one"
                return OverlapSearch(overlaps=tuple(overlaps), problem=problem)
            others = _entities(requests.first_comments(number), content.marker.cluster, author)
            if shared := own & others:
                entities = tuple(sorted(shared, key=lambda entity: entity.sort_key))
                overlaps.append(Overlap(number=number, name=requests.name(number), entities=entities))
    except ForgeError as error:
        problem = f"The other open requests were not all compared with this one: {error}"
        return OverlapSearch(overlaps=tuple(overlaps), problem=problem)
    return OverlapSearch(overlaps=tuple(overlaps))


def _entities(comments: Iterable[Comment], cluster: str | None, author: str) -> frozenset[Entity]:
    """Of all comments about a cluster that this tool wrote and that no person changed."""
    entities: frozenset[Entity] = frozenset()
    for comment in comments:
        marker = read_marker(comment.body)
        by_us = (comment.author or "").casefold() == author.casefold()
        if marker is not None and by_us and marker.cluster == cluster and not is_edited(comment.body):
            entities |= hidden_entities(comment.body)
    return entities
