"""Runs of ``apply`` that are to be watched: what is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.apply import ApplySettings, StepDown
from reconciler.errors import TrafficError, UsageError
from reconciler.model.plan import ApplyReport, ApplyResult
from reconciler.ports import NO_PROGRESS
from reconciler.workflows.apply import UNASKED, Approval, apply_manifests
from reconciler.workflows.intent import load_intent
from tests.builders import user
from tests.fakes import FakeClock, FakeCluster
from tests.support.backtest_reports import report_of, verdict
from tests.support.bad_servers import refusing_port
from tests.support.manifests import cluster, quotas

KEY = "producer_byte_rate"
BEFORE = {user("alice"): {KEY: 300_000.0}}


def apply(folder: Path, server: FakeCluster, limit: str, *sources: str, with_backtest: bool = True) -> ApplyReport:
    (folder / "all.yaml").write_text(cluster() + "---\n" + quotas(({"user": "alice"}, {KEY: limit})))
    approval = Approval(
        accepted=("large-reduction",),
        settings=ApplySettings(),
        step_down=StepDown(factor=2.0),
        watch=sources,
        backtest=report_of(verdict(), cluster="prod") if with_backtest else None,
    )
    intent = load_intent([str(folder)], cluster=None)
    return apply_manifests(intent, server, approval, dialogue=UNASKED, clock=FakeClock(), progress=NO_PROGRESS)


def test_a_backtest_of_another_value_refuses_the_run(tmp_path: Path) -> None:
    server = FakeCluster(BEFORE)
    report = apply(tmp_path, server, "90000B")
    assert (report.result, report.failure_reason, server.writes) == (ApplyResult.REFUSED, "stale-plan", 0)
    assert "Run backtest again" in (report.message or "")


def test_the_predictions_and_the_end_of_a_run_are_in_its_report(tmp_path: Path) -> None:
    server = FakeCluster(BEFORE)
    report = apply(tmp_path, server, "100000B")
    (prediction,) = report.facts.predictions
    assert (prediction.entity, prediction.limit, report.facts.ended) == (user("alice"), 100_000.0, FakeClock().now())
    again = apply(tmp_path, server, "100000B", with_backtest=False)
    assert (again.result, again.facts.ended) == (ApplyResult.NOTHING_TO_DO, None)


def test_a_manifest_without_a_source_is_refused_in_a_sentence(tmp_path: Path) -> None:
    server = FakeCluster(BEFORE)
    with pytest.raises(UsageError, match=r"--watch spec\.traffic needs spec\.traffic of the Cluster manifest"):
        apply(tmp_path, server, "100000B", "spec.traffic")
    assert server.writes == 0


def test_a_source_that_does_not_answer_is_refused_before_the_first_step(tmp_path: Path) -> None:
    server = FakeCluster(BEFORE)
    with pytest.raises(TrafficError, match="does not answer"):
        apply(tmp_path, server, "100000B", f"1=metrics+http://127.0.0.1:{refusing_port()}")
    assert (server.writes, server.entities) == (0, BEFORE)


def test_files_that_show_nothing_of_now_are_refused_before_the_first_step(tmp_path: Path) -> None:
    server = FakeCluster(BEFORE)
    with pytest.raises((TrafficError, UsageError)):
        apply(tmp_path, server, "100000B", str(tmp_path / "gone.parquet"))
    assert server.writes == 0
