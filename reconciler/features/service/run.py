"""``kafka-quotas run``: the parts of the service put together.

SIGTERM and SIGINT end the service, SIGHUP makes it read everything again at once.
"""

from __future__ import annotations

import contextlib
import logging
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

import reconciler
from reconciler.apply import ApplySettings
from reconciler.documents import APPLY_REPORT
from reconciler.errors import UsageError
from reconciler.features.service.cluster_loops import ClusterLoops, LoopRequests
from reconciler.features.service.endpoint import Endpoint, Health, HealthLimits, HealthOfClusters
from reconciler.features.service.log import Log, LogFormat, redirect_library_logs
from reconciler.features.service.loop import Loop, Pace, Pacing, Requests, SignalRequests, Turns
from reconciler.features.service.metrics import MetricsOfClusters, RunMetrics
from reconciler.features.service.observers import Observers, metric_labels
from reconciler.features.service.passes import Passes, PassOutcome, PassResult, World
from reconciler.features.service.replay import replay_plan
from reconciler.features.service.watch import Manifests, ManifestsOfCluster, SharedManifests, Watch
from reconciler.files import write_whole
from reconciler.logs import Datum
from reconciler.model import ApplyReport, ClusterFailure, Plan, Severity, slug_of
from reconciler.ports import Clock
from reconciler.workflows import (
    Access,
    AuditFile,
    GivenBaseline,
    Intent,
    References,
    given_baseline,
    known_principal,
    load_every_intent,
    load_intent,
    open_cluster,
)

_STALE_INTERVALS: Final = 3.0
_BEYOND_DEADLINE: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the command line states. ``run_seconds``: the deadline of one write; port 0 of ``address``: any free one.

    ``report``: a file; with ``all_clusters`` a folder.
    """

    paths: tuple[str, ...]
    cluster: str | None = None
    all_clusters: bool = False
    parallel: int = 8
    """With ``all_clusters``: how many passes run at the same time."""
    access: Access = field(default_factory=Access)
    trusted_ref: str | None = None
    baseline: str | None = None
    fail_on: Severity = Severity.ERROR
    applies: bool = False
    run_seconds: float = 900.0
    audit: Path | None = None
    report: Path | None = None
    pace: Pace = field(default_factory=Pace)
    address: tuple[str, int] = ("127.0.0.1", 9746)
    log_format: LogFormat = LogFormat.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How the service ended. ``signal``: what ended it; ``last``: the last pass of each cluster that had one."""

    signal: int | None
    last: tuple[PassOutcome, ...]

    @property
    def is_partial(self) -> bool:
        """True when the last pass of a cluster wrote something and did not complete."""
        return PassResult.PARTIAL.value in self.results

    @property
    def results(self) -> Counter[str]:
        """The number of clusters whose last pass ended in each result."""
        return Counter(outcome.result.value for outcome in self.last)


def run_service(settings: RunSettings, stream: TextIO, *, clock: Clock) -> RunEnd:
    """Run until a signal ends it. Raises ``EndpointError`` at once when the address is taken.

    Raises ``UsageError`` when the first pass finds that the options cannot work, e.g. a cluster that no document names; later
    that counts as manifests that are not valid.
    """
    log = Log(stream, settings.log_format, clock=clock)
    follow = _follow_all if settings.all_clusters else _follow_one
    with SignalRequests() as requests, redirect_library_logs(log):
        try:
            end = RunEnd(last=follow(settings, log, requests, clock), signal=requests.stopped_by)
        except KeyboardInterrupt:
            log.write(logging.WARNING, "stopped", "interrupted in the middle of a pass")
            raise
        last: Datum = end.last[0].result.value if len(end.last) == 1 else dict(end.results)
        log.write(logging.INFO, "stopped", _farewell(end), {"signal": end.signal, "last": last})
    return end


def _follow_one(settings: RunSettings, log: Log, requests: SignalRequests, clock: Clock) -> tuple[PassOutcome, ...]:
    metrics, health = _metrics(settings), _health(settings, clock)
    with _announced(Endpoint(*settings.address, health, metrics.exposition), settings, log):
        observers = Observers(metrics, log, health, clock=clock)
        loop = _loop(settings, Watch(settings.paths, _loader(settings, clock)), observers, requests, report=settings.report)
        last = loop.run(on_first=_require_usable)
    return () if last is None else (last,)


def _follow_all(settings: RunSettings, log: Log, requests: SignalRequests, clock: Clock) -> tuple[PassOutcome, ...]:
    metrics, health = MetricsOfClusters(), HealthOfClusters()
    # A reading serves all passes of one round; jitter spreads those over a part of the interval.
    shared = SharedManifests(settings.paths, _loader_of_all(settings, clock), fresh_s=settings.pace.interval / 2, clock=clock)
    clusters = _LoopsOfClusters(settings, shared, metrics, health, log, clock)
    with _announced(Endpoint(*settings.address, health, metrics.exposition), settings, log):
        loops = ClusterLoops(shared, clusters, pace=settings.pace, requests=requests, log=log, clock=clock)
        return loops.run()


