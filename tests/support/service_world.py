"""A service over a cluster in memory and a clock that passes only when it waits; a test says what happens at which second."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from reconciler.apply.executor import ApplySettings
from reconciler.errors import BackendError
from reconciler.features.service.endpoint import Health, HealthLimits
from reconciler.features.service.log import Log, LogFormat
from reconciler.features.service.loop import Loop, Pace, Pacing
from reconciler.features.service.metrics import RunMetrics
from reconciler.features.service.observers import Observers, metric_labels
from reconciler.features.service.passes import Passes, PassOutcome, World, WriteRecorder
from reconciler.features.service.replay import replay_plan
from reconciler.features.service.watch import Watch
from reconciler.ports import QuotaCluster
from reconciler.workflows.drift import GivenBaseline
from reconciler.workflows.intent import Intent, load_intent
from tests.fakes import FakeClock, FakeCluster
from tests.support.manifests import cluster as cluster_document
from tests.support.manifests import quotas

PACE = Pace(interval=100.0, jitter=0.0, poll=5.0, first_retry=5.0, longest_retry=50.0)
_SAMPLE = re.compile(r"^(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$", re.MULTILINE)


def rates(**by_user: str) -> str:
    """A ClientQuotas document: users and their producer_byte_rate."""
    return quotas(*(({"user": user}, {"producer_byte_rate": rate}) for user, rate in by_user.items()))


def write_manifests(folder: Path, *, prune: str = "never", **by_user: str) -> Path:
    """A folder with a Cluster manifest and one quota for each user (``alice`` by default)."""
    folder.mkdir(exist_ok=True)
    (folder / "cluster.yaml").write_text(cluster_document(prune=prune), encoding="utf-8")
    (folder / "quotas.yaml").write_text(rates(**(by_user or {"alice": "1MiB"})), encoding="utf-8")
    return folder


class Script:
    """The ``Requests`` of a test: actions at seconds of the clock, and the end at one of them."""

    def __init__(self, clock: FakeClock, *, until: float, actions: Mapping[float, Callable[[], object]]) -> None:
        self._clock = clock
        self._until = until
        self._actions = dict(sorted(actions.items()))
        self.stopped = False
        self.reread = False

    def stop_wanted(self) -> bool:
        return self.stopped or self._clock.monotonic() >= self._until

    def hold(self) -> None:
        pass

    def breakable(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def take_reread(self) -> bool:
        taken, self.reread = self.reread, False
        return taken

    def wait(self, seconds: float) -> None:
        assert seconds > 0, "the loop must not spin"
        self._clock.sleep(seconds)
        for at in [at for at in self._actions if at <= self._clock.monotonic()]:
            self._actions.pop(at)()


class NoRecorder:
    """``WriteRecorder`` that leave none."""

    def begin(self, intent: object, plan: object) -> None:
        pass

    def ended(self, report: object) -> None:
        pass


class ServiceWorld:
    """One service; ``run`` lets it live for so many seconds. Outcomes, metrics and log lines are there to be looked at."""

    def __init__(
        self,
        folder: Path,
        cluster: FakeCluster,
        *,
        applies: bool = True,
        clock: FakeClock | None = None,
        settings: ApplySettings | None = None,
        recorder: WriteRecorder | None = None,
        paths: tuple[str, ...] = (),
        log_format: LogFormat = LogFormat.TEXT,
        load: Callable[[], Intent] | None = None,
        given: Callable[[], GivenBaseline | None] = lambda: None,
        pace: Pace = PACE,
    ) -> None:
        self.cluster = cluster
        self.clock = clock or FakeClock()
        self.down: BackendError | None = None
        self.connects = 0
        self.outcomes: list[PassOutcome] = []
        self.keep_outcomes = True
        self.stream = io.StringIO()
        self.metrics = RunMetrics(metric_labels(), version="0", applies=applies)
        self.health = Health(HealthLimits(silent=1200.0, stale=305.0), clock=self.clock)
        self._observers = Observers(self.metrics, Log(self.stream, log_format, clock=self.clock), self.health, clock=self.clock)
        places = paths or (str(folder),)
        self.watch: Watch[Intent] = Watch(places, load or (lambda: load_intent(places, cluster=None, at=self.clock.now())))
        world = World(
            connect=self._connect,
            given=lambda _: given(),
            recorder=recorder or NoRecorder(),
            clock=self.clock,
            progress=self._observers,
            replay=replay_plan,
        )
        self.script: Script | None = None
        stopping = settings or ApplySettings(stop_wanted=lambda: self.script is not None and self.script.stopped)
        self._passes = Passes(self.watch, world, stopping if applies else None)
        self._pace = pace
        self._pacing = Pacing(pace, jitter=lambda: 0.5)

    def run(self, seconds: float, at: Mapping[float, Callable[[], object]] | None = None) -> PassOutcome | None:
        """Live for so long; ``at``: what happens at which second from now."""
        start = self.clock.monotonic()
        actions = {start + second: action for second, action in (at or {}).items()}
        self.script = Script(self.clock, until=start + seconds, actions=actions)
        loop = Loop(self.watch, self._passes, pacing=self._pacing, requests=self.script, observer=self, clock=self.clock)
        return loop.run()

    def beat(self) -> None:
        self._observers.beat()

    def pass_ended(self, outcome: PassOutcome, *, failures: int) -> None:
        if self.keep_outcomes:
            self.outcomes.append(outcome)
        self._observers.pass_ended(outcome, failures=failures)

    @property
    def results(self) -> list[str]:
        return [outcome.result.value for outcome in self.outcomes]

    @property
    def log(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def metric(self, name: str, **labels: str) -> float:
        """One sample of the exposition, as Prometheus would read it."""
        wanted = ",".join(f'{label.rstrip("_")}="{value}"' for label, value in sorted(labels.items()))
        body, _ = self.metrics.exposition("")
        found = {(m["name"], m["labels"] or ""): float(m["value"]) for m in _SAMPLE.finditer(body.decode())}
        return found[f"kafka_quotas_{name}", wanted]

    def _connect(self, intent: Intent) -> QuotaCluster:
        del intent
        self.connects += 1
        if self.down is not None:
            raise type(self.down)(str(self.down))
        return self.cluster
