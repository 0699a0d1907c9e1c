"""One line of an audit file: who changed what cluster when, and how it ended.

It has counts and the digest, no entities and no values: those are in the report.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.documents.apply_report import counts_of_changes, failure_reason_of
from reconciler.documents.codec import row
from reconciler.documents.document import Document
from reconciler.documents.values import VALUES
from reconciler.errors import RefusedError
from reconciler.model import (
    ApplyReport,
    ApplyResult,
    ChangeStatus,
    ClusterIdentity,
    Count,
    Digest,
    GuardStatus,
    ManifestCommit,
)


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
    withheld: tuple[str | None, ...] = ()
    """Owners whose changes the run did not write.

    ``None`` stands for entities that belong to no owner. Absent when nothing was withheld.
    """


AUDIT: Final = Document(
    cls=AuditRecord,
    name="audit",
    title="kafka-quotas audit record",
    codec=VALUES.extended({AuditRecord: row("*run ended digest accepted summary verified result failure_reason withheld?")}),
    called="a record of a run",
)


def audit_line(run: AuditedRun, ending: ApplyReport | BaseException, *, at: datetime.datetime) -> str:
    """The line of a run that ended with a report, or with an error before it wrote anything; ``at`` is its end, in UTC.

    ASCII only, so no name can break the line.
    """
    return json.dumps(AUDIT.write(_record(run, ending, at)), separators=(", ", ": "), allow_nan=False)


def _record(run: AuditedRun, ending: ApplyReport | BaseException, at: datetime.datetime) -> AuditRecord:
    if isinstance(ending, BaseException):
        result = ApplyResult.REFUSED if isinstance(ending, RefusedError) else ApplyResult.FAILED
        summary = dict.fromkeys(ChangeStatus, 0)
        return AuditRecord(run=run, ended=at, result=result, failure_reason=failure_reason_of(ending), summary=summary)
    return AuditRecord(
        run=replace(run, cluster=ending.cluster),
        ended=at,
        digest=ending.digest,
        accepted=tuple(sorted(guard.id for guard in ending.guards if guard.status is GuardStatus.ACCEPTED)),
        summary=counts_of_changes(ending),
        verified=ending.verified,
        result=ending.result,
        failure_reason=ending.failure_reason,
        withheld=tuple(each.owner for each in ending.withheld),
    )
