"""The runs of audit files, which ``apply --audit`` and ``run --audit`` write."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from reconciler.documents import AUDIT, AuditRecord, parse
from reconciler.errors import FileAccessError
from reconciler.model import escaped
from reconciler.text import count_of

MOST_RUNS: Final = 200
"""Runs that are kept, the last ones of each file."""
_LONGEST_LINE: Final = 1 << 20


def read_runs(files: Sequence[str]) -> tuple[tuple[AuditRecord, ...], tuple[str, ...]]:
    """Return the latest runs of audit files, the latest first, and notes about lines that are not a record of a run.

    Raises ``FileAccessError`` for a file that cannot be read.
    """
    runs: list[AuditRecord] = []
    notes: list[str] = []
    for name in files:
        try:
            with Path(name).open("rb") as file:
                of_file, wrong = runs_of(file, name)
        except OSError as error:
            raise FileAccessError(f"cannot read the audit file {name}: {error.strerror}") from error
        runs, notes = [*runs, *of_file], [*notes, *wrong]
    runs.sort(key=lambda record: (record.ended, record.run.started), reverse=True)
    return tuple(runs[:MOST_RUNS]), tuple(notes)


def runs_of(file: BinaryIO, name: str) -> tuple[tuple[AuditRecord, ...], tuple[str, ...]]:
    """Return the last runs of an opened audit file, in the order of the file, and notes about other lines.

    ``name`` is for the notes.
    """
    kept: deque[AuditRecord] = deque(maxlen=MOST_RUNS)
    wrong: list[str] = []
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        try:
            kept += [AUDIT.build(parse(line))] if line.strip() else []
        except (ValueError, RecursionError) as error:
            wrong.append(f"{escaped(name)}:{number} is not a line that --audit writes, and is left out: {error}")
    notes = wrong if len(wrong) < 2 else [f"{wrong[0]}. So are {count_of(len(wrong) - 1, 'more line')}"]
    return tuple(kept), tuple(notes)
