"""Processes are ended by identity, never by number alone."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox import process
from reconciler.features.sandbox.process import ProcessRef, guarding
from reconciler.features.sandbox.process import main as guard_main


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Callable[[str], ProcessRef]]:
    """Starts shell scripts that end with the test."""
    started: list[ProcessRef] = []
    shell = shutil.which("sh")
    assert shell is not None

    def one(script: str) -> ProcessRef:
        started.append(process.spawn([shell, "-c", script], output=tmp_path / f"{len(started)}.log"))
        return started[-1]

    yield one
    process.end(started, grace_s=0.0)


def test_a_process_that_ignores_term_is_killed(spawn: Callable[[str], ProcessRef], tmp_path: Path) -> None:
    stubborn = spawn(f"trap '' TERM; touch {tmp_path}/deaf; while :; do sleep 1; done")
    while not (tmp_path / "deaf").exists():
        assert process.is_alive(stubborn)
    process.end([stubborn], grace_s=0.1)
    assert not process.is_alive(stubborn)


def test_another_process_that_got_the_number_is_left_alone(spawn: Callable[[str], ProcessRef]) -> None:
    bystander = spawn("exec sleep 60")
    earlier = ProcessRef(pid=bystander.pid, mark="started before this one")
    assert not process.is_alive(earlier)
    process.end([earlier], grace_s=0.0)
    assert process.is_alive(bystander)


def test_a_process_runs_in_a_session_of_its_own(spawn: Callable[[str], ProcessRef]) -> None:
    sleeper = spawn("exec sleep 60")
    assert os.getsid(sleeper.pid) == sleeper.pid != os.getsid(0)


def test_an_interrupt_while_a_process_is_started_comes_when_it_is_known(spawn: Callable[[str], ProcessRef]) -> None:
    started: list[ProcessRef] = []

    def start() -> None:
        with process.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            started.append(spawn("kill -TERM $$; sleep 60"))

    with pytest.raises(KeyboardInterrupt):
        start()
    assert process.wait_ended(started, within_s=10.0), "the process itself gets its signals"


def test_the_mark_without_proc_tells_running_from_ended(spawn: Callable[[str], ProcessRef]) -> None:
    sleeper = spawn("exec sleep 60")
    mark = process._mark_from_ps(sleeper.pid)
    assert mark
    assert process._mark_from_ps(sleeper.pid) == mark
    process.end([sleeper], grace_s=10.0)
    assert process._mark_from_ps(sleeper.pid) is None


def test_a_guard_whose_owner_vanished_ends_the_processes_and_removes_the_folder(
    spawn: Callable[[str], ProcessRef], tmp_path: Path
) -> None:
    folder = tmp_path / "sandbox"
    (folder / "node-1").mkdir(parents=True)
    sleeper = spawn("exec sleep 60")
    guard_main(folder, [f"watch {sleeper.pid} {sleeper.mark}\n"])
    assert not process.is_alive(sleeper)
    assert not folder.exists()


def test_a_released_guard_touches_nothing(spawn: Callable[[str], ProcessRef], tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    sleeper = spawn("exec sleep 60")
    with guarding(folder) as guard:
        guard.watch(sleeper)
    assert process.is_alive(sleeper)
    assert folder.exists()
