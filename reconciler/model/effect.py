"""Effects: which clients move to another effective quota when entities change."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from reconciler.model.entity import Entity, display_name


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
    client_id: ClientName

    @property
    def sort_key(self) -> tuple[tuple[bool, str], ...]:
        """By user, then client id. ``OTHER`` comes last."""
        return _rank(self.user), _rank(self.client_id)

    def __str__(self) -> str:
        return f"user={_shown(self.user)} client-id={_shown(self.client_id)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAddress:
    """An address that connects, as the entity writes it."""

    ip: ClientName

    @property
    def sort_key(self) -> tuple[tuple[bool, str], ...]:
        """By text. ``OTHER`` comes last."""
        return (_rank(self.ip),)

    def __str__(self) -> str:
        return f"ip={_shown(self.ip)}"


Known: TypeAlias = KnownClient | KnownAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An effective quota: its value, the entity that sets it, and that entity's level (users and client ids 1-8, ip 1-2)."""

    value: float
    entity: Entity
    level: int


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
    key: str
    before: Limit | None
    after: Limit | None

    @property
    def direction(self) -> Direction:
        """By the values. A limit that is NaN, which Kafka stores and never enforces, counts as infinite."""
        if self.before is None:
            return Direction.FIRST_LIMIT
        if self.after is None:
            return Direction.REMOVED
        before, after = _strength(self.before.value), _strength(self.after.value)
        if before == after:
            return Direction.OTHER_SOURCE
        return Direction.TIGHTENS if after < before else Direction.LOOSENS


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEffects:
    """The effects of a plan on the clients that are known. ``left_out``: effects that were found and are not listed.

    ``unknown`` gives the reason when quotas of this cluster do not mean what Kafka's own code makes of them; then none is listed.
    """

    effects: tuple[Effect, ...] = ()
    left_out: int = 0
    unknown: str | None = None


def _strength(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _rank(name: ClientName) -> tuple[bool, str]:
    return (True, "") if name is OTHER else (False, name)


def _shown(name: ClientName) -> str:
    return "(any other)" if name is OTHER else display_name(name) if name else "(none)"
