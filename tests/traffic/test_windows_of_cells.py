"""Per-second totals under window settings of which whole seconds prove nothing are refused with a reason, and never judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import TrafficError
from reconciler.model import BacktestReport
from reconciler.model.entity import Entity
from reconciler.traffic import Backtest, BacktestRequest, BrokerModel, find_traffic
from reconciler.traffic.kernels.sampled_rate import Window
from tests.support.local_traffic import open_here
from tests.traffic.test_deltas_within_a_second import ROWS, written

QUOTAS = {Entity.of({"user": "busy"}): {"producer_byte_rate": 5000.0}}


def judged(folder: Path, window: Window, *, changes: bool = True) -> BacktestReport:
    recorded = open_here(find_traffic([str(written(folder / "seconds.parquet", ROWS))]))
    current = {} if changes else QUOTAS
    question = BacktestRequest(current=current, proposed=QUOTAS, declared=QUOTAS, broker=BrokerModel(window=window))
    return Backtest(recorded, question).report()


@pytest.mark.parametrize("window", [Window(samples=1), Window(samples=11, sample_ms=600_000)])
def test_unproven_windows_are_refused(tmp_path: Path, window: Window) -> None:
    with pytest.raises(TrafficError, match="per-second totals prove nothing about"):
        judged(tmp_path, window)


def test_where_nothing_is_to_be_judged_by_a_window_none_is_refused(tmp_path: Path) -> None:
    assert judged(tmp_path, Window(samples=1), changes=False).verdicts == ()


def test_proven_windows_are_judged_by_their_own_bounds(tmp_path: Path) -> None:
    short, long = (judged(tmp_path, Window(samples=samples, sample_ms=2000)) for samples in (6, 31))
    peaks = [report.verdicts[0].peak.rate for report in (short, long)]
    assert peaks[0] > 1.5 * peaks[1] > 0
    assert any("31 samples of 2 s" in text for text in long.provenance.assumptions)
