"""Backtest: the effect of proposed quotas on recorded traffic, beside that of the current ones. Also on a session of Spark."""

from __future__ import annotations

import contextlib
import datetime
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.files import write_whole
from reconciler.model import (
    BacktestReport,
    ClusterSpec,
    CurrentState,
    DeclaredQuotas,
    DesiredState,
    Entity,
    LeaderSpread,
    ManifestCommit,
    Message,
    Selector,
    Span,
)
from reconciler.planning import difference, quotas_after
from reconciler.policy import FailingRows
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.resolution import GROUP_CALLBACK
from reconciler.resolution import callback_notes as quota_class_notes
from reconciler.workflows.broker_model import broker_model, release
from reconciler.workflows.traffic_inputs import PrometheusRequest, fetch_from_server, read_trusted_mapping, require_samples
from reconciler.workflows.trusted import TrustedTree
from reconciler.workflows.units import divide_totals, judged_notes, leader_notes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import BacktestRequest, Between, SessionOptions, TrafficSource
    from reconciler.workflows.intent import Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOptions:
    """How to judge. ``traffic`` has ``[BROKER=]PATH`` arguments; the file ``requests`` gets one line a request, exactly."""

    traffic: tuple[str, ...]
    kafka_version: str | None = None
    spark: SessionOptions | None = None
    log_timezone: str = "UTC"
    requests: Path | None = None
    exact: bool = False
    mapping: Path | None = None
    max_unreadable: float = 0.01
    quota_callback: str | None = None
    """``MODULE:CLASS``, over that of the Cluster manifest."""
    plots: int = 0
    """Of how many buckets, the worst ones, the report has the rate over time: one more look at their traffic."""
    prometheus: PrometheusRequest | None = None
    """The server to read, in place of ``traffic``."""
    between: Between | None = None
    """Only rows of Parquet of this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The quotas to compare: all that the cluster has now (``None``: not known), all that it would have, and what is declared."""

    current: Mapping[Entity, Mapping[str, float]] | None
    proposed: Mapping[Entity, Mapping[str, float]]
    declared: Mapping[Entity, Mapping[str, float]]
    sources: Mapping[tuple[Entity, str], Span] = field(default_factory=dict)
    kafka_version: str | None = None
    """The current cluster's, as far as it is known."""
    brokers: tuple[int, ...] = ()
    """Ids of the current cluster's brokers; empty: not known."""
    leaders: LeaderSpread | None = None
    """Which of them lead partitions; ``None``: not known."""
    spec: ClusterSpec = field(default_factory=ClusterSpec)
    owners: Mapping[str, Sequence[Selector]] = field(default_factory=dict)
    owner_of: Mapping[Entity, str] = field(default_factory=dict)
    """Who declares an entity, where that is stated."""
    notes: tuple[str, ...] = ()
    trusted: TrustedTree | None = None
    """Who vouches for code that the Cluster manifest names."""
    commit: ManifestCommit = field(default_factory=ManifestCommit)
    topics: Mapping[str, int] = field(default_factory=dict)
    """By topic of the current cluster, how many partitions it has; empty: not known."""


def proposal_of(intent: Intent, current: CurrentState | None) -> Proposal:
    """The quotas that an intent proposes and the current ones, with the cluster's backtest policy and owners."""
    if intent.desired.with_units:
        intent = divide_totals(intent, current)
    owners = {name: owner.entities or () for name, owner in intent.owners.items()}
    made = make_proposal(intent.desired, current, intent.spec)
    return replace(
        made,
        owners=owners,
        notes=(*made.notes, *intent.notes, *judged_notes(intent.desired)),
        trusted=intent.trusted,
        commit=intent.source() if intent.paths else ManifestCommit(),
    )


def make_proposal(desired: DesiredState, current: CurrentState | None, spec: ClusterSpec) -> Proposal:
    """Return what a plan would make of the cluster. Without a current state there is what the manifests declare."""
    declared = desired.values()
    sources = {(e, key.value): q.source for e, d in desired.entities.items() for key, q in d.quotas.items()}
    owner_of = {entity: quotas.owner for entity, quotas in desired.entities.items() if quotas.owner is not None}
    if current is None:
        return Proposal(current=None, proposed=declared, declared=declared, sources=sources, spec=spec, owner_of=owner_of)
    changes = difference(desired, current, scope=spec.scope, prune=spec.prune).changes
    return Proposal(
        current=current.entities,
        proposed=quotas_after(current.entities, changes),
        declared=declared,
        sources=sources,
        kafka_version=current.cluster.kafka_version,
        brokers=current.brokers,
        leaders=current.leaders,
        topics=current.leaders.topic_partitions if current.leaders is not None else {},
        spec=spec,
        owner_of=owner_of,
        notes=() if current.cluster.quota_callback is None else tuple(quota_class_notes(current.cluster)),
    )


