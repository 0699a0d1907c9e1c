"""``kafka-quotas run``: the parts of the service put together."""

from __future__ import annotations

import logging
import signal
from collections import Counter
from collections.abc import Callable
from typing import Final, TextIO

import reconciler
from reconciler.apply import ApplySettings
from reconciler.cli import exit_codes
from reconciler.cli.option_groups import baseline_reader
from reconciler.features.service.log import Log
from reconciler.features.service.loop import Loop, Pace
from reconciler.features.service.manifests import Reading, Watch
from reconciler.features.service.observers import Observers, ServiceMetrics
from reconciler.features.service.pages import served
from reconciler.features.service.passes import Passes, PassResult
from reconciler.features.service.run_command import RunArguments
from reconciler.features.service.signals import SignalRequests
from reconciler.logs import Datum
from reconciler.model import Severity, slug_of
from reconciler.ports import Clock
from reconciler.workflows import References, load_every_intent, load_intent, open_cluster

_BEYOND_DEADLINE_S: Final = 900.0
"""For reading, and for a replay of traffic, before a write that ends at its deadline."""


def run_service(args: RunArguments, stream: TextIO, *, as_json: bool, clock: Clock) -> int:
    """Run until a signal ends it, with the log on ``stream``. Returns the exit code.

    Raises ``EndpointError`` when the address is taken, and ``UsageError`` when the first reading finds that the options cannot
    work. Later that counts as manifests that are not valid.
    """
    log, metrics = Log(stream, as_json=as_json), ServiceMetrics(applies=args.apply)
    pace = Pace(interval_s=args.interval, silent_s=args.deadline + _BEYOND_DEADLINE_S, is_strict=not args.clusters.all_clusters)
    with SignalRequests() as requests, log.with_libraries():
        loop = Loop(
            Watch(args.paths, _loader(args, clock)),
            _passes(args, clock, requests),
            pace=pace,
            requests=requests,
            observers=Observers(log=log, metrics=metrics, clock=clock),
        )
        health = {"/healthz": loop.alive, "/readyz": loop.ready}
        with served(args.address, args.port, metrics.registry, health) as (host, port):
            mode = "applies what differs" if args.apply else "only looks. --apply makes it write"
            url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            version = reconciler.__version__
            fields: dict[str, Datum] = {"version": version, "applies": args.apply, "url": url, "port": port}
            log.write(logging.INFO, "started", f"kafka-quotas {version} {mode}. Metrics at {url}/metrics", fields)
            try:
                last = loop.run()
            except KeyboardInterrupt:
                log.write(logging.WARNING, "stopped", "interrupted in the middle of a pass")
                raise
            assert requests.stopped_by is not None
            by, results = signal.Signals(requests.stopped_by), Counter(outcome.result.value for outcome in last)
            text = ", ".join(f"{count} {result}" for result, count in sorted(results.items())) or "none"
            fields = {"signal": by, "last": dict(results)}
            log.write(logging.INFO, "stopped", f"stopped by {by.name}. The last passes ended: {text}", fields)
    if results[PassResult.PARTIAL]:
        return exit_codes.PARTIAL
    return exit_codes.INTERRUPTED if by is signal.SIGINT else exit_codes.DONE


def _loader(args: RunArguments, clock: Clock) -> Callable[[], Reading]:
    fail_on, references = Severity(args.fail_on), References(trusted=args.trusted_ref)

    def load() -> Reading:
        if args.clusters.all_clusters:
            return load_every_intent(args.paths, fail_on=fail_on, references=references, at=clock.now())
        chosen = args.clusters.cluster
        return (load_intent(args.paths, cluster=chosen, fail_on=fail_on, references=references, at=clock.now()),)

    return load


def _passes(args: RunArguments, clock: Clock, requests: SignalRequests) -> Callable[[str], Passes]:
    access, is_for_all = args.clusters.access(), args.clusters.all_clusters
    settings = ApplySettings(run_seconds=args.deadline, stop_wanted=requests.stop_wanted) if args.apply else None

    def passes_of(cluster: str) -> Passes:
        return Passes(
            connect=lambda intent: open_cluster(intent.spec, access, trusted=intent.trusted),
            clock=clock,
            given=baseline_reader(args.baseline, args.paths),
            settings=settings,
            hold=requests.hold,
            access=access,
            audit=args.audit,
            report=args.report / f"{slug_of(cluster)}.json" if args.report and is_for_all else args.report,
        )

    return passes_of
