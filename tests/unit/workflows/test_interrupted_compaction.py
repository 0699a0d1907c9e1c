"""Ctrl-C while traffic is compacted: what was there stays, and the interrupt states it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.compacting.compact import compact_traffic
from reconciler.ports import NO_PROGRESS, NoProgress
from tests.support.compact_arguments import compact_arguments
from tests.support.incident_log import Sender, write_log


class Interrupted(NoProgress):
    """A person who presses Ctrl-C when the first bytes were read."""

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        assert 0 < done <= (total or 0)
        assert unit == "", "bytes"
        raise KeyboardInterrupt


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_interrupt_leaves_the_totals_of_earlier_runs_and_says_so(tmp_path: Path) -> None:
    sender = Sender(user="alice", client_id="app", size=1000, every_s=1, begin_s=0, end_s=30)
    first, second = tmp_path / "broker-1.log", tmp_path / "broker-2.log"
    write_log(first, [sender], {})
    history = tmp_path / "history"
    compact_traffic(compact_arguments(first, folder=history), progress=NO_PROGRESS)
    before = files_below(history)
    write_log(second, [sender], {})
    both = compact_arguments(first, second, folder=history)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        compact_traffic(both, progress=Interrupted())
    assert interrupt.value.__notes__ == [f"{history} has the totals of earlier runs, and the same command begins this one anew"]
    assert files_below(history) == before
    assert compact_traffic(both, progress=NO_PROGRESS).segments == 2
