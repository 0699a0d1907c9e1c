"""``kafka-quotas run``: the parts of the service put together.

SIGTERM and SIGINT end the service, SIGHUP makes it read everything again at once.
"""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

import reconciler
from reconciler.apply import ApplySettings
from reconciler.documents import apply_report_to_json
from reconciler.errors import ReconcilerError, UsageError
from reconciler.files import write_whole
from reconciler.formats import document_text
from reconciler.integrations import RunMetrics
from reconciler.model import ApplyReport, Plan, Severity
from reconciler.ports import Clock
from reconciler.service.endpoint import Endpoint, Health, HealthLimits
from reconciler.service.log import Log, LogFormat, redirect_library_logs
from reconciler.service.loop import Loop, Pace, Pacing
from reconciler.service.observers import Observers, metric_labels
from reconciler.service.passes import Passes, PassOutcome, PassResult, World
from reconciler.service.signal_requests import SignalRequests
from reconciler.service.watch import Watch
from reconciler.workflows import (
    Access,
    AuditFile,
    GivenBaseline,
    Intent,
    References,
    given_baseline,
    load_intent,
    open_cluster,
    principal,
)

_STALE_INTERVALS: Final = 3.0
_BEYOND_DEADLINE: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the command line states. ``run_seconds``: the deadline of one write; ``port`` 0: any free one."""

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
    metrics = RunMetrics(metric_labels(), version=reconciler.__version__, applies=settings.applies)
    pace = settings.pace
    stale = _STALE_INTERVALS * pace.interval * (1 + pace.jitter) + pace.poll
    health = Health(HealthLimits(silent=settings.run_seconds + _BEYOND_DEADLINE, stale=stale), clock=clock)
    observers = Observers(metrics, log, health, clock=clock)
    endpoint = Endpoint(settings.host, settings.port, health, metrics.exposition)
    with SignalRequests() as requests, endpoint, redirect_library_logs(log):
        mode = "applies what differs" if settings.applies else "only looks. --apply makes it write"
        log.write(
            logging.INFO,
            "started",
            f"kafka-quotas {reconciler.__version__} {mode}. Metrics at {endpoint.url}/metrics",
            {"version": reconciler.__version__, "applies": settings.applies, "url": endpoint.url, "port": endpoint.address[1]},
        )
        watch = Watch(settings.paths, _loader(settings))
        writing = None
        if settings.applies:
            writing = ApplySettings(run_seconds=settings.run_seconds, stop_wanted=requests.stop_wanted)
        recorder = AuditSink(audit=settings.audit, report=settings.report, access=settings.access, clock=clock)
        world = World(
            connect=lambda intent: open_cluster(intent.spec, settings.access, trusted=intent.trusted),
            given=lambda intent: _given(settings, intent),
            recorder=recorder,
            clock=clock,
            progress=observers,
        )
        passes = Passes(watch, world, writing)
        loop = Loop(watch, passes, pace=pace, pacing=Pacing(pace), requests=requests, observer=observers, clock=clock)
        try:
            last = loop.run(on_first=_require_usable)
        except KeyboardInterrupt:
            log.write(logging.WARNING, "stopped", "interrupted in the middle of a pass, before it had written anything")
            raise
        end = RunEnd(signal=requests.stopped_by, last=last)
        log.write(logging.INFO, "stopped", _farewell(end), {"signal": end.signal, "last": last.result.value if last else None})
    return end


def _require_usable(first: PassOutcome) -> None:
    if first.reason == UsageError.failure_reason:
        raise UsageError(first.message)


def _loader(settings: RunSettings) -> Callable[[], Intent]:
    references = References(trusted=settings.trusted_ref)
    return lambda: load_intent(
        settings.paths, cluster=settings.cluster, fail_on=settings.fail_on, references=references, by_owner=True
    )


def _given(settings: RunSettings, intent: Intent) -> GivenBaseline | None:
    return given_baseline(settings.baseline, settings.paths, trusted=intent.trusted) if settings.baseline is not None else None


def _farewell(end: RunEnd) -> str:
    by = signal.Signals(end.signal).name if end.signal is not None else "nobody"
    if end.last is None:
        return f"stopped by {by} before the first pass"
    return f"stopped by {by}; the last pass ended {end.last.result.value}: {end.last.message}"


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
        """Before a write. Raises ``FileAccessError`` when no line could be added."""
        self._audit = None
        if self._audit_path is None:
            return
        self._audit = AuditFile(self._audit_path, command="run", validate_only=False, clock=self._clock)
        who = None
        # Settings that cannot be used were an error of connecting, and told there.
        with contextlib.suppress(ReconcilerError):
            who = principal(intent.spec, self._access, trusted=intent.trusted)
        self._audit.about(intent.spec, source=plan.source, principal=who)

    def ended(self, report: ApplyReport) -> None:
        """After it. The same refusal, over and over, is one line. Raises ``FileAccessError``."""
        summary = (report.digest, report.result.value, report.failure_reason)
        if self._audit is not None and (report.wrote or summary != self._told):
            self._audit.ended(report)
        self._told = summary
        if self._report_path is not None and report.wrote:
            write_whole(self._report_path, [document_text(apply_report_to_json(report))])