def set_quotas(proposal: Proposal, settings: Mapping[Entity, Mapping[str, float]]) -> Proposal:
    """The proposal with these values on top: they are proposed and declared, and no place of a manifest sets them."""
    if not settings:
        return proposal
    written = {(entity, key) for entity, values in settings.items() for key in values}
    return replace(
        proposal,
        proposed=_overlaid(proposal.proposed, settings),
        declared=_overlaid(proposal.declared, settings),
        sources={quota: span for quota, span in proposal.sources.items() if quota not in written},
    )


def proposal_of_settings(settings: Mapping[Entity, Mapping[str, float]], current: CurrentState | None) -> Proposal:
    """The current quotas with these values on top, without any manifest. ``None``: the current ones are not known."""
    return set_quotas(make_proposal(DesiredState(), current, ClusterSpec()), settings)


def _overlaid(
    quotas: Mapping[Entity, Mapping[str, float]], settings: Mapping[Entity, Mapping[str, float]]
) -> dict[Entity, Mapping[str, float]]:
    return {**quotas, **{entity: {**quotas.get(entity, {}), **values} for entity, values in settings.items()}}


def run_backtest(proposal: Proposal, options: BacktestOptions, *, progress: Progress = NO_PROGRESS) -> BacktestReport:
    """Replay the traffic: small traffic in this process, large traffic, or with a master given, on Spark.

    Raises ``UsageError`` for options that cannot work, ``MissingDependencyError`` without the packages, ``TrafficError`` for
    traffic that cannot be used, ``FileAccessError`` when the requests cannot be written, ``UntrustedError`` for traffic or a
    mapping that a pull request brings, and as ``broker_model``.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    from reconciler.traffic import Backtest

    question = backtest_request(proposal, options)
    if question.calls_back:
        proposal = replace(proposal, notes=(*proposal.notes, *callback_notes(proposal, question, options)))
    if options.prometheus is not None:
        options, notes = fetch_samples(proposal, options, progress=progress)
        proposal = replace(proposal, notes=(*proposal.notes, *notes))
    spark: list[str] = []
    with open_recorded(proposal, options, by_seconds=not question.exact, progress=progress, on_spark=spark.append) as recorded:
        run = Backtest(recorded, question)
        progress.step("judging")
        report = run.report()
        if spark:
            report = replace(report, provenance=replace(report.provenance, spark=spark[0]))
        if options.requests is not None:
            progress.step(f"writing every request to {options.requests}")
            write_whole(options.requests, (f"{text}\n" for text in run.request_lines()))
    return apply_rules(report, proposal)


def backtest_request(proposal: Proposal, options: BacktestOptions) -> BacktestRequest:
    """The judgement to make, with the brokers' settings. Raises ``UsageError``, ``UntrustedError`` or ``QuotaCallbackError``."""
    from reconciler.traffic import BacktestRequest

    asked, seen = options.kafka_version, proposal.kafka_version
    known = "no Kafka version is given" if seen is None else f"the snapshot's version, {seen}"
    model = broker_model(
        proposal.spec,
        version=asked or seen,
        quota_callback=options.quota_callback,
        trusted=proposal.trusted,
        leaders=proposal.leaders,
    )
    return BacktestRequest(
        current=proposal.current,
        proposed=proposal.proposed,
        declared=proposal.declared,
        sources=proposal.sources,
        broker=replace(model, version_from=known if asked is None else f"--kafka-version {asked}"),
        log_timezone=options.log_timezone,
        exact=options.exact or options.requests is not None,
        unchanged=any(rule.unchanged for rule in proposal.spec.backtest.fail),
        needs=proposal.spec.backtest.history,
        brokers=proposal.brokers,
        plots=options.plots,
    )


def callback_notes(proposal: Proposal, question: BacktestRequest, options: BacktestOptions) -> tuple[Message, ...]:
    """Name whose leaders decide how the plugin of groups shares totals, where it has any."""
    if question.broker.rule.callback_name != GROUP_CALLBACK:
        return ()
    version = release(options.kafka_version or proposal.kafka_version)
    return tuple(leader_notes({**proposal.proposed, **(proposal.current or {})}, question.broker.rule.leaders, version))


