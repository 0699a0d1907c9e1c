"""Drift: what is live against what is declared, and against the baseline, which tells merged from changed by hand.

Nothing here can write: all that it is given of a cluster is a reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import BaselineError, FileAccessError, GitError, UsageError
from reconciler.formats.wording import shown
from reconciler.model.drift import Baseline, BaselineKind, BaselineOrigin, Drift
from reconciler.model.entity import Entity
from reconciler.model.selector import Selector, any_matches
from reconciler.model.state import ClusterIdentity, CurrentState, DesiredState, Quotas
from reconciler.planning.baseline import RecordedBaseline, read_baseline
from reconciler.planning.drift import compare
from reconciler.planning.forgotten import forgotten, forgotten_note
from reconciler.ports import QuotaReader
from reconciler.workflows.connect import check_cluster_id
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
from reconciler.workflows.git_repository import repository_around
from reconciler.workflows.git_source import source_of
from reconciler.workflows.plan import Intent
from reconciler.workflows.references import declared_at
from reconciler.workflows.trusted import TrustedTree

_NO_BASELINE: Final = (
    "no baseline was given, so what was merged but not applied is not told from what was changed or removed by hand; "
    "give --baseline REF or FILE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBaseline:
    """A baseline of either kind, read before the cluster is asked: a file's, or the manifests at a reference."""

    name: str
    recorded: RecordedBaseline | None = None
    at: ManifestsAt | None = None

    def of(self, intent: Intent, cluster: ClusterIdentity) -> Baseline:
        """The baseline for this cluster. Raises ``BaselineError`` when the file is of another one."""
        if self.at is not None:
            origin = BaselineOrigin(kind=BaselineKind.REF, name=self.name, commit=self.at.commit)
            return Baseline(entities=_values(declared_at(self.at, intent.spec.name)), origin=origin)
        assert self.recorded is not None
        _require_same_cluster(self.name, self.recorded, cluster)
        origin = BaselineOrigin(kind=BaselineKind.FILE, name=self.name, commit=self.recorded.commit)
        return Baseline(entities=self.recorded.entities, origin=origin)


def given_baseline(name: str, paths: Sequence[str], *, trusted: TrustedTree | None = None) -> GivenBaseline:
    """A file of that name, with ``trusted`` as the reference has it, else a git reference.

    Raises ``UsageError`` when it could be both, ``GitError`` or ``ManifestError`` for a reference that cannot be used,
    ``BaselineError`` for a file that is no baseline, and ``UntrustedError`` for one that only the work tree's commit has.
    """
    if not Path(name).is_file():
        return GivenBaseline(name=name, at=manifests_at(name, paths))
    if _is_reference(name, paths):
        msg = f"{shown(name)} is a file and a git reference; write ./{name} for the file, or refs/heads/{name}"
        raise UsageError(msg)
    return GivenBaseline(name=name, recorded=read_baseline(_text(name, trusted), name=name))


def find_drift(
    intent: Intent, reader: QuotaReader, given: GivenBaseline | None = None, *, ignore: Sequence[Selector] = ()
) -> Drift:
    """Read the cluster and compare; entities that ``ignore`` selects are counted, and told nowhere else.

    Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does, and as ``GivenBaseline.of``.
    """
    current = reader.current_state()
    check_cluster_id(intent.spec, current.cluster)
    baseline = given.of(intent, current.cluster) if given is not None else None
    found = compare(intent.desired, current.entities, baseline.entities if baseline else None, scope=intent.spec.scope)
    told = tuple(one for one in found.entities if not any_matches(ignore, one.entity))
    ignored = [one for one in found.entities if any_matches(ignore, one.entity)]
    return Drift(
        cluster=current.cluster.named(intent.spec.name),
        source=source_of(Path(intent.paths[0])),
        observed=current.observed,
        complete=intent.desired.complete,
        baseline=baseline.origin if baseline else None,
        entities=told,
        counts={each: count - sum(1 for one in ignored if one.drift is each) for each, count in found.counts.items()},
        ignored=len(ignored),
        notes=(*current.notes, *intent.notes, *_notes(intent, current, baseline)),
        findings=intent.findings,
    )


def _notes(intent: Intent, current: CurrentState, baseline: Baseline | None) -> Iterator[str]:
    yield from (node.message for node in current.unreadable)
    if baseline is None:
        yield _NO_BASELINE
        return
    gone = forgotten(baseline.entities, intent.desired, current, intent.spec.scope)
    if gone:
        yield forgotten_note(gone, baseline.origin.name)


def _values(state: DesiredState) -> dict[Entity, Quotas]:
    """With the entities that were declared without any key."""
    return {entity: {key.value: quota.value for key, quota in one.quotas.items()} for entity, one in state.entities.items()}


def _require_same_cluster(name: str, recorded: RecordedBaseline, cluster: ClusterIdentity) -> None:
    if recorded.cluster_id is None or recorded.cluster_id == cluster.id:
        return
    msg = (
        f"{name} is the baseline of cluster {recorded.cluster_id} ({recorded.cluster_name or 'no name'}), and "
        f"{cluster.id or 'an unknown one'} answers; nothing was compared"
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
        content = Path(name).read_bytes() if trusted is None else trusted.files.read(name).content
        return content.decode("utf-8")
    except OSError as error:
        msg = f"the baseline {name} cannot be read: {error.strerror}"
        raise FileAccessError(msg) from error
    except UnicodeDecodeError:
        msg = f"the baseline {name} is not UTF-8 text"
        raise FileAccessError(msg) from None
