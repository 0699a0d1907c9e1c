"""What the long-running service writes, and when it rather does not, by guards, signals and recorded traffic."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reconciler.apply.executor import ApplySettings
from reconciler.apply.writing import ChunkLimits
from reconciler.errors import UnreachableError
from reconciler.model.state import ClusterIdentity
from reconciler.ports import BrokerNode, QuotaCluster
from tests.builders import NOON, user
from tests.fakes import FakeClock, FakeCluster
from tests.support.manifests import cluster as cluster_document
from tests.support.manifests import quotas
from tests.support.service_world import ServiceWorld, write_manifests

ALICE, BOB, MALLORY = user("alice"), user("bob"), user("mallory")
MIB = 1024.0 * 1024
RATE = "producer_byte_rate"


def test_without_apply_nothing_is_ever_written(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster(), applies=False)

    world.run(250)

    assert world.results == ["differs"] * 3
    assert (world.cluster.writes, world.cluster.validations, world.cluster.entities) == (0, 0, {})
    assert world.metric("planned_changes", action="create") == 1
    assert world.metric("drift_entities", class_="differs") == 1
    assert (world.metric("last_success_timestamp_seconds") or 0) > 0


def test_with_apply_the_cluster_gets_it_and_then_nothing_more_is_written(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster())

    world.run(250)

    assert world.results == ["applied", "in_sync", "in_sync"]
    assert world.cluster.entities == {ALICE: {RATE: MIB}}
    assert world.cluster.writes == 1
    assert world.metric("changes_total", action="create", status="applied") == 1
    assert world.metric("drift_entities", class_="in-sync") == 1
    assert world.metric("planned_changes", action="create") == 0


def test_the_service_wakes_when_a_value_expires_and_takes_it_back(tmp_path: Path) -> None:
    write_manifests(tmp_path)
    after = NOON + datetime.timedelta(seconds=150)
    entry = {RATE: {"value": "20MiB", "until": after.isoformat(), "then": "1MiB"}}
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, entry)), encoding="utf-8")
    world = ServiceWorld(tmp_path, FakeCluster(), clock=FakeClock(moves=True))
    seen: list[object] = []

    world.run(190, {second: lambda: seen.append(world.cluster.entities[ALICE][RATE] / MIB) for second in (140, 160)})

    assert seen == [20, 1]
    assert world.results == ["applied", "in_sync", "applied"]


def test_every_connection_is_given_back(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster())

    world.run(950)

    assert world.connects == world.cluster.closes == 10


def test_somebody_who_undoes_every_write_is_told_of(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster())
    undo: dict[float, Callable[[], object]] = {at: lambda: world.cluster.write_from_outside(ALICE, {}) for at in (50, 150, 250)}

    world.run(350, at=undo)

    assert world.results == ["applied"] * 4
    assert world.metric("repeated_writes_total") == 3
    assert sum("another writer undoes them" in line for line in world.log) == 3


def test_a_guard_stops_the_write_and_is_counted_by_its_name(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path)
    (folder / "all.yaml").write_text(
        "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {name: all}\n"
        "spec: {quotas: [{match: {user: {default: true}}, quotas: {producer_byte_rate: 1GiB}}]}\n"
    )
    world = ServiceWorld(folder, FakeCluster())

    world.run(150)

    assert world.results == ["refused", "refused"]
    assert (world.cluster.writes, world.outcomes[0].reason) == (0, "guard")
    assert world.metric("guard_tripped", guard="default-entity") == 1
    assert world.metric("guard_tripped", guard="prune") == 0

    accept = [{"guard": "default-entity", "until": "2026-12-31", "reason": "agreed"}]
    (folder / "cluster.yaml").write_text(cluster_document(prune="never", accept=accept))
    world.run(20)

    assert world.results[-1] == "applied"
    assert world.metric("guard_tripped", guard="default-entity") == 0


@pytest.mark.parametrize("accepted", [False, True])
def test_prune_confirm_removes_nothing_whatever_is_accepted_and_the_rest_is_still_written(
    tmp_path: Path, *, accepted: bool
) -> None:
    folder = write_manifests(tmp_path, prune="confirm")
    if accepted:
        accept = [{"guard": "prune", "until": "2026-12-31", "reason": "a person's yes is for a person's run"}]
        (folder / "cluster.yaml").write_text(cluster_document(prune="confirm", accept=accept))
    world = ServiceWorld(folder, FakeCluster({MALLORY: {RATE: 5.0}}))

    world.run(50)

    assert world.cluster.entities == {MALLORY: {RATE: 5.0}, ALICE: {RATE: MIB}}
    assert world.metric("drift_entities", class_="added") == 1


def test_prune_always_removes_what_nobody_declares(tmp_path: Path) -> None:
    cluster = FakeCluster({user(f"u{n}"): {RATE: MIB} for n in range(20)} | {MALLORY: {RATE: 5.0}})
    by_user = {f"u{n}": "1MiB" for n in range(20)}
    world = ServiceWorld(write_manifests(tmp_path, prune="always", **by_user), cluster)

    world.run(50)

    assert MALLORY not in world.cluster.entities
    assert len(world.cluster.entities) == 20
    assert world.metric("changes_total", action="delete", status="applied") == 1


def test_another_cluster_than_the_one_that_answered_first_is_never_written(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster())
    other = FakeCluster(identity=ClusterIdentity(id="another", kafka_version="4.3"))

    world.run(150, at={50: lambda: setattr(world, "cluster", other)})

    assert world.results == ["applied", "refused"]
    assert (world.outcomes[-1].reason, other.writes) == ("wrong-cluster", 0)


def test_a_writer_who_comes_in_between_makes_it_plan_again_soon(tmp_path: Path) -> None:
    def between(cluster: FakeCluster) -> None:
        if cluster.describes == 2:  # the first is the plan's, the second looks whether anybody came in between
            cluster.write_from_outside(ALICE, {RATE: 7.0})

    world = ServiceWorld(write_manifests(tmp_path), FakeCluster(before_read=between))

    world.run(50)

    assert world.results == ["refused", "applied"]
    assert world.outcomes[0].reason == "stale-plan"
    assert world.cluster.entities == {ALICE: {RATE: MIB}}


def test_told_to_stop_it_finishes_the_request_it_is_in_and_says_what_is_left(tmp_path: Path) -> None:
    by_user = {f"u{n}": f"{n + 1}MiB" for n in range(6)}

    def stop(cluster: QuotaCluster) -> None:
        world.script.stopped = True

    cluster = FakeCluster(before_write=stop)
    world = ServiceWorld(write_manifests(tmp_path, **by_user), cluster)
    limits = ApplySettings(limits=ChunkLimits(keys=2), stop_wanted=lambda: world.script.stopped)
    world = ServiceWorld(tmp_path, cluster, settings=limits)

    outcome = world.run(1000)

    assert outcome is not None
    assert (outcome.result.value, outcome.reason) == ("partial", "interrupted")
    assert cluster.writes == 1
    assert len(cluster.entities) == sum(outcome.written.values()) == 2
    assert "before request 2 of 3" in outcome.message


def test_told_to_stop_before_the_first_request_it_writes_nothing(tmp_path: Path) -> None:
    cluster = FakeCluster()
    world = ServiceWorld(write_manifests(tmp_path), cluster, settings=ApplySettings(stop_wanted=lambda: True))

    world.run(3)

    assert (world.results, world.outcomes[0].reason, cluster.writes) == (["failed"], "interrupted", 0)


def test_ready_means_that_the_cluster_was_read_not_long_ago(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster())
    world.down = UnreachableError("nobody answers")

    world.run(50)
    assert world.loop.ready()[0] is False

    world.down = None
    world.run(60)
    assert world.loop.ready()[0] is True

    world.down = UnreachableError("nobody answers")
    world.run(200)
    assert world.loop.ready()[0] is True
    world.run(200)
    assert world.loop.ready()[0] is False
    assert world.loop.alive()[0] is True


def test_a_loop_that_is_stuck_is_not_alive(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster())

    world.run(10)
    world.clock.sleep(1300)

    assert world.loop.alive()[0] is False


def with_total(folder: Path, **spec: object) -> Path:
    write_manifests(folder)
    (folder / "cluster.yaml").write_text(cluster_document(prune="never", **spec))
    total = quotas(({"user": "alice"}, {RATE: {"clusterTotal": "12MiB"}}))
    (folder / "quotas.yaml").write_text(total)
    return folder


def brokers(count: int) -> tuple[BrokerNode, ...]:
    return tuple(BrokerNode(id=number, host="b", port=9092) for number in range(1, count + 1))


@pytest.mark.parametrize(
    ("policy", "results", "part"),
    [("always", ["applied", "in_sync"], 4), ("confirm", ["differs", "differs"], 3), ("never", ["in_sync", "in_sync"], 3)],
)
def test_a_broker_that_left_changes_the_parts_of_a_total_only_where_nobody_has_to_confirm(
    tmp_path: Path, policy: str, results: list[str], part: int
) -> None:
    world = ServiceWorld(with_total(tmp_path, rebalance=policy), FakeCluster({ALICE: {RATE: 3 * MIB}}, brokers=brokers(3)))

    world.run(150)

    assert world.results == results
    assert world.cluster.entities == {ALICE: {RATE: part * MIB}}


LOG = Path(__file__).parents[3] / "examples" / "quickstart" / "kafka-request.log.gz"
RULE = {"verdicts": ["throttled"], "match": {"user": "bob"}, "reason": "bob is never throttled"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(LOG, tmp_path / LOG.name)
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "bob"}, {"producer_byte_rate": "10KiB"})), "utf-8")
    return tmp_path


def judging(
    folder: Path, *rules: Mapping[str, object], applies: bool = True, source: str = LOG.name, report: Path | None = None
) -> ServiceWorld:
    judged = {"history": {"hours": 0}, **({"fail": list(rules)} if rules else {})}
    (folder / "cluster.yaml").write_text(
        cluster_document(prune="never", traffic={"source": f"./{source}"}, backtest=judged), "utf-8"
    )
    return ServiceWorld(folder, FakeCluster(), applies=applies, report=report)


def test_a_rule_that_recorded_traffic_violates_stops_the_write(folder: Path) -> None:
    service = judging(folder, RULE)

    # The answer for a plan is kept: its traffic may go.
    service.run(250, {50: (folder / LOG.name).unlink})

    assert service.results == ["refused"] * 3
    assert (service.cluster.writes, service.cluster.entities) == (0, {})
    assert {outcome.reason for outcome in service.outcomes} == {"backtest"}
    assert all("bob is never throttled" in outcome.message for outcome in service.outcomes)


def test_a_limit_that_recorded_traffic_allows_is_written(folder: Path) -> None:
    report = folder.with_name("report.json")
    service = judging(folder, RULE, report=report)
    (folder / "quotas.yaml").write_text(quotas(({"user": "bob"}, {"producer_byte_rate": "10MiB"})), "utf-8")

    service.run(50)

    assert service.results == ["applied"]
    assert service.cluster.entities == {BOB: {"producer_byte_rate": 10 * 1024.0 * 1024}}
    (prediction,) = json.loads(report.read_text())["predictions"]
    assert (prediction["entity"], prediction["verdict"], prediction["share"]) == ({"user": "bob"}, "clear", 0.0)


@pytest.mark.parametrize("applies", [True, False])
def test_without_a_rule_the_result_is_in_the_log(folder: Path, applies: bool) -> None:
    service = judging(folder, applies=applies)

    service.run(50)

    assert service.results == ["applied" if applies else "differs"]
    assert any("Backtest: The proposed quotas would have throttled 1 of 1 quota group" in line for line in service.log)


def test_traffic_that_is_not_there_stops_no_write_and_is_named(folder: Path) -> None:
    service = judging(folder, RULE, source="gone.log")

    service.run(50)

    assert service.results == ["applied"]
    assert any("Nothing was checked against traffic" in line and "gone.log" in line for line in service.log)
