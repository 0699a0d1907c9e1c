"""A service over a cluster in memory and a clock that passes only when it waits; a test says what happens at which second."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.apply.executor import ApplySettings
from reconciler.errors import BackendError
from reconciler.features.service.log import Log
from reconciler.features.service.loop import Loop, Pace
from reconciler.features.service.manifests import Reading, Watch
from reconciler.features.service.observers import Observers, ServiceMetrics
from reconciler.features.service.passes import Passes, PassOutcome
from reconciler.features.service.signals import SignalRequests
from reconciler.ports import QuotaCluster
from reconciler.workflows.drift import GivenBaseline
from reconciler.workflows.intent import Intent, load_intent
from tests.fakes import FakeClock, FakeCluster
from tests.support.manifests import cluster as cluster_document
from tests.support.manifests import quotas

INTERVAL_S = 100.0


def rates(**by_user: str) -> str:
    """A ClientQuotas document: users and their producer_byte_rate."""
    return quotas(*(({"user": user}, {"producer_byte_rate": rate}) for user, rate in by_user.items()))


def write_manifests(folder: Path, *, prune: str = "never", **by_user: str) -> Path:
    """A folder with a Cluster manifest and one quota for each user (``alice`` by default)."""
    folder.mkdir(exist_ok=True)
    (folder / "cluster.yaml").write_text(cluster_document(prune=prune), encoding="utf-8")
    (folder / "quotas.yaml").write_text(rates(**(by_user or {"alice": "1MiB"})), encoding="utf-8")
    return folder


class Script(SignalRequests):
    """The requests of a test: actions at seconds of the clock, and the end at one of them."""

    def __init__(
        self, clock: FakeClock, *, until: float = 0.0, actions: Mapping[float, Callable[[], object]] | None = None
    ) -> None:
        super().__init__()
        self._clock = clock
        self.until = until
        self.actions = dict(sorted((actions or {}).items()))
        self.stopped = False
        self.reread = False
        self._is_woken = False

    def stop_wanted(self) -> bool:
        return self.stopped or self._clock.monotonic() >= self.until

    def take_reread(self) -> bool:
        taken, self.reread = self.reread, False
        return taken

    def wait(self, seconds: float) -> None:
        assert seconds > 0, "the loop must not spin"
        self._clock.sleep(0.0 if self._is_woken else seconds)
        self._is_woken = False
        for at in [at for at in self.actions if at <= self._clock.monotonic()]:
            self.actions.pop(at)()

    def wake(self) -> None:
        self._is_woken = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutcomes(Observers):
    """Observers that keep the outcomes, too. ``stream``: the log."""

    stream: io.StringIO
    outcomes: list[PassOutcome] = field(default_factory=list)

    def pass_ended(self, cluster: str, outcome: PassOutcome, *, failures: int) -> None:
        self.outcomes.append(outcome)
        Observers.pass_ended(self, cluster, outcome, failures=failures)


def observers_of(clock: FakeClock, *, applies: bool = True, as_json: bool = False) -> KeptOutcomes:
    """The observers of a service."""
    stream = io.StringIO()
    return KeptOutcomes(log=Log(stream, as_json=as_json), stream=stream, metrics=ServiceMetrics(applies=applies), clock=clock)


def sample_of(metrics: ServiceMetrics, name: str, **labels: str) -> float | None:
    """One sample as Prometheus reads it, of cluster ``prod`` unless another one is named."""
    wanted = {"cluster": "prod", **{label.rstrip("_"): value for label, value in labels.items()}}
    return metrics.registry.get_sample_value(f"kafka_quotas_{name}", wanted)


class ServiceWorld:
    """One service, whose passes run between two waits; ``run`` lets it live for so many seconds.

    Outcomes, metrics and log lines are there to be looked at.
    """

    def __init__(
        self,
        folder: Path,
        cluster: FakeCluster,
        *,
        applies: bool = True,
        clock: FakeClock | None = None,
        settings: ApplySettings | None = None,
        audit: Path | None = None,
        report: Path | None = None,
        paths: tuple[str, ...] = (),
        as_json: bool = False,
        load: Callable[[], Reading] | None = None,
        given: Callable[[], GivenBaseline | None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self.clock = clock or FakeClock()
        self.down: BackendError | None = None
        self.connects = 0
        self._observers = observers_of(self.clock, applies=applies, as_json=as_json)
        self.outcomes, self.stream = self._observers.outcomes, self._observers.stream
        places = paths or (str(folder),)
        self.watch = Watch(places, load or (lambda: (load_intent(places, cluster=None, at=self.clock.now()),)))
        self.script = Script(self.clock)
        stopping = settings or ApplySettings(stop_wanted=lambda: self.script.stopped)
        passes = Passes(
            connect=self._connect,
            clock=self.clock,
            given=lambda _: given(),
            settings=stopping if applies else None,
            audit=audit,
            report=report,
        )
        self.loop = Loop(
            self.watch,
            lambda _: passes,
            pace=Pace(interval_s=INTERVAL_S, silent_s=1200.0),
            requests=self.script,
            observers=self._observers,
            start=lambda work: work(),
        )

    def run(self, seconds: float, at: Mapping[float, Callable[[], object]] | None = None) -> PassOutcome | None:
        """Live for so long, from a pass on; ``at``: what happens at which second from now."""
        start = self.clock.monotonic()
        self.script.until = start + seconds
        self.script.actions = {start + second: action for second, action in sorted((at or {}).items())}
        self.script.reread = True
        return next(iter(self.loop.run()), None)

    @property
    def results(self) -> list[str]:
        return [outcome.result.value for outcome in self.outcomes]

    @property
    def log(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def metric(self, name: str, **labels: str) -> float | None:
        return sample_of(self._observers.metrics, name, **labels)

    def _connect(self, intent: Intent) -> QuotaCluster:
        del intent
        self.connects += 1
        if self.down is not None:
            raise type(self.down)(str(self.down))
        return self.cluster
