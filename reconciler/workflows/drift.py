"""Drift: live against declared quotas, and against the baseline, which distinguishes merged changes from manual ones.

Nothing here can write: all that it is given of a cluster is a reader.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.documents import BASELINE, RecordedBaseline, baseline_of, read_baseline
from reconciler.errors import BaselineError, FileAccessError, GitError, UsageError
from reconciler.files import write_whole
from reconciler.logs import log_event
from reconciler.manifest import compute_units
from reconciler.model import (
    ApplyReport,
    ApplyResult,
    Baseline,
    BaselineKind,
    BaselineOrigin,
    ClusterIdentity,
    CurrentState,
    Drift,
    ManifestCommit,
)
from reconciler.planning import (
    compare,
    forgotten_entities,
    forgotten_note,
    possible_overrides,
    unalterable_entities,
    unalterable_notes,
)
from reconciler.ports import QuotaReader
from reconciler.resolution import callback_notes
from reconciler.text import shown
from reconciler.workflows.connect import read_for
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
from reconciler.workflows.git_repository import repository_around
from reconciler.workflows.intent import Intent
from reconciler.workflows.trusted import TrustedTree, declared_at
from reconciler.workflows.units import declared_values, divide_totals

_log: Final = logging.getLogger(__name__)
_MOST_NAMED: Final = 5
_NO_BASELINE: Final = (
    "no baseline was given, so unapplied changes look the same as changes by hand. Entities that left the manifests look the "
    "same as entities that were never in them. Pass --baseline REF or FILE"
)


def find_drift(intent: Intent, reader: QuotaReader, given: GivenBaseline | None = None) -> Drift:
    """Read the cluster and compare, and look for leftovers of finished work.

    Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does, and ``BaselineError`` for the
    baseline of another one.
    """
    # Imported here: a plan with a baseline needs nothing of it.
    from reconciler.workflows.leftovers import find_leftovers

    current = read_for(intent, reader)
    drift = drift_from(intent, current, given, source=intent.source())
    findings, notes = find_leftovers(reader, current.entities)
    return replace(drift, findings=(*drift.findings, *findings), notes=(*drift.notes, *notes)) if findings or notes else drift


def drift_from(intent: Intent, current: CurrentState, given: GivenBaseline | None = None, *, source: ManifestCommit) -> Drift:
    """The drift between two states, without reading anything. Raises ``BaselineError`` for the baseline of another cluster."""
    if intent.desired.with_units:
        intent = divide_totals(intent, current)
    baseline = given.of(intent.spec.name, current) if given is not None else None
    spec = intent.spec
    declared_then = baseline.entities if baseline else None
    compared = compare(
        intent.desired,
        current.entities,
        declared_then,
        scope=spec.scope,
        prune=spec.prune,
        unmanaged_then=baseline.unmanaged if baseline else None,
    )
    quiet = possible_overrides(compared.overrides, baseline.unmanaged if baseline else None)
    drift = Drift(
        cluster=current.cluster.named(spec.name),
        source=source,
        observed=current.observed,
        complete=intent.desired.complete,
        prune=spec.prune,
        baseline=baseline.origin if baseline else None,
        entities=compared.entities,
        counts=compared.counts,
        notes=(*current.notes, *intent.notes, *((quiet,) if quiet is not None else ()), *_notes(intent, current, baseline)),
        findings=intent.findings,
    )
    counts = {each.value: count for each, count in drift.counts.items()}
    log_event(_log, "drift found", level=logging.INFO, cluster=spec.name, **counts)
    return drift


def _notes(intent: Intent, current: CurrentState, baseline: Baseline | None) -> Iterator[str]:
    yield from callback_notes(current.cluster)
    yield from (node.message for node in current.unreadable)
    yield from unalterable_notes(unalterable_entities(intent.desired, current.entities, intent.spec.scope))
    if baseline is None:
        yield _NO_BASELINE
        return
    gone = forgotten_entities(baseline.entities, intent.desired, current, intent.spec.scope)
    if gone:
        yield forgotten_note(gone, baseline.origin.name)


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
        msg = f"cannot write the baseline {path}: {'the path is a folder' if path.is_dir() else 'the folder does not exist'}"
        raise FileAccessError(msg)


def is_clean(report: ApplyReport) -> bool:
    """True when a run verified that the cluster has every desired quota."""
    nothing_left = report.result is ApplyResult.NOTHING_TO_DO and not report.outcomes
    return nothing_left or (report.result is ApplyResult.DONE and report.verified)


def write_baseline(intent: Intent, report: ApplyReport, path: Path) -> None:
    """Write the baseline whole or not at all. Raises ``FileAccessError``."""
    facts = report.facts
    desired, _ = compute_units(intent.desired, facts.totals)
    write_whole(path, [BASELINE.text(baseline_of(desired, report.cluster, intent.source(), unmanaged=facts.unmanaged))])


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBaseline:
    """A baseline of either kind, read before the cluster is asked: a file's, or the manifests at a reference."""

    name: str
    recorded: RecordedBaseline | None = None
    at: ManifestsAt | None = None

    def of(self, name: str | None, current: CurrentState) -> Baseline:
        """The baseline for the cluster that the manifests call ``name``. Raises ``BaselineError`` for the file of another one."""
        if self.at is not None:
            origin = BaselineOrigin(kind=BaselineKind.REF, name=self.name, commit=self.at.commit)
            return Baseline(entities=declared_values(declared_at(self.at, name), current), origin=origin)
        assert self.recorded is not None
        _require_same_cluster(self.name, self.recorded, current.cluster)
        origin = BaselineOrigin(kind=BaselineKind.FILE, name=self.name, commit=self.recorded.source.commit)
        return Baseline(entities=self.recorded.entities, origin=origin, unmanaged=self.recorded.unmanaged)


def given_baseline(name: str, paths: Sequence[str], *, trusted: TrustedTree | None = None) -> GivenBaseline:
    """A file of that name, with ``trusted`` as the reference has it, else a git reference.

    Raises ``UsageError`` when it could be both, ``GitError`` or ``ManifestError`` for a reference that cannot be used,
    ``BaselineError`` for a file that is not a baseline, and ``UntrustedError`` for one that only the work tree's commit has.
    """
    if not Path(name).is_file():
        return GivenBaseline(name=name, at=manifests_at(name, paths))
    if _is_reference(name, paths):
        msg = f"{shown(name)} is a file and a git reference. Write ./{name} for the file, or refs/heads/{name}"
        raise UsageError(msg)
    return GivenBaseline(name=name, recorded=read_baseline(_text(name, trusted), name=name))


def _require_same_cluster(name: str, recorded: RecordedBaseline, cluster: ClusterIdentity) -> None:
    if recorded.cluster.id is None or recorded.cluster.id == cluster.id:
        return
    msg = (
        f"{name} is the baseline of cluster {recorded.cluster.id} ({recorded.cluster.name or 'no name'}), and "
        f"{cluster.id or 'an unknown one'} answers. Nothing was compared"
    )
    raise BaselineError(msg)


def _is_reference(name: str, paths: Sequence[str]) -> bool:
    try:
        repository_around(paths[0]).commit(name)
    except (GitError, UsageError):
        return False
    return True


def _text(name: str, trusted: TrustedTree | None) -> str:
    try:
        content = Path(name).read_bytes() if trusted is None else trusted.files.read(name)[0]
        return content.decode("utf-8")
    except OSError as error:
        msg = f"the baseline {name} cannot be read: {error.strerror}"
        raise FileAccessError(msg) from error
    except UnicodeDecodeError:
        msg = f"the baseline {name} is not UTF-8 text"
        raise FileAccessError(msg) from None
