"""Effects: which clients move to another effective quota when entities change."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from reconciler.model.entity import Entity, display_name
from reconciler.model.finding import FromOne


class BucketName(NamedTuple):
    """The tags of a quota group: Kafka's metric tags, with the raw user name. Empty means that the tag is absent."""

    user: str
    client_id: str
    other: tuple[tuple[str, str], ...] = ()
    """Further tags that a quota callback gave, sorted by their names."""


class Other(enum.Enum):
    """The type of ``OTHER``. An enum of one, so that type checkers can distinguish it from a name."""

    OTHER = "other"

    def __repr__(self) -> str:
        return "OTHER"


OTHER: Final = Other.OTHER
"""Any user, client id or address that no quota names. Only defaults apply to it."""

ClientName: TypeAlias = str | Literal[Other.OTHER]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClient:
    """A principal's name (without its type) with a client id, which is empty when the client sends none."""

    user: ClientName
    """A name, or {"other": true}: any that no quota names. An empty client id is a client that sends none."""
    client_id: ClientName
    """A name, or {"other": true}: any that no quota names. An empty client id is a client that sends none."""

    @property
    def sort_key(self) -> tuple[tuple[bool, str], ...]:
        """Return the key for sorting clients by user, then by client id. ``OTHER`` comes last."""
        return _rank(self.user), _rank(self.client_id)

    def __str__(self) -> str:
        return f"user={_shown(self.user)} client-id={_shown(self.client_id)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAddress:
    """An address that connects, as the entity writes it."""

    ip: ClientName
    """A name, or {"other": true}: any that no quota names. An empty client id is a client that sends none."""

    @property
    def sort_key(self) -> tuple[tuple[bool, str], ...]:
        """Return the key for sorting addresses by text. ``OTHER`` comes last."""
        return (_rank(self.ip),)

    def __str__(self) -> str:
        return f"ip={_shown(self.ip)}"


Known: TypeAlias = KnownClient | KnownAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An effective quota: its value, the entity that sets it, and that entity's level (users and client ids 1-8, ip 1-2)."""

    value: float
    """The limit, in the unit of its key."""
    entity: Entity
    """The entity that sets it."""
    level: FromOne
    """Its precedence level: 1 to 8, for addresses 1 or 2."""


class Direction(enum.StrEnum):
    """What an effect means to the client."""

    TIGHTENS = "tightens"
    LOOSENS = "loosens"
    FIRST_LIMIT = "first_limit"
    REMOVED = "removed"
    OTHER_SOURCE = "other_source"
    """The same value from another entity. Who shares it may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One client and key: the limit before and after, never equal. ``None`` is unlimited."""

    client: Known
    """The client: a user with a client-id, or an address."""
    key: str
    """The quota key."""
    before: Limit | None
    """The effective limit before. ``None``: unlimited."""
    after: Limit | None
    """The effective limit after. ``None``: unlimited."""
    as_before: bool = False
    """True when the changes that a plan of the base has, too, move the client in the same way."""

    @property
    def direction(self) -> Direction:
        """The direction of an effect. A limit that is NaN, which Kafka stores and never enforces, counts as infinite."""
        if self.before is None:
            return Direction.FIRST_LIMIT
        if self.after is None:
            return Direction.REMOVED
        before, after = _strength(self.before.value), _strength(self.after.value)
        if before == after:
            return Direction.OTHER_SOURCE
        return Direction.TIGHTENS if after < before else Direction.LOOSENS

    @property
    def cause(self) -> tuple[object, ...]:
        """Return a key that clients share when they move for one reason: from one limit, or each from its own, to one limit."""
        before = None if self.before is None else _source(self.before.entity, self.before.value)
        return self.key, self.direction, before, _limit_key(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRange:
    """Limits of several clients."""

    lowest: float
    """The lowest limit of these clients."""
    highest: float
    """The highest limit of these clients."""
    entity: Entity | None
    """The entity that set it for all of them. ``None``: each client had a limit of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectGroup:
    """More than one client with effects of the same cause."""

    key: str
    """The quota key."""
    direction: Direction
    """What it means for the client: a lower limit, a higher one, the first one, none any more, or the same value from another
    entity.
    """
    clients: int
    """How many clients these are."""
    examples: tuple[Known, ...]
    """The first few."""
    before: LimitRange | None
    """The limits before. ``None``: unlimited."""
    after: Limit | None
    """The effective limit after. ``None``: unlimited."""

    @property
    def cause(self) -> tuple[object, ...]:
        """Return the cause of each of the group's effects."""
        before = None if self.before is None else _source(self.before.entity, self.before.lowest)
        return self.key, self.direction, before, _limit_key(self.after)


def _source(entity: Entity | None, value: float) -> object:
    """Return the source of a limit. An entity that names its clients counts as each client's own."""
    if entity is None or any(isinstance(name, str) for _, name in entity.parts):
        return "own"
    return entity, str(value)


def _limit_key(limit: Limit | None) -> object:
    # As text, because NaN does not equal itself.
    return None if limit is None else (limit.entity, str(limit.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEffects:
    """The effects of a plan on the clients that are known."""

    effects: tuple[Effect, ...] = ()
    """Known clients whose effective limit changes."""
    left_out: int = 0
    """Moves that were found and are not listed."""
    groups: tuple[EffectGroup, ...] = ()
    """Clients that move for the same reason, two or more in each group, with those that are not among the moves.

    Absent when there are none.
    """
    unknown: str | None = None
    """Why nothing is known: the brokers resolve quotas with code of their own."""


def _strength(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _rank(name: ClientName) -> tuple[bool, str]:
    return (True, "") if name is OTHER else (False, name)


def _shown(name: ClientName) -> str:
    return "(any other)" if name is OTHER else display_name(name) if name else "(none)"
