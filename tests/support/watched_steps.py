"""Limits of a real broker that go down in watched steps: clients, manifests, a run as a process, and the proof of its report."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support import raw_quotas
from tests.support.command import Done, invoke, running
from tests.support.manifests import cluster as cluster_document
from tests.support.manifests import quotas
from tests.support.raw_quotas import RawEntity
from tests.support.recorded_parquet import Flow, write_traffic
from tests.support.schemas import valid
from tests.support.wire_client import WireClient, record_batch

KEY: Final = "producer_byte_rate"
NAMES: Final = ("app", "quiet")
APP: Final[RawEntity] = frozenset({("client-id", NAMES[0])})
QUIET: Final[RawEntity] = frozenset({("client-id", NAMES[1])})
HIGH, MIDDLE, LOW = 400_000.0, 200_000.0, 100_000.0
"""Where both limits are, after one step by a factor of 2, and where the manifests want them. Bytes a second."""
HISTORY: Final = 60_000
"""Bytes a second of both clients in the history that the backtest reads."""
BATCH: Final = record_batch(13_000)
"""Ten of them a second are twice the history."""
CALM: Final = record_batch(4_000)

State = Mapping[RawEntity, Mapping[str, float]]


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
        """When the broker stated a throttle, in seconds since 1970."""
        return [at for at, milliseconds in self.throttles if milliseconds and at >= since]

    def stop(self) -> None:
        """End it, after the answer to its last request."""
        self._end.set()
        self._thread.join()


@contextlib.contextmanager
def sending(server: str, client_id: str, batch: bytes = BATCH) -> Iterator[Sender]:
    """A client that sends inside of the block."""
    sender = Sender(server, client_id, batch)
    try:
        yield sender
    finally:
        sender.stop()


def limits(app: float, quiet: float) -> dict[RawEntity, dict[str, float]]:
    """Both limits of a cluster."""
    return {APP: {KEY: app}, QUIET: {KEY: quiet}}


def prepared(servers: str, folder: Path, *, brokers: Sequence[int] = (1,), low: float = LOW) -> Path:
    """Manifests that lower both clients from ``HIGH`` to ``low``, and a backtest of a day of theirs on broker 1."""
    raw_quotas.alter(servers, limits(HIGH, HIGH))
    raw_quotas.settled(servers, brokers=brokers)
    declare(servers, folder, low)
    flows = [Flow(user="ANONYMOUS", client_id=name, amount=HISTORY, end_s=25 * 3600.0) for name in NAMES]
    traffic = write_traffic(folder / "history.parquet", flows)
    done = invoke("backtest", "quotas", "--bootstrap-server", servers, "--traffic", str(traffic), "--format", "json", cwd=folder)
    assert done.code == 0, done.err
    (folder / "backtest.json").write_text(done.out)
    return folder


def declare(servers: str, folder: Path, low: float, **spec: object) -> None:
    """Write the manifests."""
    (folder / "quotas").mkdir(exist_ok=True, parents=True)
    entries = (({"client-id": name}, {KEY: f"{low:.0f}B"}) for name in NAMES)
    text = f"{cluster_document(connection={'bootstrapServers': [servers]}, **spec)}---\n{quotas(*entries)}"
    (folder / "quotas/all.yaml").write_text(text)


def command_of(*sources: str, report: str = "run.json", accepted: str = "backtest.json") -> tuple[str, ...]:
    """A watched run in steps of a factor of 2."""
    watch = [option for source in sources for option in ("--watch", source)]
    return (
        "apply", "quotas", "--step-down", "2", *watch, "--backtest", accepted, "--auto-approve", "--accept", "large-reduction",
        "--report", report, "--audit", "audit.jsonl",
    )  # fmt: skip


def watched(folder: Path, *sources: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the report, of a watched run."""
    done = invoke(*command_of(*sources), cwd=folder)
    assert (folder / "run.json").exists(), done.err
    return done.code, json.loads((folder / "run.json").read_text())


@dataclass(slots=True)
class WatchedRun:
    """A watched run as a process, whose log tells the moments."""

    process: subprocess.Popen[str]
    file: Path
    moments: list[str] = field(default_factory=list)
    """The events of its log so far."""
    errors: list[str] = field(default_factory=list)

    def at(self, event: str, count: int = 1) -> None:
        """Wait until its log has this event so many times."""
        left = count
        assert self.process.stderr is not None
        for text in self.process.stderr:
            self.errors.append(text)
            name = json.loads(text)["event"] if text.startswith("{") else text
            self.moments.append(name)
            left -= name == event
            if not left:
                return
        raise AssertionError(f"it ended before {event}: {self.errors[-3:]}")

    def interrupt(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ended(self) -> tuple[int, dict[str, Any]]:
        """The exit code and the report; an empty one where none was written."""
        _, err = self.process.communicate(timeout=300)
        assert "Traceback" not in err, err
        return self.process.returncode, json.loads(self.file.read_text()) if self.file.exists() else {}


@contextlib.contextmanager
def watching(folder: Path, *sources: str, report: str = "run.json") -> Iterator[WatchedRun]:
    """A watched run that goes on inside of the block; killed at its end if it still runs."""
    with running("-v", "--log-format", "json", *command_of(*sources, report=report), cwd=folder) as process:
        yield WatchedRun(process, folder / report)


def require_true(report: Any, live: State, *, theirs: State | None = None) -> None:
    """Fail unless each change is as its status and ``reached`` state. ``theirs``: what another writer set since."""
    valid(report, "apply-report")
    expected = dict.fromkeys(report["summary"], 0)
    for change in report["changes"]:
        entity, status = frozenset(change["entity"].items()), change["status"]
        expected[status] += 1
        for key, two in change["keys"].items():
            has, reached = live.get(entity, {}).get(key), change.get("reached", {}).get(key)
            allowed = {"applied": [two["after"]], "unknown": [two["before"], two["after"], *(reached or ())]}.get(
                status, reached or [two["before"]]
            )
            if entity in (theirs or {}):
                allowed = [(theirs or {})[entity][key]]
            assert has in allowed, (sorted(entity), status, reached, has)
    assert expected == report["summary"]
    assert report["verified"] is (report["result"] in ("done", "nothing_to_do"))


def finish(folder: Path, servers: str) -> None:
    """Apply again: what is left is done, and then nothing is left to do."""
    again = ("apply", "quotas", "--auto-approve", "--accept", "large-reduction", "--format", "json")
    done = invoke(*again, cwd=folder)
    assert (done.code, done.json()["result"] in ("done", "nothing_to_do")) == (0, True), done.err
    assert raw_quotas.settled(servers, brokers=(1,)) == limits(LOW, LOW)
    assert invoke(*again, cwd=folder).json()["result"] == "nothing_to_do"


def undo(folder: Path, servers: str, report: str = "run.json") -> Done:
    """Revert the run by its report."""
    return invoke("revert", report, "--auto-approve", "--bootstrap-server", servers, cwd=folder)


def when(moment: Callable[[], object], then: Callable[[], None]) -> threading.Thread:
    """A thread, begun already, that waits for a moment and then acts."""

    def act() -> None:
        moment()
        then()

    thread = threading.Thread(target=act)
    thread.start()
    return thread
