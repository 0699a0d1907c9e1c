"""Quota entities: which users, client ids and addresses a quota is set for.

Source of the rules: Kafka's ``ClientQuotaEntity`` and ``ClientQuotaControlManager`` (KIP-546). A default entity, an absent type
and a literal name ``<default>`` are three different things. The default is the marker ``DEFAULT`` here, never a string.

A selector asks, per type, for a literal name, the default, any name, either of them, a prefix or a glob. The last two
never match the default. Types that it does not list may be present unless ``strict``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal, TypeAlias, TypeVar

_T = TypeVar("_T")


class EntityType(enum.StrEnum):
    """The entity types Kafka itself knows, as spelled on the wire."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class Default(enum.Enum):
    """The type of ``DEFAULT``. An enum of one, so that type checkers can distinguish it from a name."""

    DEFAULT = "default"

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default.DEFAULT
"""The built-in default of an entity type."""

EntityName: TypeAlias = str | Literal[Default.DEFAULT]

_TYPE_RANK: Final[Mapping[str, int]] = {EntityType.USER: 0, EntityType.CLIENT_ID: 1, EntityType.IP: 2}

_PAIR: Final = [EntityType.USER.value, EntityType.CLIENT_ID.value]

LEGAL_SHAPES: Final = frozenset(
    {
        (EntityType.USER.value,),
        (EntityType.CLIENT_ID.value,),
        (EntityType.USER.value, EntityType.CLIENT_ID.value),
        (EntityType.IP.value,),
    }
)
"""The combinations of types that Kafka accepts, in canonical order. Counting named and default separately there are ten."""


def _type_order(entity_type: str) -> tuple[int, str]:
    return (_TYPE_RANK.get(entity_type, len(_TYPE_RANK)), entity_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One quota entity: entity types to names, in canonical order (user, client-id, ip, then unknown types by name).

    Build it with ``Entity.of``. Types are plain strings, because a cluster may have types that this tool does not know. Raises
    ``ValueError`` when it has no type, has one twice, or has them in another order, so that equal entities are equal values.
    """

    parts: tuple[tuple[str, EntityName], ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("an entity has at least one type and name")
        if (
            len(self.parts) > 1
            and (types := [name for name, _ in self.parts]) != _PAIR
            and types != sorted(set(types), key=_type_order)
        ):
            raise ValueError(f"the types of an entity are not in canonical order: {', '.join(self.types)}")

    @classmethod
    def of(cls, names: Mapping[str, EntityName]) -> Entity:
        """Build from a mapping of type to name (``DEFAULT`` for the default), in any order."""
        types = names if len(names) == 1 else sorted(names, key=_type_order)
        return cls(parts=tuple([(str(each), names[each]) for each in types]))

    @property
    def types(self) -> tuple[str, ...]:
        """The entity types present, in canonical order."""
        return tuple(t for t, _ in self.parts)

    def name(self, entity_type: str) -> EntityName | None:
        """The name for a type: a string, ``DEFAULT``, or ``None`` when the type is absent."""
        for t, n in self.parts:
            if t == entity_type:
                return n
        return None

    @property
    def has_default(self) -> bool:
        """True when any type present stands for its default: a change here reaches clients that no entity names."""
        return any(n is DEFAULT for _, n in self.parts)

    @property
    def is_known(self) -> bool:
        """True when the shape is one that this tool may write. Others are shown and kept."""
        if len(self.parts) == 1:
            return self.parts[0][0] in _TYPE_RANK
        return self.types in LEGAL_SHAPES

    @property
    def sort_key(self) -> tuple[tuple[int, str, int, str], ...]:
        """One total order: by type, then named before default, then by name (code points)."""
        return tuple((*_type_order(t), 1, "") if n is DEFAULT else (*_type_order(t), 0, n) for t, n in self.parts)

    # As a dataclass has both, but for the tuples around: entities are looked up fifty times in a run.
    def __hash__(self) -> int:
        return hash(self.parts)

    def __eq__(self, other: object) -> bool:
        return self.parts == other.parts if other.__class__ is Entity else NotImplemented

    def __str__(self) -> str:
        return " ".join(f"{t}={display_name(n)}" for t, n in self.parts)


_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.@:/+=,%~")


def display_name(name: EntityName) -> str:
    """A name for one line of a terminal: the default is ``<default>``, anything unusual is quoted and escaped.

    A user whose literal name is ``<default>`` prints as ``"<default>"``. Control characters, blanks at the ends and bidirectional
    marks can neither conceal text nor move the cursor.
    """
    if name is DEFAULT:
        return "<default>"
    if name and all(c in _PLAIN for c in name):
        return name
    return '"' + escaped(name.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def escaped(text: str) -> str:
    """Text for one line of a terminal: everything that does not print (controls, line breaks, bidirectional marks) escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(ord(c)) for c in text)


class ForeignText(str):
    """Text that a cluster, a snapshot or another file chose: equal to itself as it is, but escaped wherever it is formatted.

    ``f"{text}"``, ``str(text)`` and ``"%s" % text`` are for people and give the escaped form. Comparing, hashing, JSON and YAML
    take the text as it is.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return escaped(self[:])

    def __format__(self, spec: str) -> str:
        return format(escaped(self[:]), spec)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def in_canonical_order(entities: Iterable[Entity]) -> list[Entity]:
    """Sort as by ``Entity.sort_key``."""
    return sorted_by_entity(entities, lambda entity: entity)


def sorted_by_entity(items: Iterable[_T], entity_of: Callable[[_T], Entity]) -> list[_T]:
    """Sort as by the ``sort_key`` of their entities, in a fifth of the time: most differ in their first name already."""
    by_first: dict[tuple[str, EntityName], list[_T]] = {}
    for item in items:
        by_first.setdefault(entity_of(item).parts[0], []).append(item)
    named: dict[str, list[str]] = {}
    for entity_type, name in by_first:
        texts = named.setdefault(entity_type, [])
        if name is not DEFAULT:
            texts.append(name)
    ordered: list[_T] = []
    for entity_type in sorted(named, key=_rank):
        names: list[EntityName] = [*sorted(named[entity_type]), DEFAULT]
        for name in names:
            alike = by_first.get((entity_type, name), [])
            ordered += alike if len(alike) < 2 else sorted(alike, key=lambda item: entity_of(item).sort_key)
    return ordered


def _rank(entity_type: str) -> tuple[tuple[int, str, int, str], ...]:
    return Entity(parts=((entity_type, ""),)).sort_key


class MatchKind(enum.StrEnum):
    """How one type is matched. The words are those of the manifest."""

    NAME = "name"
    DEFAULT = "default"
    NAMED = "named"
    ANY = "any"
    PREFIX = "prefix"
    GLOB = "glob"


@lru_cache(maxsize=4096)
def _glob(text: str) -> re.Pattern[str]:
    # What fnmatch makes is linear too: what stands between two stars is matched once, as far left as it is found.
    return re.compile(translate(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMatch:
    """What a selector asks of one entity type. ``text`` is empty for ``DEFAULT``, ``NAMED`` and ``ANY``."""

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
