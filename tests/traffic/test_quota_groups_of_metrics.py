"""Series of metrics are quota groups of the quotas that were in effect: which of them a change leaves as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.entity import DEFAULT, Entity
from tests.support.command import Done, invoke
from tests.support.gauge_parquet import Client, Shape, steady, write_gauges
from tests.support.manifests import cluster, quotas, snapshot

MIB = 2**20
APP, ETL = {"client-id": "app"}, {"client-id": "etl"}
ZOE, ALICE = {"user": "zoe"}, {"user": "alice"}
PAIR = {"user": "alice", "client-id": "app"}
Limits = Sequence[tuple[Mapping[str, Any], float]]


def backtest(folder: Path, current: Limits | None, proposed: Limits, *more: str) -> Done:
    (folder / "quotas").mkdir()
    (folder / "quotas" / "cluster.yaml").write_text(cluster())
    entries = [(match, {"producer_byte_rate": limit}) for match, limit in proposed]
    (folder / "quotas" / "quotas.yaml").write_text(quotas(*entries))
    if current is not None:
        names = [
            ({t: name if isinstance(name, str) else DEFAULT for t, name in match.items()}, limit) for match, limit in current
        ]
        entities = {Entity.of(match): {"producer_byte_rate": float(limit)} for match, limit in names}
        (folder / "now.json").write_text(snapshot(entities, cluster_id=None))
        more = ("--current", "now.json", *more)
    return invoke("backtest", "quotas", "--traffic", "gauges", *more, cwd=folder)


def verdicts(folder: Path, clients: Mapping[Client, Shape], current: Limits, proposed: Limits) -> dict[object, dict[str, Any]]:
    write_gauges(folder / "gauges", clients, hours=1)
    done = backtest(folder, current, proposed, "--format", "json")
    assert (done.code, done.err) == (0, "")
    return {(row["bucket"].get("user"), row["bucket"].get("client-id")): row for row in done.json()["verdicts"]}


BUSY = steady(MIB, peaks={7: 13 * MIB})


@pytest.mark.parametrize(
    "other",
    [
        (ZOE, 5 * MIB),
        ({"user": {"default": True}, "client-id": "reports"}, 5 * MIB),
        ({"user": "zoe", "client-id": {"default": True}}, 5 * MIB),
    ],
    ids=["a user", "a pair of the default user", "a default pair of a user"],
)
def test_a_quota_of_another_client_leaves_the_series_of_client_ids_and_users_judged(
    tmp_path: Path, other: tuple[dict[str, Any], float]
) -> None:
    clients: dict[Client, Shape] = {(None, "app", 1): BUSY, (None, "etl", 1): steady(MIB), ("alice", None, 1): BUSY}
    current = [(APP, 20 * MIB), (ETL, 20 * MIB), (ALICE, 20 * MIB), other]
    rows = verdicts(tmp_path, clients, current, [(APP, 10 * MIB), (ETL, 10 * MIB), (ALICE, 10 * MIB), other])
    assert {place: (row["verdict"], row["limit_after"], row.get("undecided", False)) for place, row in rows.items()} == {
        (None, "app"): ("throttled", 10 * MIB, False),
        (None, "etl"): ("inconclusive", 10 * MIB, False),
        ("alice", None): ("throttled", 10 * MIB, False),
    }


def test_a_new_quota_decides_only_the_groups_that_it_cannot_split(tmp_path: Path) -> None:
    clients: dict[Client, Shape] = {(None, "app", 1): BUSY, (None, "etl", 1): BUSY, ("alice", None, 1): BUSY}
    current = [(APP, 20 * MIB), (ETL, 20 * MIB), (ALICE, 20 * MIB)]
    proposed = [(APP, 10 * MIB), (ETL, 10 * MIB), (ALICE, 10 * MIB), ({"user": "zoe", "client-id": "app"}, 5 * MIB)]
    rows = verdicts(tmp_path, clients, current, proposed)
    assert {place: (row["verdict"], row.get("undecided", False)) for place, row in rows.items()} == {
        (None, "app"): ("inconclusive", True),
        (None, "etl"): ("throttled", False),
        ("alice", None): ("throttled", False),
    }
    assert rows[None, "app"]["reason"] == "the metrics name the quota group as it was, and the proposed quotas split it"


def test_a_sensor_that_a_removed_quota_left_over_makes_no_row_and_no_recommendation(tmp_path: Path) -> None:
    """The pair quota went an hour ago: its sensor shows the last request once, then nothing, and the client is at 1.1 MiB/s."""
    clients: dict[Client, Shape] = {
        ("alice", "app", 1): steady(0, peaks={0: 2000}),
        ("bob", "app", 1): steady(0),
        (None, "app", 1): steady(11 * MIB // 10),
    }
    of_bob = {"user": "bob", "client-id": "app"}
    rows = verdicts(tmp_path, clients, [(APP, 20 * MIB)], [(APP, 20 * MIB), (PAIR, MIB), (of_bob, MIB)])
    assert ("bob", "app") not in rows
    assert {row["recommended"] for row in rows.values()} == {None}
    assert rows["alice", "app"]["recommended_reason"] == (
        "clients of other series may belong to this quota group, so no value is recommended"
    )


def test_a_series_of_a_group_that_the_current_quotas_do_not_have_is_never_taken_for_an_unlimited_one(tmp_path: Path) -> None:
    """All clients have the quota of their user: a series of a client-id is from before that, and whose it is is not known."""
    everyone = {"user": {"default": True}}
    clients: dict[Client, Shape] = {(None, "app", 1): BUSY}
    rows = verdicts(tmp_path, clients, [(everyone, 20 * MIB)], [(everyone, 2 * MIB)])
    assert {place: row["verdict"] for place, row in rows.items()} == {(None, "app"): "inconclusive"}
