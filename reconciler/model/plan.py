"""Changes, a plan of them with its guards, and the report of its apply: what was decided, and what became of each change."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from reconciler.model.cluster import TrafficKind, slug_of
from reconciler.model.effect import PlanEffects
from reconciler.model.entity import Entity
from reconciler.model.finding import Count, Digest, Finding, Severity, Span
from reconciler.model.quota import BrokerFacts, QuotaUnit
from reconciler.model.state import ClusterIdentity, Observed, ObservedFrom, ValueExpiry, same_value

if TYPE_CHECKING:
    from reconciler.model.run_context import Prediction, RunContext, WatchRecord

NO_LONGER_DECLARED: Final = "no-longer-declared"
"""The finding about an entity that left the manifests and that ``prune: never`` keeps."""

OVERRIDES_DECLARED: Final = "overrides-declared"
"""The finding about an undeclared entity that overrides a declared limit, and that ``prune: never`` keeps."""

UNALTERABLE: Final = "unalterable-entity"
"""The finding about undeclared entities whose change brokers refuse."""

MAY_OVERRIDE_DECLARED: Final = "may-override-declared"
"""The one finding about all undeclared entities that may override a declared limit for some client, if there is such a client."""


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
    """A user asked for it by hand. For removals, where the other reasons refer to manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """One key of one entity. ``None`` before: not set. ``None`` after: removed. The two are never equal."""

    key: str
    before: float | None
    """``None``: not set."""
    after: float | None
    """``None``: not set."""
    reason: Reason
    """Why the key changes."""
    source: Span | None = None
    """Where the manifests declare it. ``None``: they do not."""
    profile: str | None = None
    """The profile that sets the value. Then ``source`` is a place in it."""
    unit: QuotaUnit | None = None
    """What ``after`` was computed from."""
    brokers_before: int | None = None
    """``before`` is the part of the same total for so many brokers: the value changes because brokers came or went."""
    expiry: ValueExpiry | None = None
    """When ``after`` expires, or which value expired before it."""
    as_before: bool = False
    """True when a plan of the base has the same change: the cluster differs from the base already."""

    @property
    def is_fallback(self) -> bool:
        """True when the cluster has exactly the value that expired, and gets what the manifests declare to follow it."""
        return self.expiry is not None and self.expiry.expired and same_value(self.before, self.expiry.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Everything that happens to one entity. It is written whole or not at all."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    action: Action
    """Create: the entity has no quotas yet. Update: it has some. Delete: all its quotas are removed."""
    keys: tuple[KeyChange, ...]
    """Sorted by key."""
    note: str | None = None
    """The note of the entry in the manifest."""

    def alteration(self) -> Alteration:
        """Return the alteration that is sent for this change."""
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
    something else by then. One that cannot ignores this."""


class AlterationResult(NamedTuple):
    """The cluster's answer for one entity. Code 0 is success. A tuple, since an apply has one for each change twice."""

    entity: Entity
    error_code: int = 0
    error: str | None = None
    stale: bool = False
    """Not done, because the cluster's value was no longer ``before``. ``error`` states the value now. Never with code 0."""


class GuardStatus(enum.StrEnum):
    """Where a guard stands."""

    PASSED = "passed"
    NEEDS_ACCEPTANCE = "needs-acceptance"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """One guard, measured. ``set_in`` is ``file:line:column`` or ``built in``. ``message``: the changes that it saw."""

    id: str
    """Name of the guard, as --accept takes it."""
    status: GuardStatus
    """Passed: within its limit. Needs-acceptance: tripped, and nothing is written. Accepted: tripped and accepted."""
    measured: str
    """What the guard measured, for people."""
    limit: str
    """The limit that it was compared with, for people."""
    set_in: str
    """File:line:column, or 'built in'."""
    message: str
    advice: str | None = None
    """How to accept it, when it needs acceptance."""
    entities: tuple[Entity, ...] = ()
    """The entities that an exception has to name, when it needs acceptance. Empty where they are more than ``MOST_EXCEPTED``."""


MOST_EXCEPTED: Final = 20
"""Entities that an exception may reasonably name one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestCommit:
    """The commit the manifests were read from, when they are in git."""

    commit: str | None = None
    """Commit id of the manifests. ``None`` outside of git."""
    dirty: bool | None = None
    """True when the files differ from the commit. ``None`` outside of git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEntity:
    """An entity that left the manifests, and whose quotas stay because of ``prune: never``. ``since``: where it was declared."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    quotas: Mapping[str, float]
    """Quota key to the value that stays, per broker."""
    since: str
    """Where the entity was declared: a place at the base, or the name of the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of entities."""

    create: Count = 0
    """Entities that get their first quotas."""
    update: Count = 0
    """Entities whose quotas change."""
    delete: Count = 0
    """Entities that lose all their quotas."""
    unchanged: Count = 0
    """Declared entities that the cluster has as declared."""
    unmanaged: Count = 0
    """Entities in scope that no manifest declares and that the plan leaves."""

    @property
    def changed(self) -> int:
        """Entities that would be written."""
        return self.create + self.update + self.delete


_NO_TOTALS: Final = BrokerFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be written, in writing order, and whether it may be."""

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    source: ManifestCommit
    """Commit of the manifests. Its fields are ``None`` outside of git."""
    observed: Observed
    """When and from where the quotas were read."""
    complete: bool
    """False when only some manifests were planned. Such a plan never prunes."""
    summary: Summary
    """Number of entities by what the plan does with them."""
    changes: tuple[Change, ...]
    """The changes, one for each entity, in writing order."""
    guards: tuple[GuardResult, ...]
    """Every guard with its measured value and its limit."""
    digest: Digest
    """SHA-256 over the cluster id and the changes. apply --expect-digest writes only a plan with this digest."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the result covers and what it does not."""
    findings: tuple[Finding, ...] = ()
    """Findings about the manifests and the cluster."""
    effects: PlanEffects | None = None
    """Which clients move to other limits. Only when asked for."""
    totals: BrokerFacts = _NO_TOTALS
    """Among which brokers totals are divided. Empty when the manifests declare no total."""
    kept: tuple[KeptEntity, ...] = ()
    """What was deleted from the manifests and is not removed from the cluster, sorted."""

    @property
    def tripped(self) -> tuple[GuardResult, ...]:
        """Guards that are not accepted yet."""
        return tuple(g for g in self.guards if g.status is GuardStatus.NEEDS_ACCEPTANCE)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """Return the findings about undeclared entities that this plan leaves: they left the manifests, or override a limit."""
        return tuple(finding for finding in self.findings if finding.id in (NO_LONGER_DECLARED, OVERRIDES_DECLARED))

    @property
    def errored(self) -> bool:
        """True when the manifests or the broker's check have errors: the plan can be read, never applied."""
        return any(f.severity is Severity.ERROR for f in self.findings)

    @property
    def applyable(self) -> bool:
        """True when ``apply`` would write this (or, if empty, would have nothing to do)."""
        return not self.errored and not self.tripped


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
    """Entities whose change was written."""
    FAILED = "failed"
    """Entities whose change the cluster refused."""
    UNKNOWN = "unknown"
    """Entities whose change was sent without an answer, and whose state could not be read afterwards."""
    NOT_ATTEMPTED = "not_attempted"
    """Entities whose change was never sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOutcome:
    """One change and its fate. The change carries the values before, from which ``revert`` finds its way back."""

    change: Change
    status: ChangeStatus
    """Applied: written. Failed: refused by the cluster. Unknown: sent, without a known outcome. Not_attempted: never sent."""
    error_code: int | None = None
    """Kafka error code of the answer. ``None`` without one."""
    error: str | None = None
    """Why the change failed, or why its outcome is unknown. ``None`` otherwise."""
    reached: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Where a run that lowers in steps stopped on the way: for each such key, the values one of which it has now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of a run beside its outcomes."""

    context: RunContext | None = None
    """Why the run was made: its CI job and the merged pull request. Absent outside of a job."""
    totals: BrokerFacts = _NO_TOTALS
    unmanaged: tuple[Entity, ...] = ()
    """Entities in the scope that no manifest declares and that the run left, for a baseline."""
    predictions: tuple[Prediction, ...] = ()
    """What a backtest predicted of the quota groups that the run changes. Absent where none was given."""
    watch: WatchRecord | None = None
    """What the clients of each step showed. Absent when no step was to be watched."""
    ended: datetime.datetime | None = None
    """UTC. When the run ended. Absent when nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyReport:
    """How a run of apply ended; also of one that an error ended before it had a plan to write."""

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    digest: Digest | None = None
    """The digest of what was to be written. ``None`` when the run ended before that was known. Nothing was written then."""
    result: ApplyResult
    """How the run ended. done: written and verified, or validated. Nothing_to_do: no change. Refused: not started. Partial:
    something was written and the run did not complete. Failed: nothing was written.
    """
    outcomes: tuple[ChangeOutcome, ...] = ()
    """Every planned change and its outcome, in writing order."""
    verified: bool = False
    """True when every broker showed the planned values when read back."""
    failure_reason: str | None = None
    """Machine-readable word for the cause of a failure, such as guard, stale-plan or unreachable. ``None`` after a success."""
    message: str | None = None
    """The cause of a failure as a sentence for people. ``None`` after a success."""
    validate_only: bool = False
    """True when the brokers only validated the changes and nothing was written."""
    guards: tuple[GuardResult, ...] = ()
    refused_by: tuple[str, ...] = ()
    """Guards that refused the run."""
    origin: ObservedFrom = ObservedFrom.BROKER
    """Where the cluster's quotas were read and written."""
    seconds: float | None = None
    """How many seconds writing and reading back took. ``None`` when nothing was to be written."""
    brokers: int | None = None
    """How many brokers showed the planned values when read back.

    ``None`` when the run is not verified, or when the quotas are in ZooKeeper.
    """
    findings: tuple[Finding, ...] = ()
    """Warnings about undeclared entities that the run left as they are although they differ from what the manifests declare."""
    facts: RunFacts = RunFacts()

    @property
    def wrote(self) -> bool:
        """True when something may be on the cluster that was not there before."""
        return any(o.reached or o.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) for o in self.outcomes)

    @property
    def counts(self) -> Mapping[ChangeStatus, Count]:
        """Number of entities by the status of their change."""
        return {status: self.count(status) for status in ChangeStatus}

    def count(self, status: ChangeStatus) -> int:
        """Entities with this status."""
        return sum(1 for o in self.outcomes if o.status is status)


