"""``kafka-quotas run``: the parts of the service put together."""

from __future__ import annotations

import logging
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TextIO

import reconciler
from reconciler.apply import ApplySettings
from reconciler.features.service.audit_sink import AuditSink
from reconciler.features.service.log import Log, redirect_library_logs
from reconciler.features.service.loop import Following, Loop, Pace
from reconciler.features.service.manifests import Reading, Watch
from reconciler.features.service.metrics import ServiceMetrics
from reconciler.features.service.observers import Observers, PassProgress
from reconciler.features.service.pages import Endpoint, Health
from reconciler.features.service.passes import Passes, PassOutcome, PassResult, World
from reconciler.features.service.run_command import RunArguments
from reconciler.features.service.signals import SignalRequests
from reconciler.logs import Datum
from reconciler.model import Severity, slug_of
from reconciler.ports import Clock
from reconciler.workflows import GivenBaseline, Intent, References, given_baseline, load_every_intent, load_intent, open_cluster

_STALE_INTERVALS: Final = 3.3
"""Three intervals with their jitter."""
_BEYOND_DEADLINE_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How the service ended. ``signal``: what ended it; ``last``: the last pass of each cluster that had one."""

    signal: int | None
    last: tuple[PassOutcome, ...]

    @property
    def is_partial(self) -> bool:
        """Whether the last pass over a cluster wrote something and did not complete."""
        return any(outcome.result is PassResult.PARTIAL for outcome in self.last)


def run_service(args: RunArguments, stream: TextIO, *, as_json: bool, clock: Clock) -> RunEnd:
    """Run until a signal ends it, with the log on ``stream``. Raises ``EndpointError`` at once when the address is taken.

    Raises ``UsageError`` when the options cannot work, e.g. for a cluster that no manifest names; later that counts as manifests
    that are not valid.
    """
    log = Log(stream, as_json=as_json, clock=clock)
    metrics = ServiceMetrics(applies=args.apply)
    health = Health(silent_s=args.deadline + _BEYOND_DEADLINE_S, stale_s=_STALE_INTERVALS * args.service.interval, clock=clock)
    endpoint = Endpoint(args.service.address, args.service.port, health, metrics.exposition)
    with SignalRequests() as requests, redirect_library_logs(log), endpoint:
        _announce(args, endpoint, log)
        observers = Observers(log=log, metrics=metrics, health=health, clock=clock)
        loop = Loop(
            Watch(args.paths, _loader(args, clock)),
            _passes(args, observers, requests),
            pace=Pace(interval_s=args.service.interval),
            requests=requests,
            observers=observers,
            is_strict=not args.clusters.all_clusters,
        )
        try:
            end = RunEnd(last=loop.run(), signal=requests.stopped_by)
        except KeyboardInterrupt:
            log.write(logging.WARNING, "stopped", "interrupted in the middle of a pass")
            raise
        _report_end(end, log)
    return end


def _announce(args: RunArguments, endpoint: Endpoint, log: Log) -> None:
    mode = "applies what differs" if args.apply else "only looks. --apply makes it write"
    log.write(
        logging.INFO,
        "started",
        f"kafka-quotas {reconciler.__version__} {mode}. Metrics at {endpoint.url}/metrics",
        {"version": reconciler.__version__, "applies": args.apply, "url": endpoint.url, "port": endpoint.address[1]},
    )


def _report_end(end: RunEnd, log: Log) -> None:
    by = signal.Signals(end.signal).name if end.signal is not None else "nobody"
    results = dict(sorted(Counter(outcome.result.value for outcome in end.last).items()))
    if not end.last:
        text = "before the first pass"
    elif len(end.last) == 1:
        text = f"The last pass ended {end.last[0].result.value}: {end.last[0].message}"
    else:
        counts = ", ".join(f"{count} {result}" for result, count in results.items())
        text = f"The last passes of {len(end.last)} clusters ended: {counts}"
    last: Datum = end.last[0].result.value if len(end.last) == 1 else results
    log.write(logging.INFO, "stopped", f"stopped by {by}. {text}", {"signal": end.signal, "last": last})


def _loader(args: RunArguments, clock: Clock) -> Callable[[], Reading]:
    fail_on, references = Severity(args.fail_on), References(trusted=args.trusted_ref)

    def load() -> Reading:
        if args.clusters.all_clusters:
            return load_every_intent(args.paths, fail_on=fail_on, references=references, at=clock.now())
        chosen = args.clusters.cluster
        intent = load_intent(args.paths, cluster=chosen, fail_on=fail_on, references=references, at=clock.now())
        return (intent,)

    return load


def _passes(args: RunArguments, observers: Observers, requests: SignalRequests) -> Callable[[Following], Passes]:
    access = args.clusters.access()

    def given(intent: Intent) -> GivenBaseline | None:
        return None if args.baseline is None else given_baseline(args.baseline, args.paths, trusted=intent.trusted)

    def passes_of(cluster: Following) -> Passes:
        report = args.report
        if report is not None and args.clusters.all_clusters:
            report = report / f"{slug_of(cluster.name)}.json"
        world = World(
            connect=lambda intent: open_cluster(intent.spec, access, trusted=intent.trusted),
            given=given,
            recorder=AuditSink(audit=args.audit, report=report, access=access, clock=observers.clock),
            clock=observers.clock,
            progress=PassProgress(health=observers.health, cluster=cluster.name),
            hold=requests.hold,
        )
        if not args.apply:
            return Passes(world, None)
        settings = ApplySettings(run_seconds=args.deadline, stop_wanted=lambda: cluster.is_gone or requests.stop_wanted())
        return Passes(world, settings)

    return passes_of
