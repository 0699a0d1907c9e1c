"""A plan: the ordered changes from current to desired, with the guards that judge them."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from reconciler.model.change import Change
from reconciler.model.effect import PlanEffects
from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Severity
from reconciler.model.state import ClusterIdentity, Observed

NO_LONGER_DECLARED: Final = "no-longer-declared"
"""The finding about an entity that left the manifests and that ``prune: never`` keeps."""
OVERRIDES_DECLARED: Final = "overrides-declared"
"""The finding about an undeclared entity that overrides a declared limit, and that ``prune: never`` keeps."""


class GuardStatus(enum.StrEnum):
    """Where a guard stands."""

    PASSED = "passed"
    NEEDS_ACCEPTANCE = "needs-acceptance"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """One guard, measured. ``set_in`` is ``file:line:column`` or ``built in``; ``message``: what it saw, how to accept it."""

    id: str
    status: GuardStatus
    measured: str
    limit: str
    set_in: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestCommit:
    """The commit the manifests were read from, when they are in git."""

    commit: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of entities."""

    create: int = 0
    update: int = 0
    delete: int = 0
    unchanged: int = 0
    unmanaged: int = 0

    @property
    def changed(self) -> int:
        """Entities that would be written."""
        return self.create + self.update + self.delete


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be written, in writing order, and whether it may be."""

    cluster: ClusterIdentity
    source: ManifestCommit
    observed: Observed
    complete: bool
    summary: Summary
    changes: tuple[Change, ...]
    guards: tuple[GuardResult, ...]
    digest: str
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    effects: PlanEffects | None = None
    """Which clients move to other limits; only when asked for."""
    unmanaged: tuple[Entity, ...] | None = None
    """Entities that are left because no manifest declares them, sorted; only when asked for."""

    @property
    def tripped(self) -> tuple[GuardResult, ...]:
        """Guards that nobody accepted yet."""
        return tuple(g for g in self.guards if g.status is GuardStatus.NEEDS_ACCEPTANCE)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """About undeclared entities that differ from what the manifests say, and that this plan leaves."""
        return tuple(one for one in self.findings if one.id in (NO_LONGER_DECLARED, OVERRIDES_DECLARED))

    @property
    def errored(self) -> bool:
        """True when the manifests or the broker's check have errors: the plan can be read, never applied."""
        return any(f.severity is Severity.ERROR for f in self.findings)

    @property
    def applyable(self) -> bool:
        """True when ``apply`` would write this (or, if empty, would have nothing to do)."""
        return not self.errored and not self.tripped
