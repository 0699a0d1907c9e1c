"""What doctor finds in series of a metrics server: gaps, missing brokers and kinds, and repairs."""

from __future__ import annotations

import datetime
import itertools
import shlex
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reconciler.features.insight.doctor_views import TrafficHealth
from reconciler.features.insight.metric_health import examine_metrics
from reconciler.features.insight.traffic_health import TRAFFIC_RULES, DoctorRequest, ReadSource
from reconciler.features.prometheus.metric_targets import MetricTargets
from reconciler.model import DEFAULT, CurrentState, Entity, Finding
from tests.builders import current

SINCE = datetime.datetime(2026, 11, 22, 14, tzinfo=datetime.UTC)
HOUR = 3600
READ = ReadSource(name="http://127.0.0.1:9090", since=SINCE, until=SINCE + datetime.timedelta(seconds=HOUR))
KINDS = {"produce": "byte_rate", "fetch": "byte_rate", "request": "request_time", "controllermutation": "mutation_rate"}


def times(*spans: tuple[int, int], every: int = 15) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Milliseconds, of scrapes in spans of seconds after ``SINCE``."""
    seconds = [second for begin, end in spans for second in range(begin, end, every)]
    return (np.asarray(seconds, dtype=np.int64) + int(SINCE.timestamp())) * 1000


def labels(name: str, broker: int = 1, **more: str) -> dict[str, str]:
    return {"__name__": name, "job": "kafka", "instance": f"kafka-{broker}:7071", **more}


class World:
    """Series, and what is found in them."""

    def __init__(self) -> None:
        self.targets = MetricTargets()

    def pair(self, broker: int = 1, kinds: Sequence[str] = tuple(KINDS), at: object = None, **more: str) -> World:
        scrapes = times((0, HOUR)) if at is None else at
        for kind in kinds:
            name = f"kafka_server_{kind}_{KINDS[kind]}"
            self.targets.add_series(labels(name, broker, user="alice", client_id="app", **more), np.asarray(scrapes))
        return self

    def health(self, known: CurrentState | None = None) -> TrafficHealth:
        health = examine_metrics(self.targets, DoctorRequest(traffic=(), current=known), READ)
        assert {finding.id for finding in health.findings} <= set(TRAFFIC_RULES)
        return health


def found(health: TrafficHealth, name: str) -> list[Finding]:
    return [finding for finding in health.findings if finding.id == name]


def exposed(command: str) -> set[str]:
    """The keys that the command of a repair sets."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:3] == ["kafka-quotas", "alter", "--expose-clients"]
    return {key for name, keys in itertools.pairwise(words) if name == "--keys" for key in keys.split(",")}


def test_a_missing_kind_has_a_repair_only_where_it_overrides_nothing() -> None:
    world = World().pair(kinds=["produce", "request"])
    health = world.health()
    assert len(found(health, "kind-without-series")) == 2
    assert exposed(health.repairs[0].text) == {"consumer_byte_rate", "controller_mutation_rate"}
    weaker: dict[Entity, dict[str, float]] = {
        Entity.of({"user": DEFAULT}): {"consumer_byte_rate": 1.0},
        Entity.of({"client-id": "x"}): {"request_percentage": 1},
    }
    health = world.health(current(weaker))
    assert exposed(health.repairs[0].text) == {"controller_mutation_rate"}


def test_gaps_are_those_of_failed_scrapes_and_not_of_idle_clients() -> None:
    at = times((0, 600), (900, HOUR))
    (gap,) = World().pair(at=at).health().brokers[0].gaps
    assert (gap.start, gap.seconds) == (SINCE + datetime.timedelta(seconds=585), 315)
    idle = World().pair(at=at)
    everything = times((0, HOUR))
    idle.targets.add_up(labels("up"), everything, np.ones(len(everything)))
    assert idle.health().brokers[0].gaps == ()
    down = World().pair(at=at)
    down.targets.add_up(labels("up"), everything, np.isin(everything, at).astype(float))
    health = down.health()
    assert [gap.seconds for gap in health.brokers[0].gaps] == [315]
    assert health.brokers[0].coverage == 1 - 315 / HOUR
    assert found(health, "scrape-gaps")


def test_brokers_without_series_are_named() -> None:
    world = World().pair()
    at = times((0, HOUR))
    for broker in (1, 2):
        world.targets.add_up(labels("up", broker), at, np.ones(len(at)))
    health = world.health(replace(current(), brokers=(1, 2, 3)))
    messages = [finding.message for finding in found(health, "broker-without-series")]
    assert "No series comes from brokers 2, 3 of the cluster." in messages
    assert any("kafka-2:7071" in message for message in messages)


def test_two_exporters_of_one_broker_are_named_with_their_difference() -> None:
    world = World().pair(cluster="east").pair(cluster="west")
    (finding,) = found(world.health(), "several-exporters")
    assert "Broker 1 has 2 exporters: kafka-1:7071 (cluster=east), kafka-1:7071 (cluster=west)." in finding.message


def test_hostile_labels_are_escaped() -> None:
    world = World()
    world.targets.add_series(
        {"__name__": "kafka_server_produce_byte_rate", "user": "a", "instance": "\x1b[2J\n"}, times((0, HOUR))
    )
    health = world.health()
    text = "".join((*(finding.message for finding in health.findings), *(one.example for one in health.unattributed)))
    assert not {"\x1b", "\n"} & set(text)
    assert [one.reason for one in health.unattributed] == ["no-broker"]
