"""Apply reports, with the values before each change, from which ``revert`` undoes a run, and the lines of an audit file.

A line has counts, the digest and the names of at most 50 entities. Values are in the report.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Final

from reconciler.documents.codec import Keyed, row
from reconciler.documents.document import VALUES, Document
from reconciler.documents.kinds import FieldError
from reconciler.documents.plan import require_differences, require_digest
from reconciler.errors import FileAccessError, GuardRefusedError, ReconcilerError, RefusedError
from reconciler.formats import field_path
from reconciler.model import (
    KNOWN_KEYS,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    Count,
    Digest,
    Entity,
    GuardStatus,
    KeyChange,
    ManifestCommit,
    Prediction,
    Reason,
    RunContext,
    RunFacts,
    WatchRecord,
    in_canonical_order,
)


def _check(report: ApplyReport) -> None:
    require_differences(outcome.change for outcome in report.outcomes)
    if len({outcome.change.entity for outcome in report.outcomes}) != len(report.outcomes):
        raise FieldError("changes", "has an entity twice")
    for index, outcome in enumerate(report.outcomes):
        for key in outcome.change.keys:
            if key.key not in KNOWN_KEYS:
                raise FieldError(field_path(("changes", index, "keys", key.key)), "must be a quota key that this version writes")
        if not outcome.reached.keys() <= {key.key for key in outcome.change.keys}:
            raise FieldError(f"changes[{index}].reached", "must have values of keys of the same change")
        if not all(outcome.reached.values()):
            raise FieldError(f"changes[{index}].reached", "must be filled for each key")


_CODEC: Final = VALUES.extended(
    {
        ApplyReport: row(
            "cluster digest result failure_reason message validate_only verified seconds? brokers? summary=counts! "
            "changes=outcomes findings guards=refused_by? *facts"
        ),
        RunFacts: row("context? predictions? watch? ended?"),
        RunContext: row("job pull_request"),
        Prediction: row(" ".join(each.name for each in fields(Prediction))),
        WatchRecord: row("source steps given_back seconds_to_give_back"),
        Change: row("entity action keys", keys=Keyed("key", {"reason": Reason.VALUE_DIFFERS})),
        ChangeOutcome: row("*change status error_code error reached?"),
        KeyChange: row("before after"),
    }
)
APPLY_REPORT: Final = Document(
    cls=ApplyReport,
    name="apply-report",
    title="kafka-quotas apply report",
    codec=_CODEC,
    called="an apply report written by 'apply --report'",
    check=_check,
)


def read_apply_report(text: str, *, name: str) -> ApplyReport:
    """The report of a run that had a plan, without guards and reasons.

    Raises as ``Document.read``, and ``UnusableDocumentError`` for another digest than its changes have.
    """
    report = APPLY_REPORT.read(text, name=name)
    if report.digest is None:
        raise FileAccessError(f"{name} cannot be used: its digest is null, since the run ended before anything was written")
    require_digest(report.digest, report.cluster.id, [outcome.change for outcome in report.outcomes], name=name)
    return report


def failed_apply(error: BaseException, *, cluster: ClusterIdentity, validate_only: bool) -> ApplyReport:
    """Report a run that an error ended before there was a plan to write, or anything written."""
    return ApplyReport(
        cluster=cluster,
        result=ApplyResult.REFUSED if isinstance(error, RefusedError) else ApplyResult.FAILED,
        failure_reason=failure_reason_of(error),
        message=str(error) or failure_reason_of(error),
        validate_only=validate_only,
        refused_by=tuple(error.guard_ids) if isinstance(error, GuardRefusedError) else (),
    )


def failure_reason_of(error: BaseException) -> str:
    """The ``failure_reason`` of a run that an error ended."""
    if isinstance(error, ReconcilerError):
        return error.failure_reason
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """What is known of a run, however it ends."""

    command: str
    """The command that wrote the line."""
    started: datetime.datetime
    """UTC."""
    os_user: str
    """The account of the process, by the system's list of users."""
    principal: str | None = None
    """The name that the client's settings give, without its type. ``None`` when they have none. Brokers may map it."""
    source: ManifestCommit = field(default_factory=ManifestCommit)
    """Commit of the manifests. Its fields are ``None`` outside of git."""
    cluster: ClusterIdentity = field(default_factory=ClusterIdentity)
    """The cluster. A field is ``None`` when its value is not known."""
    validate_only: bool = False
    """True when nothing was to be written."""
    context: RunContext | None = None
    """Why the run was made: its CI job and the merged pull request. Absent outside of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCounts:
    """How the steps of a run were watched, without names."""

    steps: Count
    """Steps that were watched."""
    groups: Count
    """The most quota groups of one step, each once for each broker."""
    throttled: Count
    """Those of the last step that brokers throttled more than a backtest predicted, or than 1 % of the time without one."""
    given_back: bool | None
    """Whether every broker shows the values from before the last step again. ``None``: no step was given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One run: who changed what cluster when, and how it ended."""

    run: AuditedRun
    ended: datetime.datetime
    """UTC. When the line was made."""
    digest: Digest | None = None
    """Of the plan. ``None`` when the run ended before there was one."""
    accepted: tuple[str, ...] = ()
    """Guards that tripped and were accepted, on the command line or in the manifest."""
    summary: Mapping[ChangeStatus, Count]
    """Counts of entities, as in the apply report."""
    verified: bool = False
    """True when every broker showed the written values when they were read back."""
    result: ApplyResult
    """How the run ended. done: written and verified, or validated. Nothing_to_do: no change. Refused: not started. Partial:
    something was written and the run did not complete. Failed: nothing was written.
    """
    failure_reason: str | None
    """Machine-readable word for the cause of a failure, such as guard, stale-plan or unreachable. ``None`` after a success."""
    watched: WatchCounts | None = None
    """How the steps were watched. Absent when none was to be."""
    entities: tuple[Entity, ...] = ()
    """Entities that the run changed or may have changed. Absent when there are none, more than 50, or very long names."""

    @property
    def has_written(self) -> bool:
        """Whether the run could have changed a cluster."""
        return not self.run.validate_only and self.result is not ApplyResult.NOTHING_TO_DO

    def is_of(self, cluster: ClusterIdentity) -> bool:
        """Return whether it was a run on this cluster."""
        return self.run.cluster.is_same(cluster)

    def may_have_written(self, entity: Entity) -> bool:
        """Return whether the run can have changed this entity. A line without names can be of any entity."""
        return self.has_written and (not self.entities or entity in self.entities)


_MOST_ENTITIES: Final = 50
_MOST_TEXT: Final = 20_000
AUDIT_ROWS: Final = {
    AuditedRun: row("command started os_user principal source cluster validate_only context?"),
    AuditRecord: row("*run ended digest accepted summary verified result failure_reason watched? entities?"),
}
AUDIT: Final = Document(
    cls=AuditRecord,
    name="audit",
    title="kafka-quotas audit record",
    codec=VALUES.extended(AUDIT_ROWS),
    called="a record of a run",
)


def audit_line(run: AuditedRun, ending: ApplyReport | BaseException, *, at: datetime.datetime) -> str:
    """The line of a run that ended with a report, or with an error before it wrote anything; ``at`` is its end, in UTC.

    ASCII only, so no name can break the line.
    """
    return json.dumps(AUDIT.write(_record(run, ending, at)), separators=(", ", ": "), allow_nan=False)


def _record(run: AuditedRun, ending: ApplyReport | BaseException, at: datetime.datetime) -> AuditRecord:
    if isinstance(ending, BaseException):
        ending = failed_apply(ending, cluster=run.cluster, validate_only=run.validate_only)
    return AuditRecord(
        run=replace(run, cluster=ending.cluster),
        ended=at,
        digest=ending.digest,
        accepted=tuple(sorted(guard.id for guard in ending.guards if guard.status is GuardStatus.ACCEPTED)),
        summary=ending.counts,
        verified=ending.verified,
        result=ending.result,
        failure_reason=ending.failure_reason,
        watched=None if ending.facts.watch is None else _counts_of_watch(ending.facts.watch),
        entities=_changed_entities(ending),
    )


def _changed_entities(report: ApplyReport) -> tuple[Entity, ...]:
    changed = (
        outcome.change.entity
        for outcome in report.outcomes
        if outcome.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) or outcome.reached
    )
    entities = () if report.validate_only else tuple(in_canonical_order(changed))
    is_short = len(entities) <= _MOST_ENTITIES and sum(len(str(entity)) for entity in entities) <= _MOST_TEXT
    return entities if is_short else ()


def _counts_of_watch(watch: WatchRecord) -> WatchCounts:
    return WatchCounts(
        steps=len(watch.steps),
        groups=max((step.groups for step in watch.steps), default=0),
        throttled=len(watch.steps[-1].exceeding) if watch.steps else 0,
        given_back=watch.given_back,
    )
