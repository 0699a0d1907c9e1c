"""Make a plan: desired state from the manifests, current state from a cluster or snapshot, the difference, and the guards."""

from __future__ import annotations

import datetime
import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reconciler.documents import plan_digest
from reconciler.errors import UsageError
from reconciler.logs import log_event
from reconciler.manifest import Owner, RepositoryPolicy, ValueLimit, budgets_of, group_notes
from reconciler.model import (
    ClusterSpec,
    CurrentState,
    DesiredQuota,
    DesiredState,
    Finding,
    GuardStatus,
    LeaderSpread,
    ManifestCommit,
    Message,
    Plan,
    Prune,
    QuotaKey,
    Severity,
    in_order,
)
from reconciler.planning import difference, sort_for_writing
from reconciler.policy import (
    GuardContext,
    IsolatedJudgement,
    OwnerView,
    by_option,
    in_manifest,
    judge,
    judge_owners,
)
from reconciler.ports import Clock, LeaderInspector, Progress, QuotaCluster, QuotaReader
from reconciler.resolution import callback_notes
from reconciler.workflows.baselines import GivenBaseline
from reconciler.workflows.cluster_facts import callback_findings, with_facts
from reconciler.workflows.expiries import accepted_fallbacks, fallback_notes
from reconciler.workflows.git_repository import source_of
from reconciler.workflows.load import LoadedManifests, chosen_cluster, desired_for, load_manifests, stop_on
from reconciler.workflows.owners import (
    check_owners,
    errors_by_owner,
    isolates,
    isolation_notes,
    may_isolate,
    owner_lookup,
    sound_manifests,
    withheld_in_stage,
)
from reconciler.workflows.plan_effects import read_known_clients, with_effects
from reconciler.workflows.plan_policies import judged_by_policies, policies_of
from reconciler.workflows.references import Before, ReadReferences, References, read_references
from reconciler.workflows.same_cluster import OtherClusters
from reconciler.workflows.trusted import TrustedTree
from reconciler.workflows.undeclared import DeclaredEarlier, undeclared_findings, undeclared_notes, what_is_kept
from reconciler.workflows.units import at_brokers, read_for, share_notes
from reconciler.workflows.validate import lint_change, lint_offline, stop_on_reading

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What the manifests want of one cluster, free of errors."""

    spec: ClusterSpec
    desired: DesiredState
    findings: tuple[Finding, ...]
    """About files, documents and values."""
    paths: tuple[str, ...]
    linted: tuple[Finding, ...] = ()
    """What lint sees without the cluster. A plan lints once more with it, and replaces these."""
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
    limits: tuple[ValueLimit, ...] = ()
    """Bounds of values, which totals are compared with once they are divided."""
    budgets: Mapping[tuple[str, QuotaKey], DesiredQuota] = field(default_factory=dict)
    """What the entities of an owner may have together on each broker, by owner and key."""
    has_totals: bool = False
    """True once totals of the cluster were divided among its brokers."""
    chosen: frozenset[str] | None = None
    """The owners whose changes are wanted; ``None``: all."""
    policies: tuple[RepositoryPolicy, ...] = ()
    """Of the Repository document that applies."""
    stages: tuple[str, ...] = ()
    """Of the Repository document that applies."""
    withheld_before: Mapping[str | None, str] = field(default_factory=dict)
    """Owners that an earlier stage withheld, with the cluster where it did: their changes are withheld here, too."""
    errors: Mapping[str | None, tuple[Finding, ...]] = field(default_factory=dict)
    """By owner, the errors of manifests that are left out, where owners are isolated."""

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """All that is known without the cluster, in order."""
        return in_order((*self.findings, *self.linted)) if self.linted else self.findings

    @property
    def isolates(self) -> bool:
        """True when the guards measure each owner apart."""
        return isolates(self.spec, self.chosen)

    @property
    def owner_errors(self) -> tuple[Finding, ...]:
        """Those of ``errors``, each once."""
        return tuple(dict.fromkeys(finding for findings in self.errors.values() for finding in findings))

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
    by_owner: bool = False,
    owners: Sequence[str] = (),
    at: datetime.datetime | None = None,
) -> Intent:
    """Read the manifests for one cluster. ``by_owner``: where the cluster isolates owners, leave out those with errors.

    ``owners``: only their changes are wanted. ``at``: the moment that decides about values that expire; ``None``: now.

    Raises ``ManifestError`` with all findings when one is at or above ``fail_on``, ``UsageError`` when it is not clear which
    cluster is meant, ``GitError`` for a reference that cannot be read, and ``UntrustedError`` for a cluster that the trusted
    one does not have.
    """
    seen = read_references(references, paths)
    loaded = load_manifests(paths, trust=seen.trust, at=at)
    return intent_of(loaded, seen, paths, cluster=cluster, fail_on=fail_on, by_owner=by_owner, owners=owners)


def intent_of(
    loaded: LoadedManifests,
    seen: ReadReferences,
    paths: Sequence[str],
    *,
    cluster: str | None,
    fail_on: Severity,
    by_owner: bool = False,
    owners: Sequence[str] = (),
) -> Intent:
    """One cluster's part of the manifests. Raises ``ManifestError``, ``UsageError``, ``UntrustedError``."""
    if not may_isolate(loaded, by_owner=by_owner, owners=owners):
        stop_on_reading(loaded, cluster, fail_on)
    chosen = check_owners(loaded, owners)
    if (by_owner or owners) and isolates(chosen_cluster(loaded, cluster), chosen):
        sound = sound_manifests(loaded, cluster, fail_on)
        loaded, spec, desired, read, linted = sound.loaded, sound.spec, sound.desired, sound.findings, sound.linted
        errors = sound.errors
    else:
        stop_on_reading(loaded, cluster, fail_on)
        spec, desired, findings = desired_for(loaded, cluster)
        read, linted, errors = (*loaded.findings, *findings), lint_offline(loaded, spec, desired), {}
        stop_on((*read, *linted), fail_on)
    return Intent(
        spec=spec,
        desired=desired,
        findings=read,
        linted=linted,
        paths=tuple(paths),
        lint=loaded.lint,
        fail_on=fail_on,
        notes=(*seen.notes(loaded, spec), *group_notes(desired)),
        before=seen.before(spec),
        trusted=seen.trusted,
        others=OtherClusters(spec=spec, loaded=loaded),
        owners=loaded.repository.owners if loaded.repository is not None else {},
        limits=loaded.repository.limits if loaded.repository is not None else (),
        budgets=budgets_of(loaded.budgets, spec),
        chosen=chosen,
        errors=errors,
        policies=policies_of(loaded),
        stages=loaded.repository.stages if loaded.repository is not None else (),
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

    Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does, and
    ``BaselineError`` for the baseline of another one.
    """
    current = read_for(intent, reader)
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
    """The plan from two states, without reading anything; ``clock`` states which guards and acceptances are in effect.

    ``source``: the commit of the manifests. In a run that no person attends, ``prune: confirm`` counts as ``never``, and guards
    are accepted in the Cluster manifest. Raises ``BaselineError`` for the baseline of another cluster, and ``ManifestError``.
    """
    intent = at_brokers(intent, current, attended=attended)
    spec = intent.spec
    identity = current.cluster.named(spec.name)
    earlier = DeclaredEarlier(base=intent.before, baseline=given.of(spec.name, current) if given is not None else None)
    prune = spec.prune if attended or spec.prune is not Prune.CONFIRM else Prune.NEVER
    differences = difference(intent.desired, current, scope=spec.scope, prune=prune)
    changes = sort_for_writing(differences.changes, current.entities)
    fallbacks = accepted_fallbacks(changes, intent.before, current)
    context = GuardContext(
        changes=changes,
        desired=intent.desired,
        current=current,
        spec=spec,
        now=clock.now(),
        claimed_elsewhere=intent.others.claimed(current.cluster),
        accepted_fallbacks=fallbacks,
    )
    linted = lint_change(spec, intent.desired, current, changes, severities=intent.lint)
    judged = _judged(intent, context, linted, accepted=accepted, advice=by_option if attended else in_manifest)
    if judged.withheld:
        named = {finding for each in judged.withheld for finding in each.findings}
        linted = tuple(finding for finding in linted if finding not in named)
    undeclared = undeclared_findings(spec, intent.desired, current, earlier)
    made = Plan(
        cluster=identity,
        source=source,
        observed=current.observed,
        complete=intent.desired.complete,
        summary=differences.summary if len(judged.changes) == len(changes) else differences.summary_of(judged.changes),
        changes=judged.changes,
        guards=judged.guards,
        digest=plan_digest(identity.id, judged.changes),
        notes=(
            *current.notes,
            *(callback_notes(identity) if spec.brokers.callback is not None else ()),
            *judged.notes,
            *fallback_notes(fallbacks),
            *intent.notes,
            *share_notes(intent.desired),
            *undeclared_notes(spec, intent.desired, current, earlier, source=source),
        ),
        findings=in_order((*intent.findings, *linted, *undeclared, *callback_findings(spec, identity))),
        unmanaged=tuple(sorted(differences.unmanaged, key=lambda entity: entity.sort_key)) if show_unmanaged else None,
        brokers=current.brokers if intent.has_totals else (),
        leaders=current.leaders if intent.has_totals else None,
        withheld=judged.withheld,
        kept=what_is_kept(spec, intent.desired, current, earlier),
    )
    made = judged_by_policies(
        made,
        intent.policies,
        spec=spec,
        owner_of=owner_lookup(intent.desired, intent.owners),
        accepted=accepted,
        now=clock.now(),
        advice=by_option if attended else in_manifest,
    )
    log_event(
        _log,
        "plan made",
        level=logging.INFO,
        cluster=spec.name,
        digest=made.digest,
        create=made.summary.create,
        update=made.summary.update,
        delete=made.summary.delete,
        unchanged=made.summary.unchanged,
        guards_tripped=[guard.id for guard in made.tripped],
        guards_accepted=[guard.id for guard in made.guards if guard.status is GuardStatus.ACCEPTED],
        withheld=[each.owner for each in made.withheld],
    )
    return made


def _judged(
    intent: Intent,
    context: GuardContext,
    linted: Sequence[Finding],
    *,
    accepted: Sequence[str],
    advice: Callable[[str], Message],
) -> IsolatedJudgement:
    """The changes that the guards let pass: all or none of the plan, or all or none of each owner."""
    if not intent.isolates:
        judgement = judge(context, accepted=accepted, advice=advice)
        return IsolatedJudgement(changes=context.changes, withheld=(), guards=judgement.guards, notes=judgement.notes)
    owner_of = owner_lookup(intent.desired, intent.owners)
    errors = errors_by_owner(linted, owner_of, intent.fail_on)
    for owner, findings in intent.errors.items():
        errors[owner] = (*findings, *errors.get(owner, ()))
    for owner in {owner_of(change.entity) for change in context.changes} & intent.withheld_before.keys():
        errors[owner] = (*errors.get(owner, ()), withheld_in_stage(intent.withheld_before[owner]))
    unread = frozenset(owner for owner in intent.errors if owner is not None)
    view = OwnerView(owner_of=owner_of, selected=intent.chosen, errors=errors, unread=unread)
    judged = judge_owners(context, view, accepted=accepted, advice=advice)
    more = isolation_notes(unread=unread, chosen=intent.chosen, unselected=judged.unselected)
    return replace(judged, notes=(*judged.notes, *more))


class Checker(enum.StrEnum):
    """Who checks a plan, validate-only."""

    CLUSTER = "cluster"
    SANDBOX = "sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is wanted; by default nothing."""

    server_check: Checker | None = None
    show_effects: bool = False
    known_clients: Path | None = None
    """More clients whose effects are shown, as JSON lines."""


def plan_with(
    extras: Extras,
    make: Callable[[QuotaReader], Plan],
    source: QuotaReader,
    *,
    spec: ClusterSpec | None = None,
    trusted: TrustedTree | None = None,
    progress: Progress,
) -> Plan:
    """The plan that ``make`` makes of ``source``, which is read once, with what is wanted. ``spec``: of the Cluster manifest.

    Raises ``UsageError`` when a cluster is to check and ``source`` is none, ``UntrustedError`` for known clients that a pull
    request brings, and as ``make``, the checks, and ``read_known_clients``.
    """
    live = _cluster(source) if extras.server_check is Checker.CLUSTER else None
    if trusted is not None and extras.known_clients is not None:
        trusted.files.require_same(str(extras.known_clients))
    traffic = read_known_clients(extras.known_clients) if extras.known_clients is not None else frozenset()
    reader = _ReadOnce(source)
    plan = make(reader)
    if extras.show_effects:
        plan = with_effects(plan, reader.current_state(), source=source, traffic=traffic, spec=spec)
    if extras.server_check is None:
        return plan
    # The checks load the client of Kafka, which most plans and all imports of this module can do without.
    from reconciler.workflows.server_check import check_in_sandbox, check_on_cluster

    if extras.server_check is Checker.SANDBOX:
        plan = check_in_sandbox(plan, reader.current_state(), progress=progress)
    if live is not None:
        plan = check_on_cluster(plan, live, progress=progress)
    return plan


class _ReadOnce:
    """A ``QuotaReader`` that remembers."""

    def __init__(self, source: QuotaReader) -> None:
        self._source = source
        self._state: CurrentState | None = None

    def current_state(self) -> CurrentState:
        """The state as it was read first."""
        if self._state is None:
            self._state = with_facts(self._source.current_state(), self._source)
        return self._state

    def leader_spread(self) -> LeaderSpread | None:
        """As the source reports it; ``None`` when it cannot."""
        return self._source.leader_spread() if isinstance(self._source, LeaderInspector) else None


def _cluster(source: QuotaReader) -> QuotaCluster:
    if not isinstance(source, QuotaCluster):
        msg = "--server-check=cluster asks a live cluster, and --current names a snapshot. --server-check=sandbox works with both"
        raise UsageError(msg)
    return source
