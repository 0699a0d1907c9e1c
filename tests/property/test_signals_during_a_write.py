"""A signal at any line of a command that writes: what was written is reported, in file and audit, and never exits with 130."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reconciler
from reconciler.apply.steps import StepDown
from reconciler.apply.writing import ChunkLimits
from reconciler.cli import exit_codes, writing
from reconciler.cli.declaration import read
from reconciler.cli.main import build_parser
from reconciler.cli.output import LiveProgress, console
from reconciler.cli.writing import INTERRUPTS
from reconciler.model.plan import Action, Change, KeyChange, Plan, Reason
from reconciler.ports import NO_PROGRESS
from reconciler.workflows.apply import Approval, Dialogue, write
from tests.builders import plan, user
from tests.fakes import FakeClock, FakeCluster

RATE = "producer_byte_rate"
BEFORE, AFTER = 1000.0, 300.0
PACKAGE = Path(reconciler.__file__).parent
OURS = tuple(str(PACKAGE / name) for name in ("apply", "cli", "documents", "files", "render", "workflows"))
"""Whose lines are counted; the cluster of these tests uses the model, and shall not be torn itself."""
USERS = tuple(user(f"u{n}") for n in range(5))


@dataclass(kw_only=True)
class Ended:
    """What is left of a command. ``lines``: how many of ours ran from the approval to the end."""

    code: int
    cluster: FakeCluster
    report: Any
    audit: Any
    lines: int


def lowered() -> Plan:
    keys = (KeyChange(key=RATE, before=BEFORE, after=AFTER, reason=Reason.VALUE_DIFFERS),)
    return plan(*(Change(entity=entity, action=Action.UPDATE, keys=keys) for entity in USERS))


class Signals:
    """Sends a signal at these lines of our own code, counted from its making."""

    def __init__(self, at: dict[int, signal.Signals]) -> None:
        self._at = at
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(OURS) or frame.f_code.co_filename.endswith("/interrupts.py"):
            return None
        if event == "line":
            self.lines += 1
            if (number := self._at.pop(self.lines, None)) is not None:
                signal.raise_signal(number)
        return self


def command(folder: Path, cluster: FakeCluster, *, step_down: StepDown | None) -> int:
    """The part of ``apply`` from the plan on."""
    line = ["apply", "--auto-approve", "--report", f"{folder}/report", "--audit", f"{folder}/audit"]
    options = read(writing.LongWritingOptions, build_parser("apply").parse_args(line))
    approver = writing.Approver(write=options, as_json=True, progress=LiveProgress())
    try:
        with console(color="auto", quiet=True), writing.audited(options, "apply", "json") as audit, writing.given_back(cluster):
            report = write(
                lowered(),
                cluster,
                Approval(settings=few_at_once(options), step_down=step_down),
                dialogue=Dialogue(confirm=approver.confirm),
                clock=FakeClock(),
                progress=NO_PROGRESS,
            )
        left = writing.finish(options, report, audit, "json")
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    assert isinstance(left.exit, int)
    return left.exit


def few_at_once(options: writing.LongWritingOptions) -> Any:
    from dataclasses import replace

    return replace(options.settings(), limits=ChunkLimits(keys=2))


def run(at: dict[int, signal.Signals], step_down: StepDown | None = None) -> Ended:
    cluster = FakeCluster({entity: {RATE: BEFORE} for entity in USERS})
    with tempfile.TemporaryDirectory() as name:
        folder, signals = Path(name), Signals(at)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        tracing = sys.gettrace()
        try:
            with console(color="auto", quiet=False):  # a signal may tear the end out of the one inside
                try:
                    sys.settrace(signals)
                    code = command(folder, cluster, step_down=step_down)
                finally:
                    sys.settrace(tracing)
        except KeyboardInterrupt:  # torn out of the rest of the command
            code = exit_codes.INTERRUPTED
        finally:
            signal.signal(signal.SIGTERM, before)
        report, audit = folder / "report", folder / "audit"
        return Ended(
            code=code,
            cluster=cluster,
            report=json.loads(report.read_text()) if report.exists() else None,
            audit=json.loads(audit.read_text()) if audit.exists() and audit.read_text() else None,
            lines=signals.lines,
        )


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    forget()


def forget() -> None:
    while INTERRUPTS._holds:
        INTERRUPTS._release()
    INTERRUPTS._noted = False


STEPS = {"at once": None, "in steps": StepDown(factor=2)}
LINES: dict[str, int] = {}


@pytest.mark.parametrize("how", STEPS)
@given(data=st.data())
@settings(max_examples=150)
def test_what_was_written_is_reported_whenever_signals_come(how: str, data: st.DataObject) -> None:
    if how not in LINES:
        LINES[how] = run({}, STEPS[how]).lines
        forget()
    numbers = st.sampled_from([signal.SIGINT, signal.SIGTERM])
    at = data.draw(st.dictionaries(st.integers(1, LINES[how]), numbers, min_size=1, max_size=3))

    ended = run(at, STEPS[how])
    forget()

    changed = {entity for entity in USERS if ended.cluster.entities[entity] != {RATE: BEFORE}}
    if not changed:
        assert ended.code in (exit_codes.INTERRUPTED, exit_codes.PARTIAL)
        return
    assert ended.code in (exit_codes.DONE, exit_codes.PARTIAL)
    assert ended.report["summary"] == ended.audit["summary"]
    for change in ended.report["changes"]:
        live = ended.cluster.entities[user(change["entity"]["user"])][RATE]
        reached = change.get("reached", {}).get(RATE, [])
        possible = {"applied": [AFTER], "unknown": [BEFORE, AFTER, *reached], "failed": reached}.get(change["status"], [BEFORE])
        assert live in possible, change
    assert (ended.code == exit_codes.DONE) is (ended.report["result"] == "done")
