"""The runs of audit files, which ``apply --audit`` and ``run --audit`` write."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from reconciler.documents import VALUES, Document, parse, row
from reconciler.errors import FileAccessError
from reconciler.model import ClusterIdentity, Count, ManifestCommit, RunContext, escaped
from reconciler.text import count_of
from reconciler.workflows import TrustedFiles

MOST_RUNS: Final = 200
"""Runs that are kept; of each audit file so many of the last lines are kept while it is read."""
_LONGEST_LINE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """How many entities a run wrote, and what became of the others."""

    applied: Count = 0
    """Entities whose change was written."""
    failed: Count = 0
    """Entities whose change the cluster refused."""
    unknown: Count = 0
    """Entities whose change was sent without an answer, and whose state could not be read afterwards."""
    not_attempted: Count = 0
    """Entities whose change was never sent."""

    @property
    def words(self) -> tuple[tuple[str, int], ...]:
        """Each count with its words."""
        counts = (self.applied, self.failed, self.unknown, self.not_attempted)
        return tuple(zip(("applied", "failed", "unknown", "not attempted"), counts, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run of an audit file."""

    file: str = ""
    """The audit file."""
    started: datetime.datetime
    """UTC."""
    ended: datetime.datetime
    """UTC."""
    command: str
    """The command that ran."""
    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    result: str
    """``done``, ``nothing_to_do``, ``refused``, ``partial`` or ``failed``."""
    failure_reason: str | None
    """Machine-readable word for the cause of a failure, such as guard, stale-plan or unreachable. ``None`` after a success."""
    verified: bool
    """True when every broker showed the written values when they were read back."""
    validate_only: bool
    """True when the brokers only validated the changes and nothing was written."""
    counts: RunCounts
    """Number of entities by the status of their change."""
    accepted: tuple[str, ...]
    """Guards that tripped and were accepted."""
    principal: str | None
    """Name that the client settings give. ``None`` when they have none."""
    os_user: str
    """Account of the process."""
    source: ManifestCommit
    """The commit of the manifests, when they are in git."""
    context: RunContext | None = None
    """Why the run was made. ``None`` outside of a job."""

    @property
    def has_written(self) -> bool:
        """Whether it could have changed a cluster."""
        return not self.validate_only and self.result != "nothing_to_do"

    def is_of(self, cluster: ClusterIdentity) -> bool:
        """Return whether it was a run on this cluster."""
        return is_same_cluster(self.cluster, cluster)


def is_same_cluster(cluster: ClusterIdentity, other: ClusterIdentity) -> bool:
    """Compare by the clusters' own ids where both are known, else by their names."""
    if cluster.id is not None and other.id is not None:
        return cluster.id == other.id
    return cluster.name is not None and cluster.name == other.name


_RECORD: Final = Document(
    cls=RunRecord,
    name="audit",
    title="",
    codec=VALUES.extended(
        {
            RunRecord: row(
                "started ended command cluster result failure_reason verified validate_only summary=counts accepted principal "
                "os_user source context?"
            ),
        }
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRuns:
    """The latest runs of some files, the latest first. ``notes`` report lines that are not a record of a run."""

    runs: tuple[RunRecord, ...] = ()
    left_out: int = 0
    notes: tuple[str, ...] = ()


def read_runs(files: Sequence[str], *, trusted: TrustedFiles | None = None) -> RecordedRuns:
    """Read audit files. Raises ``FileAccessError`` for one that cannot be read.

    With ``trusted`` it raises ``UntrustedError`` for one that git tracks and that differs from the reference.
    """
    read: list[RecordedRuns] = []
    for name in files:
        if trusted is not None:
            trusted.require_same(name)
        try:
            with Path(name).open("rb") as file:
                read.append(runs_of(file, name))
        except OSError as error:
            raise FileAccessError(f"cannot read the audit file {name}: {error.strerror}") from error
    runs = sorted((run for each in read for run in each.runs), key=lambda run: (run.ended, run.started), reverse=True)
    left_out = sum(each.left_out for each in read) + len(runs[MOST_RUNS:])
    return RecordedRuns(
        runs=tuple(runs[:MOST_RUNS]), left_out=left_out, notes=tuple(note for each in read for note in each.notes)
    )


def runs_of(file: BinaryIO, name: str) -> RecordedRuns:
    """The last lines of an opened audit file, in the order of the file, with its name."""
    kept: deque[RunRecord] = deque(maxlen=MOST_RUNS)
    wrong, bad, total, number = "", 0, 0, 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if not line.strip():
            continue
        try:
            kept.append(replace(_RECORD.build(parse(line)), file=name))
            total += 1
        except (ValueError, RecursionError) as error:
            bad += 1
            wrong = wrong or f"{escaped(name)}:{number} is not a line that --audit writes, and is left out: {error}"
    notes = (wrong if bad == 1 else f"{wrong}. So are {count_of(bad - 1, 'more line')}",) if wrong else ()
    return RecordedRuns(runs=tuple(kept), left_out=total - len(kept), notes=notes)
