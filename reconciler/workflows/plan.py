"""Make a plan: desired state from the manifests, current state from a cluster or snapshot, the difference, and the guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.manifest import Owner
from reconciler.model import LINT_RULES, ClusterSpec, CurrentState, DesiredState, Finding, Plan, Prune, Severity, in_order
from reconciler.planning import difference, in_writing_order
from reconciler.planning.digest import digest
from reconciler.policy import Situation, by_option, judge
from reconciler.ports import Clock, QuotaReader
from reconciler.workflows.baselines import GivenBaseline
from reconciler.workflows.connect import check_cluster_id
from reconciler.workflows.git_source import source_of
from reconciler.workflows.lint import lint_change, lint_offline
from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests, stop_on
from reconciler.workflows.references import Before, References, Seen, read_references
from reconciler.workflows.same_cluster import OtherClusters
from reconciler.workflows.trusted import TrustedTree
from reconciler.workflows.undeclared import DeclaredEarlier, undeclared_findings, undeclared_notes


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
    """Of the Repository document that holds."""


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


def intent_of(loaded: LoadedManifests, seen: Seen, paths: Sequence[str], *, cluster: str | None, fail_on: Severity) -> Intent:
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
    current = reader.current_state()
    check_cluster_id(intent.spec, current.cluster)
    return plan_from(intent, current, accepted=accepted, clock=clock, given=given, show_unmanaged=show_unmanaged)


def plan_from(
    intent: Intent,
    current: CurrentState,
    *,
    accepted: Sequence[str],
    clock: Clock,
    given: GivenBaseline | None = None,
    prunes: bool = True,
    advice: Callable[[str], str] = by_option,
    show_unmanaged: bool = False,
) -> Plan:
    """The pure part: a plan from two states. Without ``prunes`` undeclared entities stay, whatever the Cluster manifest says.

    ``advice``: how to accept a guard.
    """
    spec = intent.spec
    identity = current.cluster.named(spec.name)
    earlier = DeclaredEarlier(base=intent.before, baseline=given.of(spec.name, current.cluster) if given is not None else None)
    found = difference(intent.desired, current, scope=spec.scope, prune=spec.prune if prunes else Prune.NEVER)
    changes = in_writing_order(found.changes, current.entities)
    situation = Situation(
        changes=changes,
        desired=intent.desired,
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=intent.others.claimed(current.cluster),
    )
    judgement = judge(situation, accepted=accepted, advice=advice)
    # Lint again, now with the live state: it sees more, and says it in other words.
    declared = (one for one in intent.findings if one.id not in LINT_RULES)
    linted = lint_change(spec, intent.desired, current, changes, severities=intent.lint)
    source = source_of(Path(intent.paths[0])) if intent.paths else source_of(Path())
    undeclared = undeclared_findings(spec, intent.desired, current, earlier)
    return Plan(
        cluster=identity,
        source=source,
        observed=current.observed,
        complete=intent.desired.complete,
        summary=found.summary,
        changes=changes,
        guards=judgement.guards,
        digest=digest(identity.id, changes),
        notes=(
            *current.notes,
            *judgement.notes,
            *intent.notes,
            *undeclared_notes(spec, intent.desired, current, earlier, source=source),
        ),
        findings=in_order((*declared, *linted, *undeclared)),
        unmanaged=tuple(sorted(found.unmanaged, key=lambda entity: entity.sort_key)) if show_unmanaged else None,
    )
