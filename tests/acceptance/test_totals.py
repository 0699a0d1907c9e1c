"""Totals of the cluster as users meet them: divided, explained, and planned again when brokers come or go."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.quota import LeaderSpread
from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.schemas import valid

MIB = 2.0**20
TOTAL = quotas(({"user": "alice"}, {"producer_byte_rate": {"clusterTotal": "60MiB"}}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    return tmp_path


def manifests(folder: Path, entries: str = TOTAL, **spec: Any) -> None:
    (folder / "quotas" / "prod.yaml").write_text(cluster(**spec))
    (folder / "quotas" / "quotas.yaml").write_text(entries)


def live(folder: Path, value: float | None, *brokers: int, leaders: LeaderSpread | None = None) -> None:
    state = {} if value is None else {user("alice"): {"producer_byte_rate": value}}
    (folder / "live.json").write_text(snapshot(state, brokers=brokers, leaders=leaders))


def plan(folder: Path, *arguments: str, command: str = "plan") -> Done:
    return invoke(command, "quotas", "--current", "live.json", *arguments, cwd=folder)


def test_a_plan_shows_what_was_declared_and_what_each_broker_enforces(folder: Path) -> None:
    manifests(folder)
    live(folder, None, 1, 2, 3, leaders=LeaderSpread(partitions=((1, 6), (2, 3), (3, 3))))
    document = plan(folder, "--format", "json").json()
    valid(document, "plan")
    (change,) = document["changes"]

    assert change["keys"]["producer_byte_rate"]["after"] == 20 * MIB
    assert change["keys"]["producer_byte_rate"]["declared"] == {"clusterTotal": 60 * MIB, "brokers": 3}
    assert document["brokers"] == [1, 2, 3]
    assert document["leaders"] == {"partitions": {"1": 6, "2": 3, "3": 3}, "leaderless": 0, "absent": []}
    text = plan(folder).out
    assert "not set -> 20 MiB/s" in text
    assert "declared: 60 MiB/s in total, divided by 3 brokers" in text
    assert "by a factor of 1.5: broker 1 leads 50 % of the partitions" in " ".join(text.split())
    for page in ("markdown", "html"):
        assert "60 MiB/s in total, divided by 3 brokers" in re.sub(
            "</?span[^>]*>", "", plan(folder, "--format", page).out
        ).replace("\xa0", " ")


BOTH = quotas(({"user": "alice"}, {"producer_byte_rate": {"clusterTotal": "60MiB", "perBroker": "25MiB"}}))


@pytest.mark.parametrize(
    ("brokers", "limit", "reason"),
    [
        (
            (1, 2),
            25,
            "25 MiB/s on each broker (perBroker), which is not more than 60 MiB/s in total, divided by 2 brokers (30 MiB/s)",
        ),
        ((1, 2, 3), 20, "60 MiB/s in total, divided by 3 brokers, which is less than 25 MiB/s on each broker (perBroker)"),
    ],
)
def test_the_smaller_of_two_limits_applies_with_its_reason(
    folder: Path, brokers: tuple[int, ...], limit: int, reason: str
) -> None:
    manifests(folder, BOTH)
    live(folder, None, *brokers)
    document = plan(folder, "--format", "json").json()
    valid(document, "plan")
    (change,) = document["changes"]

    assert change["keys"]["producer_byte_rate"]["after"] == limit * MIB
    declared = {"clusterTotal": 60 * MIB, "perBroker": 25 * MIB, "brokers": len(brokers)}
    assert change["keys"]["producer_byte_rate"]["declared"] == declared
    assert f"declared: {reason}" in " ".join(plan(folder).out.split())
    resolved = plan(folder, "--state", "planned", "--name", "user=alice", command="resolve").out
    assert reason in " ".join(resolved.split())


def test_a_broker_that_joins_below_the_limit_of_each_broker_trips_the_guard(folder: Path) -> None:
    manifests(folder, BOTH)
    live(folder, 25 * MIB, 1, 2, 3)
    text = " ".join(plan(folder).out.split())
    assert "perBroker is the smaller limit of up to 2 brokers, and 3 are up" in text
    assert "Guard rebalance needs acceptance" in text


def test_a_snapshot_without_brokers_cannot_be_planned(folder: Path) -> None:
    manifests(folder)
    live(folder, None)
    done = plan(folder)

    assert done.code == 1
    assert "[unknown-brokers]" in done.out
    assert "quotas.yaml:4" in done.out


def test_a_broker_that_left_changes_the_parts_and_is_named(folder: Path) -> None:
    manifests(folder, rebalance="always")
    spread = LeaderSpread(partitions=((1, 4), (2, 4), (3, 4)), absent=(4,))
    live(folder, 15 * MIB, 1, 2, 3, leaders=spread)
    document = plan(folder, "--format", "json").json()
    valid(document, "plan")

    assert document["changes"][0]["keys"]["producer_byte_rate"]["brokers_before"] == 4
    assert document["applyable"]
    text = " ".join(plan(folder).out.split())
    assert "5 MiB/s more for each broker, because broker 4 left" in text
    assert "Broker 4 has replicas and is not up. Totals are divided among the 3 that are." in text


def test_parts_stay_where_the_cluster_never_rebalances(folder: Path) -> None:
    manifests(folder, rebalance="never")
    live(folder, 15 * MIB, 1, 2, 3)

    assert "1 value was computed for another number of brokers than 3 and stays, because of rebalance: never." in " ".join(
        plan(folder).out.split()
    )
    assert plan(folder, "--format", "json").json()["changes"] == []
    assert plan(folder, "--detailed-exitcode", command="drift").code == 0


def test_drift_explains_a_part_for_other_brokers(folder: Path) -> None:
    manifests(folder)
    live(folder, 15 * MIB, 1, 2, 3)
    text = " ".join(plan(folder, command="drift").out.split())
    document = plan(folder, "--format", "json", command="drift").json()
    valid(document, "drift")

    assert "5 MiB/s more for each broker, because 1 broker left" in text
    assert document["entities"][0]["keys"]["producer_byte_rate"]["brokers_before"] == 4


def test_a_snapshot_and_a_saved_plan_have_the_leaders_of_all_topics(folder: Path) -> None:
    manifests(folder, quotas(({"user": "alice"}, {"producer_byte_rate": {"proportional": "60MiB", "to": "leaders"}})))
    live(folder, None, 1, 2, 3, leaders=LeaderSpread(partitions=((1, 6), (2, 3), (3, 3))))
    assert "30 MiB/s" in plan(folder, "--out", "json=plan.json").out
    document = json.loads((folder / "plan.json").read_text())
    valid(document, "plan")
    (change,) = document["changes"]

    assert change["keys"]["producer_byte_rate"]["declared"] == {
        "proportional": 60 * MIB, "leaders": {"1": 6, "2": 3, "3": 3}, "partitions": 12,
    }  # fmt: skip
    text = " ".join(invoke("tool", "render", "plan.json", cwd=folder).out.split())
    assert "one number for all brokers: the largest part" in text
