"""A signal between the last write and the end of the command, at many moments: the report is there, and it is true."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.bad_servers import serving
from tests.support.change_set import PRODUCE, ChangeSet, user
from tests.support.write_proxy import WriteProxy

pytestmark = pytest.mark.kafka

MANY = 1_000
FILES = ("--report", "report.json", "--audit", "audit.jsonl")
Begin = Callable[[int], Any]


def many(rate: float) -> dict[Any, dict[str, float]]:
    return {user(f"u{n}"): {PRODUCE: rate} for n in range(MANY)}


@contextmanager
def written(port: int) -> Iterator[tuple[int, threading.Event]]:
    """A port through which a command writes, and an event that is set when the cluster answers its write."""
    answered = threading.Event()

    def answer(_number: int, frame: bytes) -> bytes:
        answered.set()
        return frame

    with serving(WriteProxy(port, answer=answer)) as server:
        yield server, answered


def interrupted(begin: Begin, port: int, *, after: float, numbers: tuple[signal.Signals, ...]) -> tuple[int, float]:
    """Run the command with signals so long after its write was answered; the exit code, and how long it went on after that."""
    with written(port) as (server, answered), begin(server) as process:
        assert answered.wait(300)
        begun = time.monotonic()
        for number in numbers:
            try:
                process.wait(timeout=after)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        out, err = process.communicate(timeout=300)
        assert "Traceback" not in err, err
        del out
        return process.returncode, time.monotonic() - begun


def require_told(folder: Path, code: int) -> Any:
    report = json.loads((folder / "report.json").read_text())
    line = json.loads((folder / "audit.jsonl").read_text().splitlines()[-1])
    assert code == {"done": 0, "partial": 4}[report["result"]]
    assert (line["result"], line["summary"]) == (report["result"], report["summary"])
    assert report["summary"]["applied"] + report["summary"]["unknown"] > 0
    (folder / "report.json").unlink()
    return report


def test_apply_reports_what_it_wrote(tmp_path: Path, clean_kafka: Sandbox) -> None:
    port = clean_kafka.nodes[0].port
    work = ChangeSet(tmp_path, clean_kafka.bootstrap_servers, wanted=many(1_000_000.0), whole_requests=True)
    code, took = interrupted(lambda server: work.running(server, *FILES), port, after=60, numbers=())
    assert code == 0
    work.require_true(require_told(tmp_path, code))
    for number in range(3):
        before = work.wanted
        work.declare(many(1_000_001.0 + number))
        signals = ((signal.SIGTERM,), (signal.SIGINT,), (signal.SIGINT, signal.SIGTERM))[number]
        code, _ = interrupted(lambda server: work.running(server, *FILES), port, after=took * number / 4, numbers=signals)
        work.require_true(require_told(tmp_path, code), before=before)
