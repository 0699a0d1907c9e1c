"""Runs on ZooKeeper that are disturbed in the middle: no node is torn, no credential lost, and what is reported is so."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from reconciler.apply.executor import ApplySettings
from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.backends.zookeeper.settings import ZooKeeperSettings, parse_connection
from reconciler.model.plan import ApplyReport, ApplyResult
from reconciler.workflows.apply import UNASKED, Approval, apply_manifests
from reconciler.workflows.intent import load_intent
from tests.fakes import FakeClock, Silent
from tests.support.bad_servers import serving
from tests.support.kafka_tree import make_kafka
from tests.support.write_proxy import Gate
from tests.support.zookeeper_proxy import CUT, CUT_AFTER_IT_IS_DONE, PASS, TransactionProxy
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server
from tests.support.zookeeper_session import zookeeper_cluster
from tests.support.zookeeper_tree import zookeeper_client
from tests.support.zookeeper_work import GUARDS, ZooKeeperWork

pytestmark = pytest.mark.kafka

MIDDLE = 25
"""The transaction, of 60, at which something happens."""


@pytest.fixture
def work(tmp_path: Path, witness: KazooClient) -> ZooKeeperWork:
    return ZooKeeperWork(tmp_path, witness)


@pytest.mark.parametrize("how", [pytest.param(CUT, marks=pytest.mark.large), CUT_AFTER_IT_IS_DONE])
def test_a_connection_lost_around_a_commit_is_settled_by_reading_and_the_run_goes_on(
    server: ZooKeeperServer, place: str, work: ZooKeeperWork, how: str
) -> None:
    proxy = TransactionProxy(server.port, lambda number: how if number == MIDDLE else PASS)
    with serving(proxy) as port:
        done = work.run(f"127.0.0.1:{port}/one")
    assert (done.code, done.json()["result"]) == (0, "done"), done.err
    work.require_true(done.json())
    assert work.live() == work.wanted
    third = work.run(place)
    assert (third.code, third.json()["result"]) == (0, "nothing_to_do"), third


def test_killed_between_two_entities_everything_is_whole_and_a_second_run_finishes(
    server: ZooKeeperServer, place: str, work: ZooKeeperWork
) -> None:
    gate = Gate()
    proxy = TransactionProxy(server.port, lambda number: held(gate) if number == MIDDLE else PASS)
    with serving(proxy) as port:
        try:
            with work.running(f"127.0.0.1:{port}/one") as process:
                gate.await_arrival()
                process.send_signal(signal.SIGKILL)
                process.wait()
            assert len(work.done()) < MIDDLE
            # The lock is that of the dead run for as long as its session lives.
            refused = work.run(place)
            assert (refused.code, refused.json()["failure_reason"]) == (3, "locked")
            assert f"process {process.pid}, " in refused.json()["message"]
            proxy.expire()
        finally:
            gate.open()
    work.finish(place)


def held(gate: Gate) -> str:
    gate.hold()
    return CUT


def test_zookeeper_killed_between_two_entities_and_started_again_is_waited_for(tmp_path: Path) -> None:
    with zookeeper_server() as server, zookeeper_client(server.address) as witness:
        make_kafka(witness)
        work = ZooKeeperWork(tmp_path, witness)

        def restart(number: int) -> str:
            if number == MIDDLE:
                server.kill()
                starting.start()
                return CUT
            return PASS

        starting = threading.Thread(target=server.start)
        with serving(TransactionProxy(server.port, restart)) as port:
            done = work.run(f"127.0.0.1:{port}")
        starting.join()
        witness.retry(witness.get_children, "/")
        work.require_true(done.json())
        assert (done.code, done.json()["result"]) == (0, "done"), done
        assert work.live() == work.wanted


def test_zookeeper_that_does_not_come_back_leaves_a_report_of_what_is_known(tmp_path: Path) -> None:
    with zookeeper_server() as server:
        with zookeeper_client(server.address) as witness:
            make_kafka(witness)
            work = ZooKeeperWork(tmp_path, witness)
        gone = threading.Event()

        def kill(number: int) -> str:
            if number == MIDDLE and not gone.is_set():
                server.kill()
                gone.set()
                return CUT
            return PASS

        with serving(TransactionProxy(server.port, kill)) as port:
            report = in_process(f"127.0.0.1:{port}", work)
        assert report.result is ApplyResult.PARTIAL
        assert not report.verified
        statuses = {str(outcome.change.entity.name("user")): outcome.status.value for outcome in report.outcomes}
        server.start()
        with zookeeper_client(server.address) as witness:
            work._witness = witness
            live = work.live()
            for name, status in statuses.items():
                assert status in ("applied", "unknown", "not_attempted")
                if status != "unknown":
                    assert (live[name] == work.wanted[name]) is (status == "applied"), name
            assert len(work.done()) < MIDDLE


def in_process(place: str, work: ZooKeeperWork) -> ApplyReport:
    """The same run here, with little patience."""
    intent = load_intent([str(work.folder)], cluster=None)
    with zookeeper_cluster(place, request_seconds=1.0) as cluster:
        approval = Approval(accepted=GUARDS)
        return apply_manifests(intent, cluster, approval, dialogue=UNASKED, clock=FakeClock(), progress=Silent())


def test_a_change_that_a_broker_s_own_write_overtook_is_lost_and_reading_back_tells(
    place: str, witness: KazooClient, work: ZooKeeperWork
) -> None:
    """Kafka's writers read a node and write it whole, whatever it has become in between; here one does so around our run."""
    path = "/config/users/u000"
    read_before, _ = witness.get(path)

    class Overtaken(ZooKeeperCluster):
        def alter(self, alterations, *, validate_only):
            results = super().alter(alterations, validate_only=validate_only)
            if not validate_only:
                theirs = json.loads(read_before)
                theirs["config"]["request_percentage"] = "50.0"
                witness.set(path, json.dumps(theirs).encode())
            return results

    intent = load_intent([str(work.folder)], cluster=None)
    servers, chroot = parse_connection(place)
    with contextlib.closing(Overtaken.open(ZooKeeperSettings(servers=servers, chroot=chroot))) as cluster:
        approval = Approval(accepted=GUARDS, settings=ApplySettings(verify_seconds=0.0))
        report = apply_manifests(intent, cluster, approval, dialogue=UNASKED, clock=FakeClock(), progress=Silent())
    assert (report.result, report.verified, report.failure_reason) == (ApplyResult.PARTIAL, False, "not-verified")
    assert "user=u000" in str(report.message) or "u000" in str(report.message)
    assert "1 of 60 entities do not read back" in str(report.message)
    config = json.loads(witness.get(path)[0])["config"]
    assert config["SCRAM-SHA-256"] == work.secrets["u000"]
