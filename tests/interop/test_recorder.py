"""The recorder in real brokers: what it writes is what Kafka charged; it goes on after a crash; its own build and tests.

Needs a JDK, and Maven for the build.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.features.recorder.traffic import recorder_files_in
from reconciler.features.sandbox.clients import consume_all, create_topic, produce_steadily
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from tests.support import config_command, raw_quotas
from tests.support.broker_classes import with_recorder
from tests.support.maven_builds import digests_of_builds
from tests.support.polling import wait_until
from tests.support.recorded_seconds import Client, Seconds, logged_requests, recorded_seconds, sums_of, unexplained

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

ALICE = Login(name="CN=älice, OU=x y", password="alice-secret")
HOSTILE = 'app "x"\\,é=:*?\t'
EVERYBODY = frozenset({("user", None), ("client-id", None)})
VISIBLE = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e9, "controller_mutation_rate": 1e9}
CLIENT = ("produce", "ANONYMOUS", "app")
VERSIONS = ["3.9.2", "4.3.1", "4.4.0"]
BORDER_US = 250_000
"""The log's times are up to so far from the moment of the charge, on a very busy machine."""


def log_of(sandbox: Sandbox) -> Path:
    log = sandbox.nodes[0].request_log_file
    assert log is not None
    return log


def together(*actions: Callable[[], object]) -> None:
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_sums_of_seconds_are_those_of_the_request_log(tmp_path: Path, version: str) -> None:
    folder = tmp_path / "recorded"
    spec = with_recorder(SandboxSpec(kafka_version=version, users=(ALICE,), request_log=True), folder)
    with running(spec) as sandbox:
        servers, sasl = sandbox.bootstrap_servers, sandbox.sasl_bootstrap_servers or ""
        create_topic(servers, "orders")
        slow = frozenset({("user", None), ("client-id", "slow")})
        raw_quotas.alter(servers, {EVERYBODY: VISIBLE, slow: {"producer_byte_rate": 20_000.0}})
        raw_quotas.settled(servers, brokers=(1,))
        together(
            lambda: produce_steadily(sasl, "orders", client_id=HOSTILE, bytes_per_second=400_000, seconds=6, login=ALICE),
            lambda: produce_steadily(servers, "orders", client_id="slow", bytes_per_second=100_000, seconds=6),
            lambda: consume_all(servers, "orders", client_id="reader", seconds=8),
        )
        # The last request of a client that gives up while it is throttled is charged, and may have no line in the log.
        gave_up = ("produce", "ANONYMOUS", "slow")

        def have_equal_totals() -> bool:
            logged = {client: sum(sums_of(requests).values()) for client, requests in logged_requests(log_of(sandbox)).items()}
            recorded = {client: sum(sums.values()) for client, sums in recorded_seconds(folder).items()}
            missing = recorded.pop(gave_up, 0) - logged.pop(gave_up, 0)
            return recorded == logged and missing >= 0

        # To the byte, for every client, whatever its name.
        wait_until(have_equal_totals)
        logged, recorded = logged_requests(log_of(sandbox)), recorded_seconds(folder)

        assert ("produce", ALICE.name, HOSTILE) in recorded
        others = logged.keys() - {gave_up}
        assert {client: unexplained(logged[client], recorded[client], within_us=BORDER_US) for client in others} == {
            client: {} for client in others
        }
        assert len(sums_of(logged["produce", ALICE.name, HOSTILE])) >= 5
        rows = [line for file in recorder_files_in(folder) for line in _lines(Path(file))]
        assert any(len(row) == 4 and row[0] == "s" for row in rows), "a throttled second"
        assert f"recorder of broker 1 writes to {folder}" in sandbox.nodes[0].log_file.read_text("utf-8")


def _lines(file: Path) -> list[list[object]]:
    import gzip
    import json

    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()[1:]]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_that_was_killed_loses_what_it_had_not_written_and_goes_on_with_a_new_file(tmp_path: Path, version: str) -> None:
    folder = tmp_path / "recorded"
    spec = with_recorder(SandboxSpec(kafka_version=version), folder)
    with running(spec) as sandbox:
        servers = sandbox.bootstrap_servers
        create_topic(servers, "orders")
        raw_quotas.alter(servers, {EVERYBODY: VISIBLE})
        raw_quotas.settled(servers, brokers=(1,))
        stop = threading.Event()

        def send() -> None:
            with suppress(SandboxError):
                produce_steadily(servers, "orders", client_id="app", bytes_per_second=100_000, seconds=60, stop=stop)

        sending = threading.Thread(target=send)
        sending.start()
        try:
            wait_until(lambda: len(seconds_so_far(folder).get(CLIENT, {})) >= 3)
            before = recorded_seconds(folder)[CLIENT]
            os.kill(sandbox.nodes[0].process.pid, signal.SIGKILL)
        finally:
            stop.set()
            sending.join()
    (left,) = folder.iterdir()
    assert left.name.endswith(".open")
    after = recorded_seconds(folder)[CLIENT]
    # A later line may add to a second, so amounts grow.
    assert before.keys() <= after.keys()
    assert all(amount <= after[second] for second, amount in before.items())
    # A crash of the machine cuts the last block short: all before it is read.
    whole = left.read_bytes()
    left.write_bytes(whole[:-5])
    cut = recorded_seconds(folder)[CLIENT]
    assert cut
    assert cut.keys() <= after.keys()
    assert all(amount <= after[second] for second, amount in cut.items())
    left.write_bytes(whole)
    with running(spec):
        wait_until(lambda: len(list(folder.iterdir())) == 2)
        assert left.with_name(left.name.removesuffix(".open")).is_file()
    assert sorted(path.suffix for path in folder.iterdir()) == [".gz", ".gz"]
    assert recorded_seconds(folder)[CLIENT] == after
    (dropped,) = [line for file in folder.iterdir() for line in _lines(file) if line[0] == "d"]
    name = left.name.removesuffix(".open")
    assert (dropped[1], str(dropped[3]).split(" until ")[0]) == (
        max(after) + 1,
        f"{name} was not closed, and nothing is recorded",
    )


