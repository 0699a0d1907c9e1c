"""Selectors: which entities a scope, a protection or an acceptance is about.

Per type a selector asks for a literal name, the default, any name, either of them, a prefix, a glob or a regular expression;
the last three never match the default. Types that a selector does not list may be present unless ``strict``, as in Kafka's
describe filters.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.linear_regex import linear_pattern


class MatchKind(enum.StrEnum):
    """How one type is matched; the words are those of the manifest."""

    NAME = "name"
    DEFAULT = "default"
    NAMED = "named"
    ANY = "any"
    PREFIX = "prefix"
    GLOB = "glob"
    REGEX = "regex"


@lru_cache(maxsize=4096)
def _glob(text: str) -> re.Pattern[str]:
    # What fnmatch makes is linear too: what stands between two stars is matched once, as far left as it is found.
    return re.compile(translate(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMatch:
    """What a selector asks of one entity type. ``text`` is empty for ``DEFAULT``, ``NAMED`` and ``ANY``.

    A regular expression must match the whole name; ``regex_syntax`` says which there are. ``matches`` raises ``PatternError``
    for one that is none, which no manifest that was read has.
    """

    kind: MatchKind
    text: str = ""

    def matches(self, name: EntityName) -> bool:
        """True when a present type with this name is selected."""
        if name is DEFAULT:
            return self.kind in (MatchKind.DEFAULT, MatchKind.ANY)
        match self.kind:
            case MatchKind.NAME:
                return name == self.text
            case MatchKind.DEFAULT | MatchKind.NAMED | MatchKind.ANY:
                return self.kind is not MatchKind.DEFAULT
            case MatchKind.PREFIX:
                return name.startswith(self.text)
            case MatchKind.GLOB:
                return _glob(self.text).match(name) is not None
            case MatchKind.REGEX:
                return linear_pattern(self.text).matches(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A conjunction over entity types."""

    types: tuple[tuple[str, TypeMatch], ...]
    strict: bool = False

    def matches(self, entity: Entity) -> bool:
        """True when every listed type is present and matches (and, if strict, no other type is present)."""
        if self.strict and len(entity.parts) != len(self.types):
            return False
        for entity_type, wanted in self.types:
            name = entity.name(entity_type)
            if name is None or not wanted.matches(name):
                return False
        return True


def any_matches(selectors: Iterable[Selector], entity: Entity) -> bool:
    """True when at least one selector matches."""
    return any(selector.matches(entity) for selector in selectors)
