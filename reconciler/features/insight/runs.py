"""The runs of audit files, which ``apply --audit`` and ``run --audit`` write."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from reconciler.documents import AUDIT, AuditRecord, parse
from reconciler.errors import FileAccessError
from reconciler.model import escaped
from reconciler.text import count_of
from reconciler.workflows import TrustedFiles

MOST_RUNS: Final = 200
"""Runs that are kept; of each audit file so many of the last lines are kept while it is read."""
_LONGEST_LINE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRuns:
    """The latest runs of some files, the latest first. ``notes`` report lines that are not a record of a run."""

    runs: tuple[AuditRecord, ...] = ()
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
    runs = sorted(
        (run for each in read for run in each.runs), key=lambda record: (record.ended, record.run.started), reverse=True
    )
    left_out = sum(each.left_out for each in read) + len(runs[MOST_RUNS:])
    return RecordedRuns(
        runs=tuple(runs[:MOST_RUNS]), left_out=left_out, notes=tuple(note for each in read for note in each.notes)
    )


def runs_of(file: BinaryIO, name: str) -> RecordedRuns:
    """The last lines of an opened audit file, in the order of the file. ``name`` is for notes."""
    kept: deque[AuditRecord] = deque(maxlen=MOST_RUNS)
    wrong, bad, total, number = "", 0, 0, 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if not line.strip():
            continue
        try:
            kept.append(AUDIT.build(parse(line)))
            total += 1
        except (ValueError, RecursionError) as error:
            bad += 1
            wrong = wrong or f"{escaped(name)}:{number} is not a line that --audit writes, and is left out: {error}"
    notes = (wrong if bad == 1 else f"{wrong}. So are {count_of(bad - 1, 'more line')}",) if wrong else ()
    return RecordedRuns(runs=tuple(kept), left_out=total - len(kept), notes=notes)
