"""Totals in proportion to leaders, judged: each broker has its own part where the plugin knows the leaders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.features.simulating.simulation import Situation, simulate
from reconciler.model import BacktestReport, Verdict
from reconciler.model.quota import LeaderSpread
from reconciler.model.state import ClusterIdentity
from reconciler.resolution.reserved_users import GROUP_CALLBACK, ProportionalTotal, reserved_entity
from reconciler.workflows.backtest import BacktestOptions, Proposal, proposal_of_settings, run_backtest
from tests.builders import current, user
from tests.support.recorded_parquet import Flow, write_traffic

KEY = "producer_byte_rate"
LEADERS = LeaderSpread(partitions=((1, 3), (2, 2), (3, 1)), by_topic={"orders": ((1, 1, 1, 2, 2, 3), 6)})
ALICE = user("alice")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """1,500 bytes each second on each of three brokers, for five minutes."""
    flows = [Flow(user="alice", broker=broker, amount=1500, begin_s=0.5, end_s=300.5) for broker in (1, 2, 3)]
    return write_traffic(tmp_path / "history.parquet", flows)


def proposal(leaders: LeaderSpread | None, version: str = "4.3") -> Proposal:
    """A total of 6,000 bytes/s by the leaders of ``orders``: 3,000, 2,000 and 1,000, and 3,000 is the stored number."""
    total = reserved_entity(ProportionalTotal(subject=ALICE, topic="orders"))
    state = current({ALICE: {KEY: 3000.0}, total: {KEY: 6000.0}})
    state = replace(state, cluster=ClusterIdentity(name=None, id="c1", kafka_version=version), leaders=leaders)
    return proposal_of_settings({}, state)


def judged(history: Path, leaders: LeaderSpread | None, version: str = "4.3") -> BacktestReport:
    changed = replace(proposal(leaders, version), current=None)
    return run_backtest(changed, BacktestOptions(traffic=(str(history),), quota_callback=GROUP_CALLBACK))


def limits(report: BacktestReport) -> dict[int, float | None]:
    return {row.broker: row.limits.after for row in report.verdicts}


def throttled(report: BacktestReport) -> list[int]:
    return sorted(row.broker for row in report.verdicts if row.verdict is Verdict.THROTTLED)


def test_each_broker_is_judged_by_its_own_part(history: Path) -> None:
    report = judged(history, LEADERS)
    assert limits(report) == {1: 3000.0, 2: 2000.0, 3: 1000.0}
    assert throttled(report) == [3]
    assert any("judged by the leaders of today on each broker" in note for note in report.notes)


def test_without_leaders_all_brokers_have_the_largest_part_and_the_report_states_it(history: Path) -> None:
    report = judged(history, None)
    assert set(limits(report).values()) == {3000.0}
    assert throttled(report) == []
    assert any("stored number on all brokers" in note and "--bootstrap-server" in note for note in report.notes)


def test_brokers_that_do_not_give_the_plugin_leaders_are_judged_by_the_stored_number(history: Path) -> None:
    report = judged(history, LEADERS, "3.9")
    assert set(limits(report).values()) == {3000.0}
    assert any("this Kafka version" in note for note in report.notes)


def test_without_a_broker_the_others_are_judged_by_their_parts_of_today(history: Path) -> None:
    state = replace(
        current(dict(proposal(None).proposed)), cluster=ClusterIdentity(name=None, id="c1", kafka_version="4.3"), leaders=LEADERS
    )
    options = BacktestOptions(traffic=(str(history),), quota_callback=GROUP_CALLBACK)
    report = simulate(Situation(without=(1,)), None, state, options)
    # Which of them leads the partitions of broker 1 then is not known: their parts may rise, and never fall.
    assert limits(report) == {2: 2000.0, 3: 1000.0}
    assert throttled(report) == [2, 3]
    assert report.situation == "Without broker 1"
