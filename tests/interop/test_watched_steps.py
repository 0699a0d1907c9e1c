"""A real broker whose limit goes down in watched steps: a client that a backtest cleared, and whose traffic doubled since.

The broker's own throttle times stand beside: those of its answers to the client, and those of its MBeans.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import SandboxSpec
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.jmx_exporter import ExportedCluster, exported_cluster
from tests.support.manifests import cluster as cluster_document
from tests.support.manifests import quotas
from tests.support.polling import wait_until
from tests.support.prometheus_server import ScrapeJob, prometheus
from tests.support.recorded_parquet import Flow, write_traffic
from tests.support.wire_client import WireClient, record_batch

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

KEY = "producer_byte_rate"
APP, QUIET = frozenset({("client-id", "app")}), frozenset({("client-id", "quiet")})
APP_TAGS = {"client-id": "app"}
HISTORY = 60_000
"""Bytes a second of both clients in the history that the backtest reads."""
BATCH = record_batch(13_000)


class Sender:
    """A client that sends a batch each tenth of a second, as far as the broker lets it, and notes what the broker answers."""

    def __init__(self, server: str, client_id: str, batch: bytes) -> None:
        self.throttles: list[tuple[float, int]] = []
        """Seconds since 1970, and milliseconds that the broker throttles the request."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(server, client_id, batch))
        self._thread.start()

    def _send(self, server: str, client_id: str, batch: bytes) -> None:
        with WireClient(server, None, client_id) as client:
            client.seed("orders", batch)
            while not self._end.wait(0.1):
                self.throttles.append((time.time(), client.produce("orders", batch)[1]))

    def throttled(self, since: float = 0.0) -> list[float]:
        return [at for at, milliseconds in self.throttles if milliseconds and at >= since]

    def stop(self) -> None:
        self._end.set()
        self._thread.join()


@contextlib.contextmanager
def sending(server: str, client_id: str, batch: bytes = BATCH) -> Iterator[Sender]:
    sender = Sender(server, client_id, batch)
    try:
        yield sender
    finally:
        sender.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExportedCluster]:
    with exported_cluster(tmp_path_factory.mktemp("kafka"), spec=SandboxSpec(heap_mb=384)) as running:
        create_topic(running.sandbox.bootstrap_servers, "orders")
        yield running


@pytest.fixture
def folder(broker: ExportedCluster, tmp_path: Path) -> Path:
    made = prepared(broker, tmp_path)
    verdicts = json.loads((made / "backtest.json").read_text())["verdicts"]
    assert {row["verdict"] for row in verdicts} == {"clear"}
    return made


def prepared(cluster: ExportedCluster, tmp_path: Path) -> Path:
    """Manifests that lower both clients from 400 kB/s to 100 kB/s, and a backtest of a day of theirs on broker 1."""
    servers = cluster.sandbox.bootstrap_servers
    raw_quotas.alter(servers, {APP: {KEY: 400_000.0}, QUIET: {KEY: 400_000.0}})
    raw_quotas.settled(servers, brokers=tuple(cluster.ports))
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas/all.yaml").write_text(
        cluster_document(connection={"bootstrapServers": [servers]})
        + "---\n"
        + quotas(({"client-id": "app"}, {KEY: "100000B"}), ({"client-id": "quiet"}, {KEY: "100000B"}))
    )
    flows = [Flow(user="ANONYMOUS", client_id=name, amount=HISTORY, end_s=25 * 3600.0) for name in ("app", "quiet")]
    traffic = write_traffic(tmp_path / "history.parquet", flows)
    done = invoke(
        "backtest", "quotas", "--bootstrap-server", servers, "--traffic", str(traffic), "--format", "json", cwd=tmp_path
    )
    assert done.code == 0, done.err
    (tmp_path / "backtest.json").write_text(done.out)
    return tmp_path


