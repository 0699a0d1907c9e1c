"""Changes: what a plan would do, and the alterations that are sent."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.entity import Entity
from reconciler.model.finding import Span


class Action(enum.StrEnum):
    """What happens to an entity."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Reason(enum.StrEnum):
    """Why a key changes."""

    NOT_IN_CURRENT = "not_in_current"
    VALUE_DIFFERS = "value_differs"
    KEY_NOT_IN_MANIFEST = "key_not_in_manifest"
    ENTITY_NOT_IN_MANIFEST = "entity_not_in_manifest"
    WAY_BACK = "way_back"
    """It is put back to what it was before a run."""
    ON_REQUEST = "on_request"
    """A user asked for it by hand; for removals, where the other reasons refer to manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """One key of one entity. ``None`` before: not set; ``None`` after: removed. The two are never equal."""

    key: str
    before: float | None
    after: float | None
    reason: Reason
    source: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Everything that happens to one entity; it is written whole or not at all."""

    entity: Entity
    action: Action
    keys: tuple[KeyChange, ...]
    """Sorted by key."""
    note: str | None = None

    def alteration(self) -> Alteration:
        """What is sent for this change."""
        return Alteration(
            entity=self.entity, ops={k.key: k.after for k in self.keys}, before={k.key: k.before for k in self.keys}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The atomic unit of writing: one entity, its keys to set, and (``None``) its keys to remove."""

    entity: Entity
    ops: Mapping[str, float | None]
    before: Mapping[str, float | None] | None = field(default=None, compare=False)
    """What the keys of ``ops`` were when this was decided. A cluster that can compare and set refuses the alteration when one is
    something else by then; one that cannot ignores this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterationResult:
    """The cluster's answer for one entity; code 0 is success."""

    entity: Entity
    error_code: int = 0
    error: str | None = None
    stale: bool = False
    """Not done, because the cluster no longer had what ``before`` says; ``error`` says what it has. Never with code 0."""
