"""Writing down what was applied, for a later ``drift --baseline FILE``; only after a run that left nothing open."""

from __future__ import annotations

from pathlib import Path

from reconciler.documents import baseline_to_json
from reconciler.errors import FileAccessError, UsageError
from reconciler.files import write_whole
from reconciler.formats import document_text
from reconciler.model import ApplyReport, ApplyResult
from reconciler.workflows.git_repository import source_of
from reconciler.workflows.plan import Intent


def check_recordable(intent: Intent, path: Path, *, validate_only: bool) -> None:
    """Find out before anything is written to the cluster whether a baseline can be recorded at the end.

    Raises ``UsageError`` when the run will not show a whole desired state, ``FileAccessError`` when the folder is missing.
    """
    if validate_only:
        msg = "--record-baseline and --validate-only exclude each other: nothing is applied that could be recorded"
        raise UsageError(msg)
    if not intent.desired.complete:
        msg = "--record-baseline needs all manifests: a baseline of some files would make the rest look unmanaged"
        raise UsageError(msg)
    if not path.parent.is_dir() or path.is_dir():
        msg = f"cannot write the baseline {path}: {'it is a folder' if path.is_dir() else 'its folder does not exist'}"
        raise FileAccessError(msg)


def is_clean(report: ApplyReport) -> bool:
    """True when the cluster was seen to have all that is desired."""
    nothing_left = report.result is ApplyResult.NOTHING_TO_DO and not report.outcomes
    return nothing_left or (report.result is ApplyResult.DONE and report.verified)


def write_baseline(intent: Intent, report: ApplyReport, path: Path) -> None:
    """Write the baseline whole or not at all. Raises ``FileAccessError``."""
    write_whole(path, [document_text(baseline_to_json(intent.desired, report.cluster, source_of(Path(intent.paths[0]))))])