class ClusterChange(enum.StrEnum):
    """What became of a cluster's part of the manifests."""

    SAME = "same"
    CHANGED = "changed"
    NEW = "new"
    """There is no such cluster at the commit, or no commit to compare with."""
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCluster:
    """One cluster. ``reasons``: ``settings``, ``quotas``, or that it is not known. ``trusted``: it may be asked."""

    name: str
    """Of the Cluster manifest."""
    change: ClusterChange
    """New: not there then, or nothing to compare with. Removed: there then, and no more."""
    since: str | None = None
    """The commit that was compared with."""
    reasons: tuple[str, ...] = ()
    """Why it counts as changed: its Cluster manifest (settings), its quotas, or errors in the manifests now (errors here) or
    at the earlier commit (errors there).
    """
    trusted: bool = True
    """The trusted reference, if one was given, has it too."""
    traffic: TrafficKind | None = None
    """What ``spec.traffic`` of its Cluster manifest names, of the trusted reference if one was given. Null: nothing."""

    @property
    def slug(self) -> str:
        """The name for git references and files. See ``slug_of``."""
        return slug_of(self.name)

    @property
    def to_do(self) -> bool:
        """True when a plan for this cluster can be made, and may be another than before."""
        return self.trusted and self.change in (ClusterChange.CHANGED, ClusterChange.NEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFailure:
    """Why there is no result for a cluster. ``skipped``: there cannot be one yet, which is not a failure of the run.

    ``failure_reason`` is the word of the error tree. ``findings`` are those that stopped it, when it was the manifests.
    """

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    failure_reason: str
    """Machine-readable word for the cause of a failure, such as guard, stale-plan or unreachable. ``None`` after a success."""
    message: str
    """The error as a sentence for people."""
    skipped: bool = False
    """True for a cluster that the trusted reference does not have yet."""
    findings: tuple[Finding, ...] = ()
    """Findings about the manifests and the cluster."""
