"""What a request log does not show of extended and deleted topics is never taken for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command, invoke
from tests.support.manifests import cluster, quotas
from tests.traffic.log_lines import line
from tests.traffic.test_request_log_kinds import CREATE, DELETE, of_api

MANIFEST = quotas(({"user": "alice"}, {"controller_mutation_rate": 20}), ({"user": "bob"}, {"controller_mutation_rate": 20}))
SHORT = cluster(prune="never", backtest={"history": {"hours": 0}})


def created(name: str, partitions: int) -> dict[str, Any]:
    asked = {"name": name, "numPartitions": partitions, "assignments": []}
    return {"request": {"topics": [asked]}, "response": {"topics": [{"name": name, "topicId": f"id-{name}", "errorCode": 0}]}}


def deleted(name: str) -> dict[str, Any]:
    return {
        "request": {"topics": [{"name": name, "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}]},
        "response": {"responses": [{"name": name, "topicId": f"id-{name}", "errorCode": 0}]},
    }


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Alice and Bob create a topic each, and Alice deletes two."""
    at = "2026-11-21 13:00:00,100"
    lines = [
        of_api(CREATE, 7, **created("a", 6), at=at, forwarded=False, correlation_id=1),
        of_api(CREATE, 7, **created("b", 400), at=at, forwarded=False, principal="User:bob"),
        *(
            of_api(DELETE, 6, **deleted(name), at=at, forwarded=False, correlation_id=number)
            for number, name in enumerate(("x", "y"), start=2)
        ),
        line(at="2026-11-21 13:00:10,000", principal="User:carol", correlation_id=9),
    ]
    (tmp_path / "kafka-request.log").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "quotas.yaml").write_text(f"{MANIFEST}---\n{SHORT}", "utf-8")
    return tmp_path


def judged(command: Command, work: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    done = command("backtest", "quotas.yaml", *arguments, "--format", "json", cwd=work)
    assert done.code in {0, 3}, done.err
    rows: list[dict[str, Any]] = done.json()["verdicts"]
    return {row["bucket"]["user"]: row for row in rows if row["key"] == "controller_mutation_rate"}


def test_a_group_with_a_deleted_topic_has_no_safe_value(work: Path) -> None:
    done = invoke("backtest", "quotas.yaml", "--traffic", "kafka-request.log", cwd=work)
    words = "2 mutations of topics are not counted, since a request log does not show how many partitions the topic had"
    assert f"1 quota group that this change touches is inconclusive: {words}." in " ".join(done.out.split())
    rows = judged(invoke, work, "--traffic", "kafka-request.log")
    alice, bob = rows["alice"], rows["bob"]
    assert (alice["verdict"], alice["reason"], alice["uncharged"]) == ("inconclusive", words, 2)
    assert (alice["safe"], alice["recommended"], alice["requests"]) == (None, None, 1)
    assert (bob["uncharged"], bob["peak"], bob["safe"] > 0) == (0, pytest.approx(400 / 11), True)


def test_totals_of_a_folder_lack_them_too(work: Path) -> None:
    done = invoke("compact", "--traffic", "kafka-request.log", "--folder", "cells", cwd=work)
    assert done.code == 0, done.err
    rows = judged(invoke, work, "--traffic", "cells")
    assert {user: (row["verdict"], row["uncharged"]) for user, row in rows.items()} == {
        "alice": ("inconclusive", 2), "bob": ("possible", 0),
    }  # fmt: skip


@pytest.mark.spark
def test_spark_judges_them_as_this_process_does(work: Path, warm_command: Command) -> None:
    here = judged(warm_command, work, "--traffic", "kafka-request.log")
    on_spark = judged(warm_command, work, "--traffic", "kafka-request.log", "--master", "local[2]")
    in_shards = judged(warm_command, work, "--traffic", "kafka-request.log", "--master", "local[2]", "--out", "parquet=verdicts")
    assert here["alice"]["uncharged"] == 2
    assert here == on_spark
    assert [(row["peak"], row["verdict"], row["uncharged"]) for row in in_shards.values()] == [
        (row["peak"], row["verdict"], row["uncharged"]) for row in here.values()
    ]
