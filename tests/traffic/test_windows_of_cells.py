"""Cells alone under window settings of which whole seconds prove nothing: refused with a reason, never judged all the same."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence

import pytest

from reconciler.errors import TrafficError
from reconciler.model import BucketVerdict, Coverage, Provenance
from reconciler.model.entity import Entity
from reconciler.traffic import Backtest, BacktestRequest, BrokerModel
from reconciler.traffic.judging.by_seconds import Lines, Points
from reconciler.traffic.judging.evidence import Evidence, Gauge
from reconciler.traffic.judging.exact import JudgedGroups
from reconciler.traffic.judging.grouping import Grouping, Series, Tables
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kinds import Kind
from reconciler.traffic.traffic_source import Facts

QUOTAS = {Entity.of({"user": "alice"}): {"producer_byte_rate": 5.0}}
START = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)


class Seconds:
    """Traffic of which only seconds are known; it notes by which rule it was asked to judge."""

    series = (Series(broker=1, kind=Kind.PRODUCE, user="alice", client_id="app", requests=1, amount=1),)
    facts = Facts(source="cells", files=(), coverage=(Coverage(broker=1, requests=1, start=START, end=START),), requests=1)

    gauges: tuple[Gauge, ...] = ()

    def __init__(self) -> None:
        self.asked: list[Window] = []

    def by_seconds(self, grouping: Grouping, groups: Collection[int], window: Window) -> JudgedGroups:
        self.asked.append(window)
        return JudgedGroups(groups={})

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        return {}

    def evidence(self, question: BacktestRequest, tables: Sequence[Tables], provenance: Provenance) -> Evidence:
        return Evidence()

    def minutes(self) -> Mapping[int, Integers]:
        return {}

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        return {}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("window", [Window(samples=1), Window(samples=11, sample_ms=600_000)])
def test_unproven_windows_are_refused(window: Window) -> None:
    recorded = Seconds()
    run = Backtest(recorded, BacktestRequest(current=None, proposed=QUOTAS, declared=QUOTAS, broker=BrokerModel(window=window)))
    with pytest.raises(TrafficError, match="per-second totals prove nothing about"):
        run.report()
    assert recorded.asked == []


def test_where_nothing_is_to_be_judged_by_a_window_none_is_refused() -> None:
    question = BacktestRequest(current=QUOTAS, proposed=QUOTAS, declared=QUOTAS, broker=BrokerModel(window=Window(samples=1)))
    assert Backtest(Seconds(), question).report().verdicts == ()


def test_proven_windows_are_judged_by_their_own_bounds() -> None:
    recorded, window = Seconds(), Window(samples=31, sample_ms=2000)
    report = Backtest(
        recorded, BacktestRequest(current=None, proposed=QUOTAS, declared=QUOTAS, broker=BrokerModel(window=window))
    ).report()
    assert recorded.asked == [window]
    assert any("31 samples of 2 s" in text for text in report.provenance.assumptions)
