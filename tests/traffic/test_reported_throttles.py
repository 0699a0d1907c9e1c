"""Throttles that a broker reported beside its rates: they convict a limit that stays or falls, and clear none that rises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.model.entity import Entity
from tests.support.command import Done, invoke
from tests.support.gauge_parquet import Client, Shape, steady, write_gauges
from tests.support.manifests import cluster, quotas, snapshot

MIB = 2**20
KEYS = {"produce": "producer_byte_rate", "request": "request_percentage", "mutation": "controller_mutation_rate"}
NANOS_A_PERCENT = 10_000_000
ALICE = Entity.of({"user": "alice"})
OLD_LIMIT = (
    "the old limit of 1 MiB/s throttled these clients in 40 of 240 samples. They need at least 1 MiB/s, and the history does not "
    "show how much more. Raise the limit in steps and judge the traffic of each step, or record at a higher limit"
)
REPORTED = "the broker reported throttles under this limit in 40 of 240 samples"


HALF = steady(MIB // 2)


def backtest(
    folder: Path, before: float | None, after: float, *more: str, kind: str = "produce", shape: Shape = HALF, count: int = 40
) -> Done:
    clients: dict[Client, Shape] = {("alice", None, 1): shape, ("bob", None, 1): HALF}
    write_gauges(folder / "gauges", clients, hours=1, throttled={("alice", None, 1): range(count)}, kind=kind)
    (folder / "quotas").mkdir()
    (folder / "quotas" / "quotas.yaml").write_text(
        cluster() + "---\n" + quotas(({"user": "alice"}, {KEYS[kind]: after}), ({"user": "bob"}, {KEYS[kind]: 10 * MIB}))
    )
    if before is not None:
        entities = {ALICE: {KEYS[kind]: before}, Entity.of({"user": "bob"}): {KEYS[kind]: 10.0 * MIB}}
        (folder / "now.json").write_text(snapshot(entities, cluster_id=None))
        more = ("--current", "now.json", *more)
    return invoke("backtest", "quotas", "--traffic", "gauges", *more, cwd=folder)


def of_alice(done: Done) -> dict[str, Any]:
    assert (done.code, done.err) == (0, "")
    (row,) = (row for row in done.json()["verdicts"] if row["bucket"].get("user") == "alice")
    return dict(row)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        (MIB, MIB, "throttled", REPORTED),
        (2 * MIB, MIB, "throttled", f"{REPORTED}, when it was 2 MiB/s"),
        (MIB, 8 * MIB, "inconclusive", OLD_LIMIT),
        (
            None,
            MIB,
            "inconclusive",
            "the broker reported throttles in 40 of 240 samples under quotas that are not known: give --current",
        ),
    ],
    ids=["it stays", "it falls", "it rises", "not known"],
)
def test_a_reported_throttle_decides_about_the_limit_of_then_and_lower_ones(
    tmp_path: Path, before: float | None, after: float, verdict: str, reason: str
) -> None:
    row = of_alice(backtest(tmp_path, before, after, "--format", "json"))
    assert (row["verdict"], row["reason"]) == (verdict, reason)
    assert row["metrics"]["throttled_then"] == 40
    assert (row["seconds_certain"] > 0) == (verdict == "throttled")


def test_one_report_among_many_samples_convicts_and_does_not_hold_back(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert of_alice(backtest(tmp_path / "a", MIB, MIB, "--format", "json", count=1))["verdict"] == "throttled"
    (tmp_path / "b").mkdir()
    raised = of_alice(backtest(tmp_path / "b", MIB, 8 * MIB, "--format", "json", count=1))
    assert raised["verdict"] == "inconclusive"
    assert "old limit" not in raised["reason"]


def test_a_rate_above_the_higher_limit_stays_possible(tmp_path: Path) -> None:
    row = of_alice(backtest(tmp_path, MIB, 2 * MIB, "--format", "json", shape=steady(MIB, peaks={7: 2 * MIB + 5})))
    assert row["verdict"] == "possible"


def test_what_was_reported_on_one_broker_holds_for_the_quota_group(tmp_path: Path) -> None:
    """No row of it tells another story, and the value that is good for all brokers is a lower bound."""
    clients: dict[Client, Shape] = {("alice", None, 1): HALF, ("alice", None, 2): HALF}
    write_gauges(tmp_path / "gauges", clients, hours=1, throttled={("alice", None, 2): range(40)})
    (tmp_path / "now.json").write_text(snapshot({ALICE: {KEYS["produce"]: float(MIB)}}, cluster_id=None))
    for after, verdict in ((8 * MIB, "inconclusive"), (MIB, "throttled")):
        entry = {"user": "alice"}, {KEYS["produce"]: after}
        (tmp_path / "quotas.yaml").write_text(cluster() + "---\n" + quotas(entry))
        common = ("backtest", "quotas.yaml", "--traffic", "gauges", "--current", "now.json")
        done = invoke(*common, "--format", "json", cwd=tmp_path)
        rows = {row["broker"]: row for row in done.json()["verdicts"]}
        assert [(rows[broker]["censored"], rows[2]["verdict"]) for broker in (1, 2)] == [(True, verdict)] * 2
        assert len(done.json()["findings"]) == 1
        assert "at least " in invoke(*common, cwd=tmp_path).out
        if verdict == "inconclusive":
            assert rows[1]["reason"] == f"on broker 2, {OLD_LIMIT}"


def test_a_limit_that_goes_is_not_clear_where_it_throttled(tmp_path: Path) -> None:
    write_gauges(tmp_path / "gauges", {("alice", None, 1): HALF}, hours=1, throttled={("alice", None, 1): range(40)})
    (tmp_path / "now.json").write_text(snapshot({ALICE: {KEYS["produce"]: float(MIB)}}, cluster_id=None))
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "quotas.yaml").write_text(cluster() + "---\n" + quotas(({"user": "bob"}, {KEYS["produce"]: MIB})))
    row = of_alice(invoke("backtest", "quotas", "--traffic", "gauges", "--current", "now.json", "--format", "json", cwd=tmp_path))
    reason = OLD_LIMIT.replace("how much more", "how much they send without a limit")
    assert (row["verdict"], row["limit_after"], row["reason"]) == ("inconclusive", None, reason)


def test_throttles_under_request_may_be_those_of_controller_mutations(tmp_path: Path) -> None:
    """Brokers that forward a creation of topics report its throttle under Request, whatever the limit of that key is."""
    (tmp_path / "a").mkdir()
    never = of_alice(
        backtest(tmp_path / "a", 100_000, 100_000, "--format", "json", kind="request", shape=steady(NANOS_A_PERCENT))
    )
    assert never["verdict"] == "inconclusive"
    assert "Brokers report throttles of controller_mutation_rate under Request, too" in never["reason"]
    (tmp_path / "b").mkdir()
    over = steady(NANOS_A_PERCENT, peaks={7: 51 * NANOS_A_PERCENT})
    row = of_alice(backtest(tmp_path / "b", 50, 50, "--format", "json", kind="request", shape=over))
    assert (row["verdict"], row["reason"]) == ("throttled", REPORTED)


def test_throttles_of_mutations_convict_although_a_rate_shows_no_tokens(tmp_path: Path) -> None:
    row = of_alice(backtest(tmp_path, 5, 5, "--format", "json", kind="mutation", shape=steady(1)))
    assert (row["verdict"], row["reason"]) == ("throttled", REPORTED)