def test_a_wrong_setting_switches_it_off_with_one_line_and_the_broker_starts(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    wrong = SandboxSpec(properties={"quota.recorder.file.bytes": "12"})
    with running(with_recorder(wrong, folder)) as sandbox:
        create_topic(sandbox.bootstrap_servers, "orders")
        lines = sandbox.nodes[0].log_file.read_text("utf-8").splitlines()
    (line,) = {line.partition("] ")[2] for line in lines if "ERROR" in line}
    assert "The quota recorder is switched off, and the broker goes on: " in line
    assert "quota.recorder.file.bytes" in line
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own can only be mounted by root")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_full_disk_costs_seconds_that_are_counted_and_no_request_waits(tmp_path: Path, version: str) -> None:
    with small_disk(tmp_path) as disk:
        spec = SandboxSpec(kafka_version=version, properties={"quota.recorder.free.bytes": "0"})
        with running(with_recorder(spec, disk / "recorded")) as sandbox:
            servers, log = sandbox.bootstrap_servers, sandbox.nodes[0].log_file
            create_topic(servers, "orders")
            raw_quotas.alter(servers, {EVERYBODY: VISIBLE})
            raw_quotas.settled(servers, brokers=(1,))
            produce_steadily(servers, "orders", client_id="app", bytes_per_second=50_000, seconds=2)
            wait_until(lambda: seconds_so_far(disk / "recorded"))
            fill(disk)

            def sent_whole() -> bool:
                sent = produce_steadily(servers, "orders", client_id="app", bytes_per_second=50_000, seconds=2)
                assert (sent.record_bytes > 0, sent.throttle_ms_max) == (True, 0)
                return "cannot write and drops what it records" in log.read_text("utf-8")

            # Requests are answered before, while and after the recorder meets the full disk.
            wait_until(sent_whole)
            assert "No space left on device" in log.read_text("utf-8")
            assert sent_whole()
            (disk / "filler").unlink()
            wait_until(lambda: "writes again" in log.read_text("utf-8"))
        rows = [line for file in recorder_files_in(disk / "recorded") for line in _lines(Path(file))]
        dropped = [row for row in rows if row[0] == "d"]
        assert dropped
        assert {row[3] for row in dropped} == {"cannot write: IOException"}
        written = {row[1] for row in rows if row[0] == "s"}
        lost = {second for row in dropped for second in range(int(str(row[1])), int(str(row[2])) + 1)}
        assert min(lost) > min(int(str(second)) for second in written)
        assert max(lost) < max(int(str(second)) for second in written)


def seconds_so_far(folder: Path) -> Mapping[Client, Seconds]:
    """Nothing while the recorder has no file yet."""
    return recorded_seconds(folder) if any(folder.glob("quota-recorder-*")) else {}


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> None:
    """Leave no room at all."""
    about = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(about.f_bavail * about.f_frsize))
    assert os.statvfs(disk).f_bavail == 0


def test_a_running_broker_takes_new_settings_and_lets_the_recorder_go(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    spec = SandboxSpec(properties={"quota.recorder.file.seconds": "86400"})
    with running(with_recorder(spec, folder)) as sandbox:
        raw_quotas.alter(sandbox.bootstrap_servers, {EVERYBODY: VISIBLE})
        wait_until(lambda: any(folder.glob("*.open")))

        def set_on_broker(setting: str) -> None:
            config_command.run(sandbox, "--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", setting)

        set_on_broker("quota.recorder.file.seconds=2")
        wait_until(lambda: len(list(folder.glob("*.gz"))) >= 2)
        set_on_broker("metric.reporters=org.apache.kafka.common.metrics.JmxReporter")
        wait_until(lambda: not any(folder.glob("*.open")))
        produce_steadily(sandbox.bootstrap_servers, "later", client_id="later", bytes_per_second=50_000, seconds=1)
        assert ("produce", "ANONYMOUS", "later") not in recorded_seconds(folder)


def test_the_build_passes_its_tests_and_gives_the_same_bytes_anywhere(tmp_path: Path) -> None:
    assert len(digests_of_builds("recorder", tmp_path)) == 1
