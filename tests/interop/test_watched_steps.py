"""A real broker whose limit goes down in watched steps: a client that a backtest cleared, and whose traffic doubled since.

The broker's own throttle times stand beside: those of its answers to the client, and those of its MBeans.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.errors import TrafficError
from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import SandboxSpec
from tests.support import raw_quotas
from tests.support.broker_classes import with_recorder
from tests.support.command import Done, invoke
from tests.support.jmx_exporter import ExportedCluster, exported_cluster
from tests.support.polling import wait_until
from tests.support.prometheus_server import ScrapeJob, prometheus
from tests.support.recorded_seconds import recorded_seconds
from tests.support.watched_steps import (
    APP,
    CALM,
    HIGH,
    KEY,
    LOW,
    MIDDLE,
    NAMES,
    declare,
    limits,
    prepared,
    require_true,
    sending,
    undo,
    watched,
    when,
)

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

APP_TAGS = {"client-id": "app"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExportedCluster]:
    with exported_cluster(tmp_path_factory.mktemp("kafka"), spec=SandboxSpec(heap_mb=384)) as running:
        create_topic(running.sandbox.bootstrap_servers, "orders")
        yield running


@pytest.fixture
def folder(broker: ExportedCluster, tmp_path: Path) -> Path:
    made = prepared(broker.sandbox.bootstrap_servers, tmp_path)
    verdicts = json.loads((made / "backtest.json").read_text())["verdicts"]
    assert {row["verdict"] for row in verdicts} == {"clear"}
    return made


def test_a_client_whose_traffic_doubled_has_its_limit_back(broker: ExportedCluster, folder: Path) -> None:
    servers = broker.sandbox.bootstrap_servers
    with sending(servers, "app") as app, sending(servers, "quiet", CALM) as quiet:
        code, report = watched(folder, f"1=metrics+{broker.url()}")
        ended = time.time()
        shown = [line for line in broker.lines("throttle_time") if 'client_id="app"' in line]
        after = raw_quotas.settled(servers, brokers=(1,))
        for sender in (app, quiet):
            count = len(sender.throttles)
            while len(sender.throttles) < count + 30:
                time.sleep(0.1)

    assert (code, report["result"], report["failure_reason"]) == (4, "partial", "throttled"), report
    first, second = report["watch"]["steps"]
    assert (first["groups"], first["throttled"]) == (2, [])
    (group,) = second["throttled"]
    assert (group["bucket"], group["broker"], group["limit"], group["accepted"]) == ({"client-id": "app"}, "1", 100_000, 0.01)
    assert group["rate"] > 0.9 * LOW
    assert report["watch"]["given_back"] is True
    assert report["watch"]["seconds_to_give_back"] < 30
    assert after == limits(MIDDLE, MIDDLE)
    # What the broker itself answered: throttles begin with the second step, and end with it.
    times = app.throttled()
    assert times
    assert max(times) < ended + 15
    assert quiet.throttled() == []
    assert any(float(line.rpartition(" ")[2]) > 0 for line in shown), shown
    line = json.loads((folder / "audit.jsonl").read_text())
    assert line["watched"] == {"steps": 2, "groups": 2, "throttled": 1, "given_back": True}
    assert {row["verdict"] for row in report["predictions"]} == {"clear"}
    assert undo(folder, servers).code == 0
    assert raw_quotas.settled(servers, brokers=(1,)) == limits(HIGH, HIGH)


def test_a_client_with_the_traffic_of_its_history_reaches_the_limit_and_is_seen_when_it_doubles(
    broker: ExportedCluster, folder: Path
) -> None:
    job = ScrapeJob(name="kafka", ports={broker.ports[1]: {"broker_id": "1"}}, interval_s=1)
    servers = broker.sandbox.bootstrap_servers
    with prometheus(folder, [job]) as server:
        source = f"prometheus+http://127.0.0.1:{server.port}"
        with sending(servers, "app", CALM):
            wait_until(lambda: server.value("count(kafka_server_Produce_byte_rate)") or 0)
            code, report = watched(folder, source)
            # A sample since the end of the run comes within seconds.
            before = wait_until(lambda: (done := compared(folder, source)).code != 1 and done)
            assert before
        with sending(servers, "app") as doubled:
            wait_until(doubled.throttled)
            throttle = 'count_over_time((kafka_server_Produce_throttle_time{client_id="app"} > 0)[10s:1s])'
            wait_until(lambda: (server.value(throttle) or 0) >= 3)
        after = compared(folder, source)

    assert (code, report["result"]) == (0, "done"), report
    assert [(step["step"], step["throttled"]) for step in report["watch"]["steps"]] == [(1, []), (2, [])]
    assert all(step["seconds"] >= 11 for step in report["watch"]["steps"])
    assert raw_quotas.settled(servers, brokers=(1,)) == limits(LOW, LOW)
    assert (before.code, after.code) == (0, 2), (before.err, after.err)
    (unthrottled,), (throttled,) = (
        [row for row in each.json()["groups"] if row["bucket"] == APP_TAGS] for each in (before, after)
    )
    assert (unthrottled["agreement"], unthrottled["words"]) == ("as-predicted", "clear, and no sample shows a throttle")
    assert (throttled["agreement"], throttled["verdict"]) == ("worse", "clear")
    assert throttled["words"].startswith("cleared, but throttled ")


def compared(folder: Path, source: str) -> Done:
    """What the samples since the run show of its predictions."""
    return invoke(
        "why", "quotas", "--run", "run.json", "--traffic", source, "--traffic-store", str(folder / "store"), "--format", "json",
        "--detailed-exitcode", cwd=folder,
    )  # fmt: skip


def test_a_broker_that_dies_while_a_step_is_watched_leaves_the_limits_of_before_it(tmp_path: Path) -> None:
    with exported_cluster(tmp_path, spec=SandboxSpec(nodes=3, heap_mb=320)) as three:
        servers = three.sandbox.bootstrap_servers
        folder = prepared(servers, tmp_path, brokers=tuple(three.ports))

        killer = when(
            lambda: wait_until(lambda: raw_quotas.describe(servers)[APP][KEY] == MIDDLE),
            lambda: os.kill(three.sandbox.nodes[2].process.pid, signal.SIGKILL),
        )
        code, report = watched(folder, *(f"{broker}=metrics+{three.url(broker)}" for broker in three.ports))
        killer.join()

        assert (code, report["failure_reason"], report["watch"]["given_back"]) == (4, "source-lost", True), report
        assert report["watch"]["steps"] == []
        assert raw_quotas.settled(servers, brokers=(1, 2)) == limits(HIGH, HIGH)


def has_clients(recorded: Path) -> bool:
    """Whether the recorder has written of both clients. Its first file begins without any."""
    with contextlib.suppress(TrafficError):
        return set(NAMES) <= {client_id for _, _, client_id in recorded_seconds(recorded)}
    return False


@pytest.mark.parametrize("named", ["path", "spec.traffic"])
def test_files_of_the_recorder_show_a_watch_who_is_throttled(tmp_path: Path, named: str) -> None:
    recorded = tmp_path / "recorded"
    with running(with_recorder(SandboxSpec(heap_mb=384), recorded)) as sandbox:
        servers = sandbox.bootstrap_servers
        create_topic(servers, "orders")
        folder = prepared(servers, tmp_path)
        source = str(recorded)
        if named == "spec.traffic":
            source = named
            declare(servers, folder, LOW, traffic={"source": str(recorded)})
        with sending(servers, "app", CALM), sending(servers, "quiet", CALM):
            wait_until(lambda: has_clients(recorded))
            code, report = watched(folder, source)
        assert (code, report["result"]) == (0, "done"), report
        assert [(step["groups"], step["throttled"]) for step in report["watch"]["steps"]] == [(2, []), (2, [])]
        assert undo(folder, servers).code == 0
        with sending(servers, "app") as app, sending(servers, "quiet", CALM):
            code, report = watched(folder, source)
        held = raw_quotas.settled(servers, brokers=(1,))
        assert (code, report["failure_reason"], report["watch"]["given_back"]) == (4, "throttled", True), report
        require_true(report, held)
        assert held == limits(MIDDLE, MIDDLE)
        assert {row["bucket"]["client-id"] for row in report["watch"]["steps"][1]["throttled"]} == {"app"}
        assert report["watch"]["seconds_to_give_back"] < 30
        assert app.throttled()