class _LoopsOfClusters:
    """What the loop of each cluster has of its own: metrics, health, lines of the log, and the file of its last report."""

    def __init__(
        self,
        settings: RunSettings,
        shared: SharedManifests,
        metrics: MetricsOfClusters,
        health: HealthOfClusters,
        log: Log,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._shared = shared
        self._metrics = metrics
        self._health = health
        self._log = log
        self._clock = clock
        self._turns = Turns(settings.parallel)

    def add(self, cluster: str, requests: LoopRequests) -> Loop:
        settings, clock = self._settings, self._clock
        metrics, health = _metrics(settings), _health(settings, clock)
        self._metrics.add(cluster, metrics)
        self._health.add(cluster, health)
        report = None if settings.report is None else settings.report / f"{slug_of(cluster)}.json"
        observers = Observers(metrics, self._log.about(cluster), health, clock=clock)
        manifests = ManifestsOfCluster(self._shared, cluster)
        return _loop(settings, manifests, observers, requests, report=report, turns=self._turns)

    def remove(self, cluster: str) -> None:
        self._metrics.remove(cluster)
        self._health.remove(cluster)


def _metrics(settings: RunSettings) -> RunMetrics:
    return RunMetrics(metric_labels(), version=reconciler.__version__, applies=settings.applies)


def _health(settings: RunSettings, clock: Clock) -> Health:
    pace = settings.pace
    stale = _STALE_INTERVALS * pace.interval * (1 + pace.jitter) + pace.poll
    return Health(HealthLimits(silent=settings.run_seconds + _BEYOND_DEADLINE, stale=stale), clock=clock)


@contextlib.contextmanager
def _announced(endpoint: Endpoint, settings: RunSettings, log: Log) -> Iterator[None]:
    with endpoint:
        mode = "applies what differs" if settings.applies else "only looks. --apply makes it write"
        log.write(
            logging.INFO,
            "started",
            f"kafka-quotas {reconciler.__version__} {mode}. Metrics at {endpoint.url}/metrics",
            {"version": reconciler.__version__, "applies": settings.applies, "url": endpoint.url, "port": endpoint.address[1]},
        )
        yield


def _loop(
    settings: RunSettings,
    manifests: Manifests,
    observers: Observers,
    requests: Requests,
    *,
    report: Path | None,
    turns: Turns | None = None,
) -> Loop:
    """The loop of one cluster."""
    clock = observers.clock
    writing = None
    if settings.applies:
        writing = ApplySettings(run_seconds=settings.run_seconds, stop_wanted=requests.stop_wanted, breakable=requests.breakable)
    world = World(
        connect=lambda intent: open_cluster(intent.spec, settings.access, trusted=intent.trusted),
        given=lambda intent: _given(settings, intent),
        recorder=AuditSink(audit=settings.audit, report=report, access=settings.access, clock=clock),
        clock=clock,
        progress=observers,
        replay=replay_plan,
        hold=requests.hold,
    )
    return Loop(
        manifests,
        Passes(manifests, world, writing),
        pacing=Pacing(settings.pace),
        requests=requests,
        observer=observers,
        clock=clock,
        turns=turns,
    )


def _require_usable(first: PassOutcome) -> None:
    if first.reason == UsageError.failure_reason:
        raise UsageError(first.message)


def _loader(settings: RunSettings, clock: Clock) -> Callable[[], Intent]:
    references = References(trusted=settings.trusted_ref)
    return lambda: load_intent(
        settings.paths, cluster=settings.cluster, fail_on=settings.fail_on, references=references, at=clock.now()
    )


def _loader_of_all(settings: RunSettings, clock: Clock) -> Callable[[], tuple[Intent | ClusterFailure, ...]]:
    references = References(trusted=settings.trusted_ref)
    return lambda: load_every_intent(settings.paths, fail_on=settings.fail_on, references=references, at=clock.now())


def _given(settings: RunSettings, intent: Intent) -> GivenBaseline | None:
    return given_baseline(settings.baseline, settings.paths, trusted=intent.trusted) if settings.baseline is not None else None


def _farewell(end: RunEnd) -> str:
    by = signal.Signals(end.signal).name if end.signal is not None else "nobody"
    if not end.last:
        return f"stopped by {by} before the first pass"
    if len(end.last) == 1:
        return f"stopped by {by}. The last pass ended {end.last[0].result.value}: {end.last[0].message}"
    words = ", ".join(f"{count} {result}" for result, count in sorted(end.results.items()))
    return f"stopped by {by}. The last passes of {len(end.last)} clusters ended: {words}"


class AuditSink:
    """Both files are optional. ``report`` has always the last run that wrote something; ``revert`` reads it."""

    def __init__(self, *, audit: Path | None, report: Path | None, access: Access, clock: Clock) -> None:
        self._audit_path = audit
        self._report_path = report
        self._access = access
        self._clock = clock
        self._audit: AuditFile | None = None
        self._told: tuple[str, str, str | None] | None = None

    def begin(self, intent: Intent, plan: Plan) -> None:
        """Begin a line of the audit file. Raises ``FileAccessError`` if none can be added."""
        self._audit = None
        if self._audit_path is None:
            return
        self._audit = AuditFile(self._audit_path, command="run", validate_only=False, clock=self._clock)
        who = known_principal(intent.spec, self._access, trusted=intent.trusted)
        self._audit.about(intent.spec, source=plan.source, principal=who)

    def ended(self, report: ApplyReport) -> None:
        """End the line and write the report. A refusal that repeats is one line. Raises ``FileAccessError``."""
        summary = (report.digest, report.result.value, report.failure_reason)
        if self._audit is not None and (report.wrote or summary != self._told):
            self._audit.ended(report)
        self._told = summary
        if self._report_path is not None and report.wrote:
            write_whole(self._report_path, [APPLY_REPORT.text(report)])
