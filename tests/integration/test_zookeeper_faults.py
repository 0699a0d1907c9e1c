"""Runs on ZooKeeper that are disturbed in the middle: no node is torn, no credential lost, and what is reported is so."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from kazoo.client import KazooClient

from reconciler.apply.executor import ApplySettings
from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.backends.zookeeper.settings import ZooKeeperSettings, parse_connection
from reconciler.model.plan import ApplyReport, ApplyResult
from reconciler.ports import NO_PROGRESS
from reconciler.workflows.apply import UNASKED, Approval, apply_manifests
from reconciler.workflows.intent import load_intent
from tests.fakes import FakeClock
from tests.support import manifests
from tests.support.bad_servers import serving
from tests.support.change_set import APPLY
from tests.support.command import Done, run, running
from tests.support.kafka_tree import make_kafka
from tests.support.write_proxy import Gate, hang_up, read_frame
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server
from tests.support.zookeeper_session import zookeeper_cluster
from tests.support.zookeeper_tree import nodes_below, zookeeper_client

pytestmark = pytest.mark.kafka

GUARDS = ("too-many-changes", "too-many-removals")

PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"

SCRAM = "SCRAM-SHA-256"

Quotas = Mapping[str, float]


class ZooKeeperWork:
    """``count`` users of four kinds: credentials and a quota, a quota only, credentials only, nothing at all yet."""

    def __init__(self, folder: Path, witness: KazooClient, *, count: int = 60) -> None:
        self.folder = folder
        self._witness = witness
        names = [f"u{n:03}" for n in range(count)]
        self.before: dict[str, Quotas] = {
            name: {PRODUCE: 1000.0, CONSUME: 2000.0} if n % 4 < 2 else {} for n, name in enumerate(names)
        }
        self.wanted: dict[str, Quotas] = {
            name: {PRODUCE: 1500.0} if n % 4 == 1 else {PRODUCE: 1500.0, CONSUME: 2500.0} for n, name in enumerate(names)
        }
        self.secrets = {name: f"salt={name},iterations=4096" for n, name in enumerate(names) if n % 4 in (0, 2)}
        for name in names:
            config = {key: str(int(value)) for key, value in self.before[name].items()}
            if name in self.secrets:
                config[SCRAM] = self.secrets[name]
            if config:
                witness.create(f"/config/users/{name}", json.dumps({"version": 1, "config": config}).encode())
        entries = (({"user": name}, quotas) for name, quotas in self.wanted.items())
        (folder / "cluster.yaml").write_text(manifests.cluster(prune="never"))
        (folder / "quotas.yaml").write_text(manifests.quotas(*entries))

    def run(self, place: str, *extra: str) -> Done:
        """Apply through a ZooKeeper, or a proxy."""
        return run(*APPLY, "--zookeeper", place, *extra, cwd=self.folder)

    def running(self, place: str, *extra: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        """The same as a process that goes on meanwhile; killed at the end of the block if it still runs."""
        return running(*APPLY, "--zookeeper", place, *extra, cwd=self.folder)

    def live(self) -> dict[str, Quotas]:
        """The quotas there are; fails when a node is torn, or has lost or changed a credential."""
        nodes = nodes_below(self._witness, "/config/users")
        found: dict[str, Quotas] = {}
        for name in self.before:
            data = nodes.get(f"/config/users/{name}")
            config = json.loads(data)["config"] if data else {}
            assert config.pop(SCRAM, None) == self.secrets.get(name), name
            found[name] = {key: float(value) for key, value in config.items()}
            assert found[name] in (self.before[name], self.wanted[name]), f"{name} is torn: {found[name]}"
        return found

    def done(self) -> set[str]:
        """Whose quotas are as wanted."""
        return {name for name, quotas in self.live().items() if quotas == self.wanted[name]}

    def require_true(self, report: Any) -> None:
        """Fail unless each change is exactly as its status says."""
        live = self.live()
        for change in report["changes"]:
            name = change["entity"]["user"]
            had, wanted = self.before[name], self.wanted[name]
            good = {"applied": [wanted], "unknown": [wanted, had]}.get(change["status"], [had])
            assert live[name] in good, (name, change["status"], live[name])
        assert report["verified"] is (report["result"] in ("done", "nothing_to_do"))

    def finish(self, place: str) -> None:
        """A second run does the rest, a third one has nothing to do."""
        second = self.run(place)
        assert (second.code, second.json()["result"]) == (0, "done"), second
        assert self.live() == self.wanted
        third = self.run(place)
        assert (third.code, third.json()["result"]) == (0, "nothing_to_do"), third


_MULTI = 14

_NOTIFICATION = b"/config/changes/config_change_"

PASS, CUT, CUT_AFTER_IT_IS_DONE = "pass", "cut", "cut after it is done"


class TransactionProxy:
    """A handler for ``serving``. ``meddle`` gets the number (from 1) of each transaction, and says what becomes of it.

    After a cut, further connections pass untouched unless ``meddle`` says otherwise.
    """

    def __init__(self, port: int, meddle: Callable[[int], str]) -> None:
        self._port = port
        self._meddle = meddle
        self._lock = threading.Lock()
        self._session: tuple[int, bytes] | None = None
        self.seen = 0

    def __call__(self, connection: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as server, connection.makefile("rb") as stream:
            last: list[bytes] = []
            done = threading.Event()
            answers = threading.Thread(target=self._pass_answers, args=(server, connection, last, done))
            answers.start()
            try:
                self._pass_requests(stream, server, last, done)
            finally:
                hang_up(server, connection)
                answers.join()

    def expire(self) -> None:
        """End the session of the client on the server, as when nothing was heard of it for too long."""
        assert self._session is not None
        twin = KazooClient(hosts=f"127.0.0.1:{self._port}", client_id=self._session)
        twin.start()
        twin.stop()
        twin.close()

    def _pass_requests(self, stream: BinaryIO, server: socket.socket, last: list[bytes], done: threading.Event) -> None:
        while (frame := read_frame(stream)) is not None:
            said = PASS
            if struct.unpack_from(">i", frame, 8)[0] == _MULTI and _NOTIFICATION in frame:
                with self._lock:
                    self.seen += 1
                    number = self.seen
                said = self._meddle(number)
            if said == CUT:
                return
            if said == CUT_AFTER_IT_IS_DONE:
                last.append(frame[4:8])
            server.sendall(frame)
            if said == CUT_AFTER_IT_IS_DONE:
                done.wait(10)
                return

    def _pass_answers(self, server: socket.socket, connection: socket.socket, last: list[bytes], done: threading.Event) -> None:
        is_first = True
        with contextlib.suppress(OSError), server.makefile("rb") as stream:
            while (frame := read_frame(stream)) is not None:
                if is_first:
                    # The answer to the connect request: protocol, timeout, session, its password.
                    session, length = struct.unpack_from(">qi", frame, 12)
                    self._session = (session, frame[24 : 24 + length])
                    is_first = False
                if not last:
                    connection.sendall(frame)
                elif frame[4:8] == last[0]:
                    done.set()
        hang_up(server, connection)


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
        return apply_manifests(intent, cluster, approval, dialogue=UNASKED, clock=FakeClock(), progress=NO_PROGRESS)


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
        report = apply_manifests(intent, cluster, approval, dialogue=UNASKED, clock=FakeClock(), progress=NO_PROGRESS)
    assert (report.result, report.verified, report.failure_reason) == (ApplyResult.PARTIAL, False, "not-verified")
    assert "user=u000" in str(report.message) or "u000" in str(report.message)
    assert "1 of 60 entities do not read back" in str(report.message)
    config = json.loads(witness.get(path)[0])["config"]
    assert config["SCRAM-SHA-256"] == work.secrets["u000"]
