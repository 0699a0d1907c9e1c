"""What the clusters of one service share: a reading of the manifests, the number of passes at once, and pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reconciler.errors import UnreachableError
from reconciler.features.service.loop import Loop, Pace
from reconciler.features.service.manifests import Reading, Watch
from reconciler.features.service.passes import Passes, PassOutcome, PassResult
from reconciler.model.finding import Severity
from reconciler.workflows.every_cluster import load_every_intent
from reconciler.workflows.intent import Intent
from reconciler.workflows.load import References
from tests.builders import user
from tests.fakes import FakeClock, FakeCluster
from tests.support.manifests import cluster
from tests.support.service_world import INTERVAL_S, Script, observers_of, rates


class Passed(Passes):
    """Passes that only say that they were run, over a cluster that may have a defect, or be away."""

    def __init__(self, clock: FakeClock, error: Exception | None) -> None:
        super().__init__(connect=lambda _: FakeCluster(), clock=clock)
        self.error = error
        self.values: list[object] = []

    def run(self, intent: Intent) -> PassOutcome:
        self.values.append(intent.desired.values())
        if isinstance(self.error, UnreachableError):
            return PassOutcome(result=PassResult.CLUSTER, reason="unreachable")
        if self.error is not None:
            raise self.error
        return PassOutcome(result=PassResult.IN_SYNC)


class Clusters:
    """A folder with some clusters, and a loop that follows them all."""

    def __init__(self, folder: Path, *names: str, errors: dict[str, Exception] | None = None) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.readings = 0
        self.passes: dict[str, Passed] = {}
        self.waiting: list[Callable[[], None]] = []
        self.errors = errors or {}
        self.observers = observers_of(self.clock)
        for name in names:
            (folder / f"{name}.yaml").write_text(cluster(name))
        (folder / "quotas.yaml").write_text(rates(alice="1MiB"))

    def _load(self) -> Reading:
        self.readings += 1
        return load_every_intent((str(self.folder),), fail_on=Severity.ERROR, references=References(), at=self.clock.now())

    def _passes_of(self, name: str) -> Passes:
        return self.passes.setdefault(name, Passed(self.clock, self.errors.get(name)))

    def run(self, seconds: float, at: dict[float, Callable[[], object]] | None = None, *, waits: bool = False) -> None:
        """``waits``: no pass ends by itself."""
        Loop(
            Watch((str(self.folder),), self._load),
            self._passes_of,
            pace=Pace(interval_s=INTERVAL_S, silent_s=1200.0),
            requests=Script(self.clock, until=seconds, actions=at or {}),
            observers=self.observers,
            start=self.waiting.append if waits else lambda work: work(),
        ).run()

    def samples(self) -> set[tuple[str, str]]:
        families = self.observers.metrics.registry.collect()
        return {(sample.labels["cluster"], sample.name) for family in families for sample in family.samples}


def test_one_reading_serves_every_cluster(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path, "east", "west")
    clusters.run(2.5 * INTERVAL_S)
    assert clusters.readings == 3
    assert [len(passes.values) for passes in clusters.passes.values()] == [3, 3]


def test_a_defect_or_an_outage_of_one_cluster_leaves_the_others(tmp_path: Path) -> None:
    errors = {"east": ZeroDivisionError("in this program"), "south": UnreachableError("away")}
    clusters = Clusters(tmp_path, "east", "south", "west", errors=errors)
    clusters.run(INTERVAL_S / 2)
    assert [len(clusters.passes[name].values) for name in ("east", "south", "west")] == [4, 4, 1]
    assert "ZeroDivisionError: in this program" in clusters.observers.stream.getvalue()


def test_a_cluster_that_no_manifest_declares_any_more_ends(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path, "east", 'we"st')
    clusters.run(3)
    both = clusters.samples()
    assert {name for name, _ in both} == {"east", 'we"st'}
    assert {sample for name, sample in both if name == "east"} == {sample for name, sample in both if name != "east"}

    clusters.run(20, at={10: (tmp_path / "east.yaml").unlink})
    assert {name for name, _ in clusters.samples()} == {'we"st'}


def test_invalid_manifests_are_a_pass_of_each_cluster_and_told_once(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path, "east", "west")
    clusters.run(20, at={10: lambda: (tmp_path / "quotas.yaml").write_text("kind: [")})
    outcomes = clusters.observers.outcomes
    assert [outcome.result.value for outcome in outcomes] == ["in_sync", "in_sync", "invalid", "invalid"]
    assert [bool(outcome.details) for outcome in outcomes] == [False, False, True, False]


def test_manifests_that_are_invalid_from_the_start_are_a_series_until_a_cluster_is_known(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path, "east")
    (tmp_path / "quotas.yaml").write_text("kind: [")
    seen = []

    def repair() -> None:
        seen.append({name for name, _ in clusters.samples()})
        (tmp_path / "quotas.yaml").write_text(rates(alice="1MiB"))

    clusters.run(20, at={10: repair})
    assert seen == [{""}]
    assert {name for name, _ in clusters.samples()} == {"east"}


def test_clusters_that_hang_take_no_more_than_eight_places(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path, *(f"c{number}" for number in range(10)))
    seen = []

    def end_all() -> None:
        seen.append(len(clusters.waiting))
        while clusters.waiting:
            clusters.waiting.pop()()

    clusters.run(5, at={3: end_all, 4: end_all}, waits=True)
    assert seen == [8, 2]


def test_changed_files_are_read_when_two_looks_agree(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path, "east")

    def write(rate: str) -> Callable[[], object]:
        return lambda: (tmp_path / "quotas.yaml").write_text(rates(alice=rate))

    clusters.run(20, at={second: write(f"{second}MiB") for second in (10, 11, 12)})
    assert clusters.passes["east"].values == [{user("alice"): {"producer_byte_rate": rate * 2.0**20}} for rate in (1, 12)]
