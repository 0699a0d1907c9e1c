"""The report of an apply: for every change what happened to it, truthfully."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.change import Change
from reconciler.model.finding import Finding
from reconciler.model.plan import GuardResult
from reconciler.model.state import ClusterIdentity, ObservedFrom


class ApplyResult(enum.StrEnum):
    """How a run ended. Only ``PARTIAL`` means that something may have been written and the run did not complete."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    REFUSED = "refused"
    PARTIAL = "partial"
    FAILED = "failed"


class ChangeStatus(enum.StrEnum):
    """What is known of one change."""

    APPLIED = "applied"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_ATTEMPTED = "not_attempted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOutcome:
    """One change and its fate; the change carries the values before, from which ``revert`` finds its way back."""

    change: Change
    status: ChangeStatus
    error_code: int | None = None
    error: str | None = None
    reached: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Where a run that lowers in steps stopped on the way: for each such key, the values one of which it has now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyReport:
    """The whole run. ``verified``: every broker (or the ZooKeeper, by ``origin``) showed the planned values when read back."""

    cluster: ClusterIdentity
    digest: str
    result: ApplyResult
    outcomes: tuple[ChangeOutcome, ...] = ()
    verified: bool = False
    failure_reason: str | None = None
    message: str | None = None
    validate_only: bool = False
    guards: tuple[GuardResult, ...] = ()
    origin: ObservedFrom = ObservedFrom.BROKER
    """Where the cluster's quotas were read and written."""
    findings: tuple[Finding, ...] = ()
    """About undeclared entities that the run left as they are although they differ from what the manifests say."""

    @property
    def wrote(self) -> bool:
        """True when something may be on the cluster that was not there before."""
        return any(o.reached or o.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) for o in self.outcomes)

    def count(self, status: ChangeStatus) -> int:
        """Entities with this status."""
        return sum(1 for o in self.outcomes if o.status is status)
