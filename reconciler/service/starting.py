"""A service from its settings: puts the parts together, runs the loop, and says truthfully how it ended."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

import reconciler
from reconciler.apply import ApplySettings
from reconciler.errors import UsageError
from reconciler.integrations import RunMetrics
from reconciler.model import Severity
from reconciler.ports import Clock
from reconciler.service.endpoint import Endpoint
from reconciler.service.health import Health, HealthLimits
from reconciler.service.log import Level, Log, LogFormat, libraries_into
from reconciler.service.loop import Loop
from reconciler.service.outcome import PassOutcome, PassResult
from reconciler.service.pacing import Pace, Pacing
from reconciler.service.passes import Passes, World
from reconciler.service.signals import SignalRequests
from reconciler.service.telling import Telling, label_values
from reconciler.service.traces import FileTraces
from reconciler.service.watch import Watch
from reconciler.workflows import Access, GivenBaseline, Intent, References, given_baseline, load_intent, open_cluster

_STALE_INTERVALS: Final = 3.0
_BEYOND_DEADLINE: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the command line says. ``run_seconds``: the deadline of one write; ``port`` 0: any free one."""

    paths: tuple[str, ...]
    cluster: str | None = None
    access: Access = field(default_factory=Access)
    trusted_ref: str | None = None
    baseline: str | None = None
    fail_on: Severity = Severity.ERROR
    applies: bool = False
    run_seconds: float = 900.0
    audit: Path | None = None
    report: Path | None = None
    pace: Pace = field(default_factory=Pace)
    host: str = "127.0.0.1"
    port: int = 9746
    log_format: LogFormat = LogFormat.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How the service ended. ``signal``: what ended it; ``last``: the last pass."""

    signal: int | None
    last: PassOutcome | None

    @property
    def is_partial(self) -> bool:
        """True when the last pass wrote something and did not complete."""
        return self.last is not None and self.last.result is PassResult.PARTIAL


def run_service(settings: RunSettings, stream: TextIO, *, clock: Clock) -> RunEnd:
    """Run until a signal ends it. Raises ``EndpointError`` at once when the address is taken.

    Raises ``UsageError`` when the first pass finds that the options cannot work, e.g. a cluster that no document names; later
    that counts as manifests that are not valid.
    """
    log = Log(stream, settings.log_format, clock=clock)
    metrics = RunMetrics(label_values(), version=reconciler.__version__, applies=settings.applies)
    pace = settings.pace
    stale = _STALE_INTERVALS * pace.interval * (1 + pace.jitter) + pace.poll
    health = Health(HealthLimits(silent=settings.run_seconds + _BEYOND_DEADLINE, stale=stale), clock=clock)
    telling = Telling(metrics, log, health, clock=clock)
    endpoint = Endpoint(settings.host, settings.port, health, metrics.exposition)
    with SignalRequests() as requests, endpoint, libraries_into(log):
        mode = "applies what differs" if settings.applies else "only looks; --apply makes it write"
        log.write(
            Level.INFO,
            "started",
            f"kafka-quotas {reconciler.__version__} {mode}; metrics at {endpoint.url}/metrics",
            {"version": reconciler.__version__, "applies": settings.applies, "url": endpoint.url, "port": endpoint.address[1]},
        )
        watch = Watch(settings.paths, _loader(settings))
        writing = None
        if settings.applies:
            writing = ApplySettings(run_seconds=settings.run_seconds, stop_wanted=requests.stop_wanted)
        traces = FileTraces(audit=settings.audit, report=settings.report, access=settings.access, clock=clock)
        world = World(
            connect=lambda intent: open_cluster(intent.spec, settings.access, trusted=intent.trusted),
            given=lambda intent: _given(settings, intent),
            traces=traces,
            clock=clock,
            progress=telling,
        )
        passes = Passes(watch, world, writing)
        loop = Loop(watch, passes, pace=pace, pacing=Pacing(pace), requests=requests, observer=telling, clock=clock)
        try:
            last = loop.run(on_first=_require_usable)
        except KeyboardInterrupt:
            log.write(Level.WARNING, "stopped", "interrupted in the middle of a pass, before it had written anything")
            raise
        end = RunEnd(signal=requests.stopped_by, last=last)
        log.write(Level.INFO, "stopped", _farewell(end), {"signal": end.signal, "last": last.result.value if last else None})
    return end


def _require_usable(first: PassOutcome) -> None:
    if first.reason == UsageError.failure_reason:
        raise UsageError(first.message)


def _loader(settings: RunSettings) -> Callable[[], Intent]:
    references = References(trusted=settings.trusted_ref)
    return lambda: load_intent(settings.paths, cluster=settings.cluster, fail_on=settings.fail_on, references=references)


def _given(settings: RunSettings, intent: Intent) -> GivenBaseline | None:
    return given_baseline(settings.baseline, settings.paths, trusted=intent.trusted) if settings.baseline is not None else None


def _farewell(end: RunEnd) -> str:
    by = signal.Signals(end.signal).name if end.signal is not None else "nobody"
    if end.last is None:
        return f"told to stop by {by}; no pass was made"
    return f"told to stop by {by}; the last pass ended {end.last.result.value}: {end.last.message}"
