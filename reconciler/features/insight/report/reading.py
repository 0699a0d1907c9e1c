"""Report: the state of every cluster of the manifests at one moment, also of those that could not be read. It never writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import reconciler
from reconciler.documents import headline, read_audit_line, read_backtest
from reconciler.errors import BaselineError, FileAccessError, GitError, ManifestError, ReconcilerError, UntrustedError, UsageError
from reconciler.features.insight.headroom.document import read_headroom
from reconciler.manifest import allocations, budgets_of
from reconciler.model import (
    Baseline,
    BudgetUse,
    ClusterFailure,
    ClusterIdentity,
    ClusterOverview,
    CurrentState,
    DesiredEntity,
    DesiredState,
    DriftClass,
    Entity,
    EntityOverview,
    HeadroomOverview,
    Overview,
    OwnedRate,
    Quotas,
    QuotaUnit,
    RunRecord,
    Severity,
    TrafficOverview,
    any_matches,
    display_name,
    escaped,
    slug_of,
)
from reconciler.planning import compare
from reconciler.ports import Clock, Progress
from reconciler.workflows import (
    PLACEHOLDER,
    Access,
    GivenBaseline,
    Intent,
    References,
    TrustedFiles,
    current_view,
    divide_totals,
    for_every,
    given_baseline,
    load_every_intent,
    load_intent,
    quota_reader,
    read_for,
    source_of,
    unread_owners,
    with_lint,
)

_NO_CLUSTER: Final = (
    "the paths have no Cluster manifest to report on. Add one, or name the cluster with --bootstrap-server, --zookeeper or "
    "--current"
)
_WITH_GROUPS: Final = (
    "the brokers have the plugin of groups, and this page does not resolve groups. 'kafka-quotas resolve' shows the limits of "
    "clients"
)
_NO_DIFFERENCE: Final = (DriftClass.IN_SYNC, DriftClass.UNMANAGED)


_PARALLEL: Final = 8
"""Clusters that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """Which clusters, and how to reach them: one by its name or by ``access``, or all of the manifests.

    ``{cluster}`` in the names of the baseline and of the snapshot stands for each cluster's slug.
    """

    paths: tuple[str, ...] = (".",)
    cluster: str | None = None
    access: Access = field(default_factory=Access)
    baseline: str | None = None
    """A git reference or file."""
    trusted_ref: str | None = None
    fail_on: Severity = Severity.ERROR

    @property
    def one(self) -> bool:
        """True when a single cluster is meant."""
        access = self.access
        current = access.current if access.current is not None and PLACEHOLDER not in access.current else None
        return any((self.cluster, access.bootstrap_server, access.zookeeper, current))

    def access_to(self, cluster: str | None) -> Access:
        """How to reach one cluster: a snapshot may be another file for each."""
        current = self.access.current
        return self.access if current is None else replace(self.access, current=_of_cluster(current, cluster))

    @property
    def baseline_of_each(self) -> bool:
        """True when every cluster has a baseline of its own."""
        return self.baseline is not None and PLACEHOLDER in self.baseline


def load_report_intents(asked: ReportRequest) -> tuple[Intent | ClusterFailure, ...]:
    """The manifests' intent for each cluster. Raises ``ManifestError``, ``UsageError``, ``GitError`` or ``UntrustedError``."""
    references = References(trusted=asked.trusted_ref)
    if asked.one:
        intent = load_intent(asked.paths, cluster=asked.cluster, fail_on=asked.fail_on, references=references, by_owner=True)
        return (with_lint(intent),)
    return load_every_intent(asked.paths, fail_on=asked.fail_on, references=references, if_none=_NO_CLUSTER, by_owner=True)