def fetch_samples(
    proposal: Proposal, options: BacktestOptions, *, progress: Progress = NO_PROGRESS
) -> tuple[BacktestOptions, tuple[Message, ...]]:
    """The options with pages of samples in place of a Prometheus server, and what to know about the samples.

    Options that name no server stay as they are. Raises as ``fetch_from_server``, and ``UsageError`` for a mapping.
    """
    if options.prometheus is None:
        return options, ()
    if options.mapping is not None:
        raise UsageError("--mapping is for Parquet and CSV, and --traffic names a metrics server: leave --mapping out")
    pages = fetch_from_server(
        options.prometheus, now=datetime.datetime.now(datetime.UTC), progress=progress, trusted=proposal.trusted
    )
    require_samples(pages, options.prometheus)
    return replace(options, traffic=tuple(map(str, pages.files)), between=pages.between), pages.notes


@contextlib.contextmanager
def open_recorded(
    proposal: Proposal,
    options: BacktestOptions,
    *,
    by_seconds: bool = False,
    throttles: bool = False,
    progress: Progress = NO_PROGRESS,
    on_spark: Callable[[str], None] | None = None,
) -> Iterator[TrafficSource]:
    """The files that ``options`` name as traffic, closed at the end; Spark starts where they are large.

    ``by_seconds``: as ``Reading`` has it. ``on_spark``: called with where Spark runs, when it starts.
    ``throttles``: recorded throttles will be asked for, of requests of every kind.
    Raises ``UsageError``, ``MissingDependencyError``, ``TrafficError`` and ``UntrustedError``.
    """
    from reconciler.traffic import BYTES, KEY_OF_KIND, Kind, Reading, Source, find_traffic, open_traffic, spark_with_progress

    if options.prometheus is None and proposal.trusted is not None:
        _require_trusted_traffic(options.traffic, proposal.trusted)
    mapping = None if options.mapping is None else read_trusted_mapping(options.mapping, proposal.trusted)
    traffic = find_traffic(options.traffic, mapping, between=options.between)
    if options.exact and not traffic.of_requests:
        raise UsageError(
            "--exact needs single requests, and this traffic has none: leave --exact out, or give the request logs with --traffic"
        )
    tables = (proposal.current or {}, proposal.proposed)
    keys = {key for table in tables for values in table.values() for key in values}
    # Nothing need be read of a kind without a quota, before or after.
    kinds = Kind if throttles else (*BYTES, *(kind for kind, key in KEY_OF_KIND.items() if key in keys and kind not in BYTES))
    with contextlib.ExitStack() as stack:

        def session() -> SparkSession:
            wanted = traffic.session(options.spark)
            if on_spark is not None:
                on_spark(wanted.where)
            return stack.enter_context(spark_with_progress(wanted, progress))

        progress.step("reading the traffic")
        recorded = open_traffic(
            traffic,
            functools.cache(session),
            Reading(
                log_timezone=options.log_timezone,
                kinds=tuple(kinds),
                by_seconds=by_seconds,
                progress=progress,
                topics=proposal.topics,
            ),
            in_process=traffic.stays_here(options.spark),
            requests=options.requests is not None or (throttles and traffic.source is Source.LOGS),
            max_unreadable=options.max_unreadable,
        )
        stack.callback(recorded.close)
        yield recorded


def _require_trusted_traffic(arguments: Sequence[str], trusted: TrustedTree) -> None:
    """Raise ``UntrustedError`` for files that git tracks and that are not those of the reference."""
    from reconciler.traffic import local_path, parse_dataset, split_argument

    files = trusted.files
    for argument in arguments:
        dataset = parse_dataset(argument)
        path = str(split_argument(argument)[1]) if dataset is None else local_path(dataset)
        if path is not None:
            files.require_same_below(path)


def apply_rules(report: BacktestReport, proposal: Proposal) -> BacktestReport:
    """The report with the names of the cluster and the outcome of its rules."""
    named = replace(
        report,
        cluster=proposal.spec.name,
        notes=(*proposal.notes, *report.notes),
        commit=proposal.commit,
        declared=DeclaredQuotas(sources=proposal.sources, owner_of=proposal.owner_of),
    )
    policy = proposal.spec.backtest
    if not policy.fail:
        return named
    rules = FailingRows(policy=policy, owners=proposal.owners, owner_of=proposal.owner_of)
    return rules.judge(named, proposal.sources)
