"""An apply killed, interrupted or ended midway, on a real broker: what is left is whole, told truly, and finished later."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.bad_servers import serving
from tests.support.change_set import ChangeSet, ended, mixed
from tests.support.polling import wait_until
from tests.support.write_proxy import Gate, Last, WriteProxy

pytestmark = pytest.mark.kafka

FILES = ("--report", "report.json", "--audit", "audit.jsonl")


@pytest.fixture
def work(tmp_path: Path, clean_kafka: Sandbox) -> ChangeSet:
    before, wanted = mixed()
    return ChangeSet(tmp_path, clean_kafka.bootstrap_servers, before=before, wanted=wanted)


@pytest.fixture
def port(clean_kafka: Sandbox) -> int:
    return clean_kafka.nodes[0].port


class Holding:
    """Holds the second write before it is sent on, or its answer after the broker has done it."""

    def __init__(self, port: int, *, the: str) -> None:
        self.gate = Gate()
        self.reaches_the_broker = True
        self.proxy = WriteProxy(port, request=self._hold_request, answer=self._hold_answer)
        self._the = the

    def _hold_request(self, number: int, frame: bytes) -> bytes:
        if number == 2 and self._the == "request":
            self.gate.hold()
            return frame if self.reaches_the_broker else Last()
        return frame

    def _hold_answer(self, number: int, frame: bytes) -> bytes:
        if number == 2 and self._the == "answer":
            self.gate.hold()
        return frame


@pytest.mark.parametrize("reaches_the_broker", [pytest.param(False, marks=pytest.mark.large), True])
def test_killed_after_the_first_request_everything_is_whole_and_a_second_run_finishes(
    work: ChangeSet, port: int, reaches_the_broker: bool
) -> None:
    held = Holding(port, the="request")
    held.reaches_the_broker = reaches_the_broker
    (work.folder / "report.json").write_text("an old report")
    with serving(held.proxy) as server:
        try:
            with work.running(server, *FILES) as process:
                held.gate.await_arrival()
                process.send_signal(signal.SIGKILL)
                assert (process.wait(), *process.communicate()) == (-signal.SIGKILL, "", "")
        finally:
            held.gate.open()
    first, second = held.proxy.writes
    done = first | second if reaches_the_broker else first
    assert 0 < len(done) < len(work.wanted)
    # Nobody waits for an answer any more, so nobody knows when the broker has done what it was sent last.
    wait_until(lambda: {e for e, quotas in work.require_whole_entities().items() if quotas == work.wanted.get(e)} == done)
    assert (work.folder / "report.json").read_text() == "an old report"
    assert (work.folder / "audit.jsonl").read_text() == ""
    work.finish(*FILES)
    assert [json.loads(line)["result"] for line in (work.folder / "audit.jsonl").read_text().splitlines()] == [
        "done",
        "nothing_to_do",
    ]
    assert sorted(path.name for path in work.folder.iterdir()) == ["audit.jsonl", "cluster.yaml", "quotas.yaml", "report.json"]


@pytest.mark.parametrize(
    ("number", "the"),
    [
        pytest.param(signal.SIGINT, "request", marks=pytest.mark.large),
        pytest.param(signal.SIGINT, "answer", marks=pytest.mark.large),
        (signal.SIGTERM, "answer"),
    ],
)
def test_interrupted_in_the_middle_it_says_what_is_done_and_what_nobody_knows(
    work: ChangeSet, port: int, number: signal.Signals, the: str
) -> None:
    held = Holding(port, the=the)
    held.reaches_the_broker = False
    with serving(held.proxy) as server:
        try:
            with work.running(server, *FILES) as process:
                held.gate.await_arrival()
                process.send_signal(number)
                done = ended(process)
        finally:
            held.gate.open()
    assert done.code == 4, done.err
    report = done.json()
    assert (report["result"], report["failure_reason"]) == ("partial", "interrupted")
    first, second = held.proxy.writes
    assert report["summary"] == {
        "applied": len(first),
        "failed": 0,
        "unknown": len(second),
        "not_attempted": len(work.wanted) - len(first) - len(second),
    }
    work.require_true(report)
    assert json.loads((work.folder / "report.json").read_text()) == report
    (line,) = (work.folder / "audit.jsonl").read_text().splitlines()
    assert json.loads(line)["summary"] == report["summary"]
    work.finish()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.large)])
def test_interrupted_before_the_first_write_nothing_is_written(
    work: ChangeSet, clean_kafka: Sandbox, number: signal.Signals
) -> None:
    gate = Gate()
    proxy = WriteProxy(clean_kafka.nodes[0].port, validation=gate.hold)
    with serving(proxy) as server:
        try:
            with work.running(server, *FILES) as process:
                gate.await_arrival()
                process.send_signal(number)
                done = ended(process)
        finally:
            gate.open()
    assert (done.code, done.err.partition(" while ")[0].strip()) == (130, "kafka-quotas: interrupted")
    assert (done.json()["result"], done.json()["failure_reason"]) == ("failed", "interrupted")
    assert proxy.writes == []
    work.require_untouched()
    assert json.loads((work.folder / "audit.jsonl").read_text())["failure_reason"] == "interrupted"
    work.finish()