def make_report(
    intents: Sequence[Intent | ClusterFailure],
    asked: ReportRequest,
    *,
    recorded: ReportInputs,
    clock: Clock,
    progress: Progress,
) -> Overview:
    """Read every cluster, some at once. One that cannot be read is in the result with the reason, and stops no other.

    Of a baseline of all: raises ``GitError``, ``ManifestError``, ``BaselineError`` or ``UntrustedError``, and ``UsageError`` for
    a file, which is of one cluster. A cluster's own baseline that cannot be used is a note of the cluster.
    """
    baseline = _baseline_of_all(intents, asked)
    read = for_every(intents, lambda intent: _overview(with_lint(intent), asked, baseline, progress), parallel=_PARALLEL)
    overviews = (_overview(each, asked, baseline, progress) if isinstance(each, ClusterFailure) else each for each in read)
    clusters = tuple(with_use(overview, recorded.traffic, recorded.headroom) for overview in overviews)
    return Overview(
        at=clock.now(),
        version=reconciler.__version__,
        source=source_of(Path(asked.paths[0])),
        clusters=clusters,
        runs=recorded.runs,
        runs_left_out=recorded.runs_left_out,
        audited=recorded.audited,
        traffic=recorded.traffic,
        notes=recorded.notes,
    )


def _overview(
    intent: Intent | ClusterFailure, asked: ReportRequest, baseline: GivenBaseline | None, progress: Progress
) -> ClusterOverview:
    if isinstance(intent, ClusterFailure):
        return ClusterOverview(cluster=intent.cluster, findings=intent.findings, failure=intent)
    progress.step(
        f"reading the quotas of cluster {display_name(intent.spec.name)}" if intent.spec.name else "reading the cluster"
    )
    try:
        with quota_reader(intent.spec, asked.access_to(intent.spec.name), trusted=intent.trusted) as reader:
            state = read_for(intent, reader)
            if not asked.baseline_of_each:
                return overview_of(intent, state, source=reader, baseline=baseline)
            try:
                return overview_of(intent, state, source=reader, baseline=_baseline_of(intent, asked))
            except (BaselineError, FileAccessError, GitError, ManifestError) as error:
                overview = overview_of(intent, state, source=reader)
                return replace(overview, notes=(f"the baseline cannot be used: {error}", *overview.notes))
    except ReconcilerError as error:
        return declared_only(intent, error)


def _baseline_of_all(intents: Sequence[Intent | ClusterFailure], asked: ReportRequest) -> GivenBaseline | None:
    if asked.baseline is None or asked.baseline_of_each:
        return None
    if len(intents) > 1 and Path(asked.baseline).is_file():
        msg = (
            "a baseline file is of one cluster. Choose it with --cluster, give a git reference, or a name with {cluster} in it "
            "that is another file for each"
        )
        raise UsageError(msg)
    trusted = next((intent.trusted for intent in intents if isinstance(intent, Intent)), None)
    return given_baseline(asked.baseline, asked.paths, trusted=trusted)


def _baseline_of(intent: Intent, asked: ReportRequest) -> GivenBaseline:
    assert asked.baseline is not None
    return given_baseline(_of_cluster(asked.baseline, intent.spec.name), asked.paths, trusted=intent.trusted)


def _of_cluster(text: str, cluster: str | None) -> str:
    return text.replace(PLACEHOLDER, slug_of(cluster or ""))


def overview_of(intent: Intent, state: CurrentState, *, source: object, baseline: GivenBaseline | None = None) -> ClusterOverview:
    """A cluster that was read from ``source``. Raises ``BaselineError`` for a baseline of another cluster."""
    view = current_view(state, source=source, name=intent.spec.name, spec=intent.spec)
    if intent.desired.with_units:
        intent = divide_totals(intent, state)
    given = baseline.of(intent.spec.name, state) if baseline is not None else None
    spec, declared_then = intent.spec, given.entities if given else None
    compared = compare(
        intent.desired,
        state.entities,
        declared_then,
        scope=spec.scope,
        prune=spec.prune,
        unmanaged_then=given.unmanaged if given else None,
    )
    classes = {entity.entity: entity.drift for entity in compared.entities}
    unreadable = (node.message for node in state.unreadable)
    return ClusterOverview(
        cluster=view.cluster,
        prune=intent.spec.prune.value,
        observed=state.observed,
        complete=intent.desired.complete,
        baseline=given.origin if given else None,
        counts=compared.counts,
        entities=tuple(_entities(intent, state.entities, given, classes)),
        callback=_WITH_GROUPS if view.caveats.groups else view.caveats.callback,
        static_defaults=view.caveats.static_defaults,
        notes=tuple(dict.fromkeys((*state.notes, *unreadable, *view.notes, *intent.notes, *unread_owners(intent.scope.errors)))),
        findings=(*intent.findings, *intent.owner_errors),
        budgets=_budgets(intent),
    )


