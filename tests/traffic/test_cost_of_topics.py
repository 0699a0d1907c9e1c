"""CreatePartitions and DeleteTopics cost what other lines show of the topics; what no line shows is never taken for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.model import LeaderSpread
from reconciler.model.entity import Entity
from tests.support.command import Command, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.traffic.log_lines import line
from tests.traffic.test_request_log_kinds import ADD, CREATE, DELETE, of_api

METADATA = ("METADATA", 3)
MANIFEST = quotas(({"user": "alice"}, {"controller_mutation_rate": 20}), ({"user": "bob"}, {"controller_mutation_rate": 20}))
SHORT = cluster(prune="never", backtest={"history": {"hours": 0}})


def created(name: str, partitions: int, topic_id: str) -> dict[str, Any]:
    asked = {"name": name, "numPartitions": partitions, "assignments": []}
    return {"request": {"topics": [asked]}, "response": {"topics": [{"name": name, "topicId": topic_id, "errorCode": 0}]}}


def deleted(name: str, topic_id: str) -> dict[str, Any]:
    return {
        "request": {"topics": [{"name": name, "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}]},
        "response": {"responses": [{"name": name, "topicId": topic_id, "errorCode": 0}]},
    }


def extended(name: str, count: int) -> dict[str, Any]:
    asked = {"name": name, "count": count, "assignments": None}
    return {"request": {"topics": [asked]}, "response": {"results": [{"name": name, "errorCode": 0}]}}


def shown(**topics: int) -> dict[str, Any]:
    described = [
        {"errorCode": 0, "name": name, "topicId": f"id-{name}", "partitions": [{"partitionIndex": i} for i in range(count)]}
        for name, count in topics.items()
    ]
    return {"request": {}, "response": {"brokers": [{"nodeId": 1}, {"nodeId": 2}], "topics": described}}


def logs(work: Path, *, unknown: int = 0) -> None:
    """Alice creates, extends and deletes topics through two brokers. Bob deletes one that only an answer shows.

    ``unknown``: how many further topics Alice deletes.
    """
    first = [
        of_api(CREATE, 7, **created("a", 6, "id-a"), at="2026-11-21 13:00:00,100", correlation_id=1, forwarded=False),
        of_api(ADD, 3, **extended("a", 10), at="2026-11-21 13:00:02,100", correlation_id=2, forwarded=False),
        of_api(DELETE, 6, **deleted("b", "id-b"), principal="User:bob", at="2026-11-21 13:00:09,100", forwarded=False),
    ]
    second = [
        of_api(METADATA, 12, **shown(a=6, b=400), at="2026-11-21 13:00:01,100", principal="User:carol", forwarded=False),
        of_api(DELETE, 6, **deleted("a", "id-a"), at="2026-11-21 13:00:03,100", correlation_id=3, forwarded=False),
    ]
    second += [
        of_api(DELETE, 6, **deleted(f"u{number}", f"id-u{number}"), at="2026-11-21 13:00:04,100", correlation_id=number + 4,
               forwarded=False)
        for number in range(unknown)
    ]  # fmt: skip
    for broker, lines in ((1, first), (2, second)):
        lines.append(line(at="2026-11-21 13:00:10,000", principal="User:carol", correlation_id=90 + broker))
        folder = work / "logs" / f"broker-{broker}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kafka-request.log").write_text("\n".join(lines) + "\n", "utf-8")
    (work / "quotas.yaml").write_text(f"{MANIFEST}---\n{SHORT}", "utf-8")


def judged(command: Command, work: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    done = command("backtest", "quotas.yaml", *arguments, "--format", "json", cwd=work)
    assert done.code in {0, 3}, done.err
    rows: list[dict[str, Any]] = done.json()["verdicts"]
    return {row["bucket"]["user"]: row for row in rows if row["key"] == "controller_mutation_rate"}


def test_topics_cost_the_partitions_that_lines_of_other_brokers_show(tmp_path: Path) -> None:
    logs(tmp_path)
    rows = judged(invoke, tmp_path, "--traffic", "logs")
    # 6 to create it, 4 to extend it and 10 to delete it, in less than the burst of 11 s: 20 / 14 s.
    assert rows["alice"]["peak"] == pytest.approx(20 / 14)
    assert (rows["alice"]["verdict"], rows["alice"]["uncharged"], rows["alice"]["requests"]) == ("clear", 0, 3)
    assert (rows["bob"]["peak"], rows["bob"]["safe"] > 0) == (pytest.approx(400 / 11), True)


def test_a_group_with_a_topic_that_no_line_shows_has_no_safe_value(tmp_path: Path) -> None:
    logs(tmp_path, unknown=14)
    done = invoke("backtest", "quotas.yaml", "--traffic", "logs", cwd=tmp_path)
    words = (
        "14 mutations of topics are not counted, since no recorded line and no snapshot shows how many partitions the topic had"
    )
    assert f"1 quota group that this change touches is inconclusive: {words}." in " ".join(done.out.split())
    rows = judged(invoke, tmp_path, "--traffic", "logs")
    alice = rows["alice"]
    assert (alice["verdict"], alice["reason"], alice["uncharged"]) == ("inconclusive", words, 14)
    assert (alice["safe"], alice["recommended"]) == (None, None)
    assert rows["bob"]["uncharged"] == 0


def test_a_snapshot_shows_the_partitions_that_no_line_does(tmp_path: Path) -> None:
    logs(tmp_path, unknown=2)
    topics = {"u0": 7, "u1": 5, "a": 50, "b": 50}
    limits = {Entity.of({"user": "alice"}): {"controller_mutation_rate": 20.0}}
    (tmp_path / "now.json").write_text(snapshot(limits, leaders=LeaderSpread(partitions=((1, 4),), topics=topics)), "utf-8")
    rows = judged(invoke, tmp_path, "--traffic", "logs", "--current", "now.json")
    # Lines of the topics' own time count more than what a snapshot of another time has.
    assert (rows["alice"]["uncharged"], rows["alice"]["requests"]) == (0, 5)
    assert rows["alice"]["peak"] == pytest.approx((6 + 4 + 10 + 7 + 5) / 15, rel=0.1)
    assert rows["bob"]["peak"] == pytest.approx(400 / 11)


def test_totals_of_a_folder_have_the_cost_too(tmp_path: Path) -> None:
    logs(tmp_path, unknown=1)
    done = invoke("compact", "--traffic", "logs", "--folder", "cells", cwd=tmp_path)
    assert done.code == 0, done.err
    rows = judged(invoke, tmp_path, "--traffic", "cells")
    assert rows["alice"]["requests"] == 3
    assert {user: (row["verdict"], row["uncharged"]) for user, row in rows.items()} == {
        "alice": ("inconclusive", 1), "bob": ("possible", 0),
    }  # fmt: skip


@pytest.mark.spark
def test_spark_charges_them_as_this_process_does(tmp_path: Path, warm_command: Command) -> None:
    logs(tmp_path, unknown=2)
    limits = {Entity.of({"user": "alice"}): {"controller_mutation_rate": 10.0}}
    topics = LeaderSpread(partitions=((1, 1),), topics={"u1": 5})
    (tmp_path / "now.json").write_text(snapshot(limits, leaders=topics), "utf-8")
    known = ("--current", "now.json", "--traffic")
    here = judged(warm_command, tmp_path, *known, "logs")
    on_spark = judged(warm_command, tmp_path, *known, "logs", "--master", "local[2]")
    at_address = judged(warm_command, tmp_path, *known, f"file://{tmp_path}/logs", "--master", "local[2]")
    assert here["alice"]["uncharged"] == 1
    assert here == on_spark == at_address
