"""What the service does with the traffic that a Cluster manifest names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import user
from tests.fakes import FakeCluster
from tests.support.manifests import cluster, quotas
from tests.support.service_world import ServiceWorld

BOB = user("bob")
LOG = Path(__file__).parents[3] / "examples" / "quickstart" / "kafka-request.log.gz"
RULE = {"verdicts": ["throttled"], "match": {"user": "bob"}, "reason": "bob is never throttled"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(LOG, tmp_path / LOG.name)
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "bob"}, {"producer_byte_rate": "10KiB"})), "utf-8")
    return tmp_path


def world(
    folder: Path,
    *rules: Mapping[str, object],
    applies: bool = True,
    source: str = LOG.name,
    report: Path | None = None,
) -> ServiceWorld:
    judged = {"history": {"hours": 0}, **({"fail": list(rules)} if rules else {})}
    (folder / "cluster.yaml").write_text(cluster(prune="never", traffic={"source": f"./{source}"}, backtest=judged), "utf-8")
    return ServiceWorld(folder, FakeCluster(), applies=applies, report=report)


def test_a_rule_that_recorded_traffic_violates_stops_the_write(folder: Path) -> None:
    service = world(folder, RULE)

    # The answer for a plan is kept: its traffic may go.
    service.run(250, {50: (folder / LOG.name).unlink})

    assert service.results == ["refused"] * 3
    assert (service.cluster.writes, service.cluster.entities) == (0, {})
    assert {outcome.reason for outcome in service.outcomes} == {"backtest"}
    assert all("bob is never throttled" in outcome.message for outcome in service.outcomes)


def test_a_limit_that_recorded_traffic_allows_is_written(folder: Path) -> None:
    report = folder.with_name("report.json")
    service = world(folder, RULE, report=report)
    (folder / "quotas.yaml").write_text(quotas(({"user": "bob"}, {"producer_byte_rate": "10MiB"})), "utf-8")

    service.run(50)

    assert service.results == ["applied"]
    assert service.cluster.entities == {BOB: {"producer_byte_rate": 10 * 1024.0 * 1024}}
    (prediction,) = json.loads(report.read_text())["predictions"]
    assert (prediction["entity"], prediction["verdict"], prediction["share"]) == ({"user": "bob"}, "clear", 0.0)


@pytest.mark.parametrize("applies", [True, False])
def test_without_a_rule_the_result_is_in_the_log(folder: Path, applies: bool) -> None:
    service = world(folder, applies=applies)

    service.run(50)

    assert service.results == ["applied" if applies else "differs"]
    assert any("Backtest: The proposed quotas would have throttled 1 of 1 quota group" in line for line in service.log)


def test_traffic_that_is_not_there_stops_no_write_and_is_named(folder: Path) -> None:
    service = world(folder, RULE, source="gone.log")

    service.run(50)

    assert service.results == ["applied"]
    assert any("Nothing was checked against traffic" in line and "gone.log" in line for line in service.log)