def _budgets(intent: Intent) -> tuple[BudgetUse, ...]:
    """How much of the budgets is allocated. Its use is not known yet."""
    return tuple(
        BudgetUse(
            owner=each.owner,
            key=each.key.value,
            budget=each.budget.value,
            allocated=each.allocated,
            entities=each.entities,
        )
        for each in allocations(budgets_of(intent.loaded.repository.budgets, intent.spec), intent.desired.entities.values())
    )


def with_use(
    overview: ClusterOverview, traffic: Iterable[TrafficOverview], headroom: Iterable[HeadroomOverview] = ()
) -> ClusterOverview:
    """The budgets with what their entities used: the largest sum of an owner on one broker, of peaks or of rates at a moment.

    Peaks of different clients need not be at one moment, so their sum is an upper bound of what was used at once.
    """
    name = overview.cluster.name
    recorded = [
        [
            OwnedRate(broker=str(bucket.broker), key=bucket.key, rate=bucket.peak.rate, entity=bucket.limits.entity)
            for bucket in report.buckets
        ]
        for report in traffic
        if report.cluster == name
    ]
    measured = [moment.rates for moment in headroom if moment.cluster == name and moment.at is not None]
    if not overview.budgets or not (recorded or measured):
        return overview
    owners = {entity.entity: entity.owner for entity in overview.entities if entity.owner is not None}
    peaks: dict[tuple[str, str], float] = {}
    for rates in (*recorded, *measured):
        sums: dict[tuple[str, str, str], float] = {}
        for each in rates:
            owner = each.owner if each.entity is None else owners.get(each.entity)
            if owner is not None:
                place = owner, each.key, each.broker
                sums[place] = sums.get(place, 0.0) + each.rate
        for (owner, key, _), peak in sums.items():
            peaks[owner, key] = max(peaks.get((owner, key), 0.0), peak)
    budgets = tuple(replace(budget, used=peaks.get((budget.owner, budget.key), 0.0)) for budget in overview.budgets)
    return replace(overview, budgets=budgets)


def declared_only(intent: Intent, error: ReconcilerError) -> ClusterOverview:
    """A cluster that could not be read: what is declared, and why there is no more."""
    identity = ClusterIdentity(name=intent.spec.name, id=intent.spec.cluster_id)
    failure = ClusterFailure(
        cluster=identity,
        failure_reason=error.failure_reason,
        message=str(error),
        skipped=isinstance(error, UntrustedError),
        findings=error.findings if isinstance(error, ManifestError) else (),
    )
    return ClusterOverview(
        cluster=identity,
        prune=intent.spec.prune.value,
        complete=intent.desired.complete,
        entities=tuple(_entities(intent, None, None, {})),
        notes=(*intent.notes, *unread_owners(intent.scope.errors)),
        findings=(*intent.findings, *intent.owner_errors),
        failure=failure,
    )


def _entities(
    intent: Intent, live: Mapping[Entity, Quotas] | None, baseline: Baseline | None, classes: Mapping[Entity, DriftClass]
) -> Iterator[EntityOverview]:
    known = live or {}
    before = baseline.entities if baseline else {}
    everything = intent.desired.entities.keys() | known.keys() | classes.keys()
    for entity in sorted(everything, key=lambda entity: entity.sort_key):
        declared = intent.desired.entities.get(entity)
        drift = None if live is None else classes.get(entity, _without_class(intent.desired, entity))
        yield EntityOverview(
            entity=entity,
            drift=drift,
            declared={key.value: quota.value for key, quota in declared.quotas.items()} if declared else None,
            live=known.get(entity),
            baseline=before.get(entity) if drift is not None and drift not in _NO_DIFFERENCE else None,
            owner=declared.owner if declared else None,
            note=declared.note if declared else None,
            source=declared.source if declared else None,
            protected=bool(intent.spec.safety.protected) and any_matches(intent.spec.safety.protected, entity),
            in_scope=intent.spec.scope.contains(entity),
            units=_declared_units(declared) if declared else {},
            expiries={key.value: expiry.of_value for key, expiry in declared.expiries.items()} if declared else {},
        )


