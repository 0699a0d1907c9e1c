"""Make a plan: desired state from the manifests, current state from a cluster or snapshot, the difference, and the guards."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.documents import plan_digest
from reconciler.logs import log_event
from reconciler.manifest import Owner
from reconciler.model import (
    LINT_RULES,
    ClusterSpec,
    CurrentState,
    DesiredState,
    Finding,
    GuardStatus,
    ManifestCommit,
    Plan,
    Prune,
    Severity,
    in_order,
)
from reconciler.planning import difference, sort_for_writing
from reconciler.policy import GuardContext, by_option, in_manifest, judge
from reconciler.ports import Clock, QuotaReader
from reconciler.workflows.baselines import GivenBaseline
from reconciler.workflows.connect import read_state
from reconciler.workflows.git_repository import source_of
from reconciler.workflows.lint import lint_change, lint_offline
from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests, stop_on
from reconciler.workflows.references import Before, ReadReferences, References, read_references
from reconciler.workflows.same_cluster import OtherClusters
from reconciler.workflows.trusted import TrustedTree
from reconciler.workflows.undeclared import DeclaredEarlier, undeclared_findings, undeclared_notes

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What the manifests want of one cluster, free of errors."""

    spec: ClusterSpec
    desired: DesiredState
    findings: tuple[Finding, ...]
    paths: tuple[str, ...]
    lint: Mapping[str, Severity | None] = field(default_factory=dict)
    """Severities of the Repository document."""
    fail_on: Severity = Severity.ERROR
    notes: tuple[str, ...] = ()
    """What counts only after merge, and what of the base is missing."""
    before: Before | None = None
    """What the base declares, to name what is forgotten."""
    trusted: TrustedTree | None = None
    others: OtherClusters = field(default_factory=OtherClusters)
    """The other Cluster manifests, some of which may mean the same real cluster."""
    owners: Mapping[str, Owner] = field(default_factory=dict)
    """Of the Repository document that applies."""

    def source(self) -> ManifestCommit:
        """The commit that the manifests are in now; asks git."""
        return source_of(Path(self.paths[0]) if self.paths else Path())


_NO_REFERENCES: Final = References()


def load_intent(
    paths: Sequence[str],
    *,
    cluster: str | None,
    fail_on: Severity = Severity.ERROR,
    references: References = _NO_REFERENCES,
) -> Intent:
    """Read the manifests for one cluster.

    Raises ``ManifestError`` with all findings when one is at or above ``fail_on``, ``UsageError`` when it is not clear which
    cluster is meant, ``GitError`` for a reference that cannot be read, and ``UntrustedError`` for a cluster that the trusted
    one does not have.
    """
    seen = read_references(references, paths)
    loaded = load_manifests(paths, trust=seen.trust)
    stop_on(loaded.findings, fail_on)
    return intent_of(loaded, seen, paths, cluster=cluster, fail_on=fail_on)


def intent_of(
    loaded: LoadedManifests, seen: ReadReferences, paths: Sequence[str], *, cluster: str | None, fail_on: Severity
) -> Intent:
    """One cluster's part of manifests that are good as far as they are not about one. Raises as ``load_intent``."""
    spec, desired, findings = desired_for(loaded, cluster)
    everything = (*loaded.findings, *findings, *lint_offline(loaded, spec, desired))
    stop_on(everything, fail_on)
    return Intent(
        spec=spec,
        desired=desired,
        findings=everything,
        paths=tuple(paths),
        lint=loaded.lint,
        fail_on=fail_on,
        notes=seen.notes(loaded, spec),
        before=seen.before(spec),
        trusted=seen.trusted,
        others=OtherClusters(spec=spec, loaded=loaded),
        owners=loaded.repository.owners if loaded.repository is not None else {},
    )


def make_plan(
    intent: Intent,
    reader: QuotaReader,
    *,
    accepted: Sequence[str],
    clock: Clock,
    given: GivenBaseline | None = None,
    show_unmanaged: bool = False,
) -> Plan:
    """Compare and judge.

    Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does, and as ``GivenBaseline.of``.
    """
    current = read_state(intent.spec, reader)
    return plan_from(
        intent, current, accepted=accepted, source=intent.source(), clock=clock, given=given, show_unmanaged=show_unmanaged
    )


def plan_from(
    intent: Intent,
    current: CurrentState,
    *,
    accepted: Sequence[str],
    source: ManifestCommit,
    clock: Clock,
    given: GivenBaseline | None = None,
    attended: bool = True,
    show_unmanaged: bool = False,
) -> Plan:
    """The plan from two states, without reading anything; ``clock`` says which guards and acceptances are in effect.

    ``source``: the commit of the manifests. In a run that no person attends, ``prune: confirm`` counts as ``never``, and guards
    are accepted in the Cluster manifest. Raises ``BaselineError`` and ``ManifestError`` as ``GivenBaseline.of``.
    """
    spec = intent.spec
    identity = current.cluster.named(spec.name)
    earlier = DeclaredEarlier(base=intent.before, baseline=given.of(spec.name, current.cluster) if given is not None else None)
    prune = spec.prune if attended or spec.prune is not Prune.CONFIRM else Prune.NEVER
    found = difference(intent.desired, current, scope=spec.scope, prune=prune)
    changes = sort_for_writing(found.changes, current.entities)
    context = GuardContext(
        changes=changes,
        desired=intent.desired,
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=intent.others.claimed(current.cluster),
    )
    judgement = judge(context, accepted=accepted, advice=by_option if attended else in_manifest)
    # Lint again, now with the live state: it sees more, and says it in other words.
    declared = (one for one in intent.findings if one.id not in LINT_RULES)
    linted = lint_change(spec, intent.desired, current, changes, severities=intent.lint)
    undeclared = undeclared_findings(spec, intent.desired, current, earlier)
    made = Plan(
        cluster=identity,
        source=source,
        observed=current.observed,
        complete=intent.desired.complete,
        summary=found.summary,
        changes=changes,
        guards=judgement.guards,
        digest=plan_digest(identity.id, changes),
        notes=(
            *current.notes,
            *judgement.notes,
            *intent.notes,
            *undeclared_notes(spec, intent.desired, current, earlier, source=source),
        ),
        findings=in_order((*declared, *linted, *undeclared)),
        unmanaged=tuple(sorted(found.unmanaged, key=lambda entity: entity.sort_key)) if show_unmanaged else None,
    )
    log_event(
        _log,
        "plan made",
        level=logging.INFO,
        cluster=spec.name,
        digest=made.digest,
        create=found.summary.create,
        update=found.summary.update,
        delete=found.summary.delete,
        unchanged=found.summary.unchanged,
        guards_tripped=[guard.id for guard in made.tripped],
        guards_accepted=[guard.id for guard in made.guards if guard.status is GuardStatus.ACCEPTED],
    )
    return made
