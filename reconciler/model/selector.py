"""Selectors: which entities a scope, a protection or an acceptance is about.

Per type a selector asks for a literal name, the default, any name, either of them, a prefix, a glob or a regular expression;
the last three never match the default. Types that a selector does not list may be present unless ``strict``, as in Kafka's
describe filters.

Regular expressions are RE2's, from the extra ``regex``: RE2 matches in linear time and in a bounded memory, so that no
expression of a manifest can stop a run. Python's own engine cannot promise either.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final

from reconciler.errors import MissingPackageError
from reconciler.model.entity import DEFAULT, Entity, EntityName, escaped

MAX_REGEX_LENGTH: Final = 1000
"""Most characters of a regular expression."""
MAX_REGEXES: Final = 200
"""Most different regular expressions in one file. As many are kept compiled."""
_REGEX_MEMORY: Final = 256 * 1024
# RE2 reads {,3} as text, other engines as a count: the same expression would select different names.
_OPEN_COUNT: Final = re.compile(r"(?<!\\)\{,[0-9]+\}")


class PatternError(ValueError):
    """A regular expression that cannot be used. The text gives the reason."""


@lru_cache(maxsize=MAX_REGEXES)
def compile_regex(text: str) -> Any:
    """RE2's form of an expression, made once.

    Raises ``PatternError`` for an expression that RE2 refuses or that is too large, and ``MissingDependencyError`` without the
    extra ``regex``.
    """
    if len(text) > MAX_REGEX_LENGTH:
        raise PatternError(f"the expression has {len(text)} characters, and {MAX_REGEX_LENGTH} are allowed")
    if count := _OPEN_COUNT.search(text):
        raise PatternError(f"RE2 does not read {count[0]} as a count. Write {{0{count[0][1:]}")
    try:
        import re2
    except ImportError as error:
        remark = ", or write a prefix or a glob"
        raise MissingPackageError("regular expressions in selectors need", "re2", remark=remark) from error
    options = re2.Options()
    options.max_mem = _REGEX_MEMORY
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(text.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) else "the expression is not Unicode text"
        raise PatternError(escaped(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))) from error


class MatchKind(enum.StrEnum):
    """How one type is matched. The words are those of the manifest."""

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

    A regular expression must match the whole name. ``matches`` raises ``PatternError`` or
    ``MissingDependencyError`` for an expression that no manifest brought.
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
                return compile_regex(self.text).fullmatch(name.encode("utf-8", "replace")) is not None


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
