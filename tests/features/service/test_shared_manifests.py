"""What many clusters share in one service: a reading of the manifests, turns, and pages."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.features.service.loop import Turns
from reconciler.features.service.metrics import MetricsOfClusters, RunMetrics
from reconciler.features.service.observers import metric_labels
from reconciler.features.service.watch import ManifestsOfCluster, SharedManifests
from reconciler.formats import Json
from reconciler.model.finding import Severity
from reconciler.model.plan import ClusterFailure
from reconciler.workflows.every_cluster import load_every_intent
from reconciler.workflows.intent import Intent
from reconciler.workflows.load import References
from tests.builders import NOON, user
from tests.fakes import FakeClock
from tests.support.manifests import cluster, quotas
from tests.support.service_world import rates

FRESH_S = 100.0


class CountedReading:
    """Shared manifests of a folder with two clusters, and how often they were read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock(moves=True)
        self.readings = 0
        self.meanwhile: Callable[[], None] = lambda: None
        for name in ("east", "west"):
            (folder / f"{name}.yaml").write_text(cluster(name))
        (folder / "quotas.yaml").write_text(rates(alice="1MiB"))
        self.shared = SharedManifests((str(folder),), self._load, fresh_s=FRESH_S, clock=self.clock)
        self.east, self.west = (ManifestsOfCluster(self.shared, name) for name in ("east", "west"))

    def _load(self) -> Sequence[Intent | ClusterFailure]:
        self.readings += 1
        loaded = load_every_intent((str(self.folder),), fail_on=Severity.ERROR, references=References(), at=self.clock.now())
        self.meanwhile()
        return loaded

    def load(self) -> list[str | None]:
        return [each.load(each.fingerprint()).spec.name for each in (self.east, self.west)]


@pytest.fixture
def reading(tmp_path: Path) -> CountedReading:
    return CountedReading(tmp_path)


def test_a_reading_is_old_once_a_value_in_it_expired(reading: CountedReading) -> None:
    until = (NOON + datetime.timedelta(seconds=30)).isoformat()
    entry = {"producer_byte_rate": {"value": "20MiB", "until": until, "then": "1MiB"}}
    (reading.folder / "quotas.yaml").write_text(quotas(({"user": "alice"}, entry)))
    reading.shared.look()
    reading.shared.look()
    values = []
    for _ in range(3):
        values.append(reading.east.load(reading.east.fingerprint()).desired.values()[user("alice")]["producer_byte_rate"])
        reading.clock.sleep(20)

    assert values == [20 * 2.0**20, 20 * 2.0**20, 2.0**20]
    assert reading.readings == 2


def test_one_reading_serves_every_cluster_until_it_is_old(reading: CountedReading) -> None:
    assert (reading.load(), reading.readings) == (["east", "west"], 1)
    reading.clock.sleep(FRESH_S - 1)
    assert (reading.load(), reading.readings) == (["east", "west"], 1)
    reading.clock.sleep(1)
    assert (reading.load(), reading.readings) == (["east", "west"], 2)
    reading.shared.forget()
    assert (reading.load(), reading.readings) == (["east", "west"], 3)


def test_no_more_passes_than_turns_at_once() -> None:
    turns, beats = Turns(2), list[int]()
    assert turns.take(lambda: False, lambda: None)
    assert turns.take(lambda: False, lambda: None)
    assert not turns.take(lambda: True, lambda: beats.append(1))
    assert beats
    threading.Timer(0.05, turns.give_back).start()
    assert turns.take(lambda: False, lambda: None)


def failing(document: dict[str, Json]) -> list[str]:
    names = document["failing"]
    assert isinstance(names, dict)
    return sorted(names)


def test_series_of_many_clusters_differ_by_one_label_only() -> None:
    clusters = MetricsOfClusters()
    alone = RunMetrics(metric_labels(), version="1", applies=True)
    for name in ("east", 'we"st\n'):
        metrics = RunMetrics(metric_labels(), version="1", applies=True)
        metrics.count_pass("applied", seconds=1.0, at=5.0, failures=0, valid=True)
        clusters.add(name, metrics)
    clusters.add("gone", alone)
    clusters.remove("gone")
    families = [*text_string_to_metric_families(clusters.exposition("")[0].decode())]
    assert len({family.name for family in families}) == len(families)
    samples = [sample for family in families for sample in family.samples]
    assert {sample.labels["cluster"] for sample in samples} == {"east", 'we"st\n'}
    assert {sample.name for sample in samples} == alone.names()
    assert len(samples) == 2 * len(samples_of(alone))


def samples_of(metrics: RunMetrics) -> list[object]:
    families = text_string_to_metric_families(metrics.exposition("")[0].decode())
    return [sample for family in families for sample in family.samples]


def test_changed_files_are_seen_when_two_looks_agree(reading: CountedReading) -> None:
    before = reading.east.fingerprint()
    (reading.folder / "quotas.yaml").write_text(rates(alice="2MiB", bob="1MiB"))
    assert not reading.shared.look()
    assert reading.east.fingerprint() == before
    assert reading.shared.look()
    assert reading.east.fingerprint() != before
