"""Make a plan: desired state from the manifests, current state from a cluster or snapshot, the difference, and the guards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.model.cluster import ClusterSpec
from reconciler.model.finding import Finding, Severity
from reconciler.model.plan import Plan
from reconciler.model.state import ClusterIdentity, CurrentState, DesiredState
from reconciler.planning.diff import difference
from reconciler.planning.digest import digest
from reconciler.planning.order import in_writing_order
from reconciler.policy.guards import Situation, judge
from reconciler.ports import Clock, QuotaReader
from reconciler.workflows.connect import check_cluster_id
from reconciler.workflows.git_source import source_of
from reconciler.workflows.load import desired_for, load_manifests, stop_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What the manifests want of one cluster, free of errors."""

    spec: ClusterSpec
    desired: DesiredState
    findings: tuple[Finding, ...]
    paths: tuple[str, ...]


def load_intent(paths: Sequence[str], *, cluster: str | None, fail_on: Severity = Severity.ERROR) -> Intent:
    """Read the manifests for one cluster.

    Raises ``ManifestError`` with all findings when one is at or above ``fail_on``, and ``UsageError`` when it is not clear which
    cluster is meant.
    """
    loaded = load_manifests(paths)
    stop_on(loaded.findings, fail_on)
    spec, desired, findings = desired_for(loaded, cluster)
    everything = (*loaded.findings, *findings)
    stop_on(everything, fail_on)
    return Intent(spec=spec, desired=desired, findings=everything, paths=tuple(paths))


def make_plan(intent: Intent, reader: QuotaReader, *, accepted: Sequence[str], clock: Clock) -> Plan:
    """Compare and judge. Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does."""
    current = reader.current_state()
    check_cluster_id(intent.spec, current.cluster)
    return plan_from(intent, current, accepted=accepted, clock=clock)


def plan_from(intent: Intent, current: CurrentState, *, accepted: Sequence[str], clock: Clock) -> Plan:
    """The pure part: a plan from two states."""
    spec = intent.spec
    identity: ClusterIdentity = replace(current.cluster, name=spec.name or current.cluster.name)
    found = difference(intent.desired, current, scope=spec.scope, prune=spec.prune)
    changes = in_writing_order(found.changes, current.entities)
    situation = Situation(changes=changes, desired=intent.desired, current=current, spec=spec, now=clock.now())
    judgement = judge(situation, accepted=accepted)
    return Plan(
        cluster=identity,
        source=source_of(Path(intent.paths[0])) if intent.paths else source_of(Path()),
        observed=current.observed,
        complete=intent.desired.complete,
        summary=found.summary,
        changes=changes,
        guards=judgement.guards,
        digest=digest(identity.id, changes),
        notes=judgement.notes,
        findings=intent.findings,
    )