def _declared_units(declared: DesiredEntity) -> dict[str, QuotaUnit]:
    units = {key.value: quota.unit for key, quota in declared.quotas.items() if quota.unit is not None}
    return units | {key.value: written.unit for key, written in declared.units.items()}


def _without_class(desired: DesiredState, entity: Entity) -> DriftClass | None:
    """An entity without a difference is in sync, or, when only some manifests were read, was not compared."""
    return DriftClass.IN_SYNC if desired.complete or entity in desired.entities else None


def has_failed(overview: Overview) -> bool:
    """True when a cluster could not be read that should have been."""
    return any(cluster.failure is not None and not cluster.failure.skipped for cluster in overview.clusters)


MOST_RUNS: Final = 200
"""Runs that a report shows; of each audit file so many of the last lines are kept while it is read."""
_LONGEST_LINE: Final = 1 << 20
_MOST_NOTES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """What the files have; ``notes`` report lines that are not a record of a run."""

    runs: tuple[RunRecord, ...] = ()
    runs_left_out: int = 0
    audited: bool = False
    traffic: tuple[TrafficOverview, ...] = ()
    headroom: tuple[HeadroomOverview, ...] = ()
    notes: tuple[str, ...] = ()


def read_report_inputs(
    audits: Sequence[str],
    backtests: Sequence[str],
    headrooms: Sequence[str] = (),
    *,
    trusted: TrustedFiles | None = None,
) -> ReportInputs:
    """Read all files. Raises ``FileAccessError`` for one that cannot be read, or is not such a document.

    With ``trusted`` it raises ``UntrustedError`` for one that git tracks and that differs from the reference.
    """
    if trusted is not None:
        for file in (*audits, *backtests, *headrooms):
            trusted.require_same(file)
    runs: list[RunRecord] = []
    notes: list[str] = []
    left_out = 0
    for name in audits:
        records, more, wrong = _audit(name)
        runs += records
        left_out += more
        notes += wrong
    runs.sort(key=lambda run: (run.ended, run.started), reverse=True)
    return ReportInputs(
        runs=tuple(runs[:MOST_RUNS]),
        runs_left_out=left_out + max(0, len(runs) - MOST_RUNS),
        audited=bool(audits),
        traffic=tuple(read_traffic(name) for name in backtests),
        headroom=tuple(read_headroom(_content(name, "headroom"), name=name) for name in headrooms),
        notes=tuple(notes),
    )


def _audit(name: str) -> tuple[list[RunRecord], int, list[str]]:
    """The last runs of a file, how many came before them, and what is wrong with its lines."""
    kept: deque[RunRecord] = deque(maxlen=MOST_RUNS)
    total = 0
    wrong: list[str] = []
    bad = 0
    try:
        with Path(name).open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if not line.strip():
                    continue
                try:
                    kept.append(read_audit_line(line, file=name))
                    total += 1
                except (ValueError, RecursionError) as error:
                    bad += 1
                    if bad <= _MOST_NOTES:
                        wrong.append(f"{escaped(name)}:{number} is not a line that --audit writes, and is left out: {error}")
    except OSError as error:
        msg = f"cannot read the audit file {name}: {error.strerror}"
        raise FileAccessError(msg) from error
    if bad > _MOST_NOTES:
        wrong.append(f"{escaped(name)}: {bad - _MOST_NOTES} more lines like these are left out")
    return list(kept), total - len(kept), wrong


def read_traffic(name: str) -> TrafficOverview:
    """What a report shows of the file of a backtest. Raises ``FileAccessError``."""
    report = read_backtest(_content(name, "backtest"), name=name)
    return TrafficOverview(
        file=name,
        form=report.provenance.form,
        semantics=report.provenance.semantics,
        start=report.provenance.start,
        end=report.provenance.end,
        requests=report.provenance.requests,
        current_known=report.provenance.current_known,
        cluster=report.cluster,
        headline=headline(report)[0],
        buckets=report.verdicts,
        unjudged=report.unjudged,
        observations=report.provenance.observations,
    )


def _content(name: str, kind: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        msg = f"cannot read the {kind} {name}: {error.strerror}"
        raise FileAccessError(msg) from error