def watched(folder: Path, *sources: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the report, of a watched run in steps of a factor of 2."""
    watch = [option for source in sources for option in ("--watch", source)]
    done = invoke(
        "apply", "quotas", "--step-down", "2", *watch, "--backtest", "backtest.json", "--auto-approve", "--accept",
        "large-reduction", "--report", "run.json", "--audit", "audit.jsonl", cwd=folder,
    )  # fmt: skip
    assert (folder / "run.json").exists(), done.err
    return done.code, json.loads((folder / "run.json").read_text())


def test_a_client_whose_traffic_doubled_has_its_limit_back(broker: ExportedCluster, folder: Path) -> None:
    servers = broker.sandbox.bootstrap_servers
    with sending(servers, "app") as app, sending(servers, "quiet", record_batch(4_000)) as quiet:
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
    assert group["rate"] > 100_000
    assert report["watch"]["given_back"] is True
    assert report["watch"]["seconds_to_give_back"] < 30
    assert after == {APP: {KEY: 200_000.0}, QUIET: {KEY: 200_000.0}}
    # What the broker itself answered: throttles begin with the second step, and end with it.
    times = app.throttled()
    assert times
    assert max(times) < ended + 15
    assert quiet.throttled() == []
    assert any(float(line.rpartition(" ")[2]) > 0 for line in shown), shown
    line = json.loads((folder / "audit.jsonl").read_text())
    assert line["watched"] == {"steps": 2, "groups": 2, "throttled": 1, "given_back": True}
    assert {row["verdict"] for row in report["predictions"]} == {"clear"}
    done = invoke("revert", "run.json", "--auto-approve", "--bootstrap-server", servers, cwd=folder)
    assert done.code == 0, done.err
    assert raw_quotas.settled(servers, brokers=(1,)) == {APP: {KEY: 400_000.0}, QUIET: {KEY: 400_000.0}}


def test_a_client_with_the_traffic_of_its_history_reaches_the_limit_and_is_seen_when_it_doubles(
    broker: ExportedCluster, folder: Path
) -> None:
    job = ScrapeJob(name="kafka", ports={broker.ports[1]: {"broker_id": "1"}}, interval_s=1)
    servers = broker.sandbox.bootstrap_servers
    with prometheus(folder, [job]) as server:
        source = f"prometheus+http://127.0.0.1:{server.port}"
        with sending(servers, "app", record_batch(4_000)):
            wait_until(lambda: server.value("count(kafka_server_Produce_byte_rate)") or 0)
            code, report = watched(folder, source)
            # A sample since the end of the run comes within seconds.
            before = wait_until(lambda: (done := compared(folder, source)).code != 1 and done)
            assert before
        with sending(servers, "app") as doubled:
            wait_until(doubled.throttled)
            throttle = 'count_over_time((kafka_server_Produce_throttle_time{client_id="app"} > 0)[1m:1s])'
            wait_until(lambda: (server.value(throttle) or 0) >= 3)
        after = compared(folder, source)

    assert (code, report["result"]) == (0, "done"), report
    assert [(step["step"], step["throttled"]) for step in report["watch"]["steps"]] == [(1, []), (2, [])]
    assert all(step["seconds"] >= 11 for step in report["watch"]["steps"])
    assert raw_quotas.settled(servers, brokers=(1,)) == {APP: {KEY: 100_000.0}, QUIET: {KEY: 100_000.0}}
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
        folder = prepared(three, tmp_path)

        def kill_a_broker() -> None:
            wait_until(lambda: raw_quotas.describe(servers)[APP][KEY] == 200_000)
            os.kill(three.sandbox.nodes[2].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_a_broker)
        killer.start()
        code, report = watched(folder, *(f"{broker}=metrics+{three.url(broker)}" for broker in three.ports))
        killer.join()

        assert (code, report["failure_reason"], report["watch"]["given_back"]) == (4, "source-lost", True), report
        assert report["watch"]["steps"] == []
        assert raw_quotas.settled(servers, brokers=(1, 2)) == {APP: {KEY: 400_000.0}, QUIET: {KEY: 400_000.0}}
