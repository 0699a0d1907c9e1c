"""What request logs show of themselves: lines that are there twice, brokers that are missing, clients that were held back."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.errors import TrafficError
from reconciler.model.entity import Entity
from tests.support.local_traffic import open_anywhere
from tests.traffic.log_lines import line, produce_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.model import BacktestReport

LIMIT = 10_000.0
START = datetime.datetime(2026, 11, 21, 13)


def requests(count: int, *, throttle_ms: int = 0, size: int = 6_000) -> Iterator[str]:
    """One a second of alice."""
    for number in range(count):
        at = (START + datetime.timedelta(seconds=number)).strftime("%Y-%m-%d %H:%M:%S,123")
        yield line(at=at, correlation_id=number, request=produce_request(size), throttle_ms=throttle_ms)


def metadata(*brokers: int) -> str:
    listed = [{"nodeId": broker, "host": "h]", "port": 9092, "rack": None} for broker in brokers]
    return line("METADATA", 12, request={}, response={"brokers": listed, "clusterId": "c", "topics": []}, correlation_id=9_999)


def write(folder: Path, *lines: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kafka-request.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def report(
    *paths: Path | str, exact: bool = False, brokers: tuple[int, ...] = (), spark: SparkSession | None = None, **options: Any
) -> BacktestReport:
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic

    quotas = {Entity.of({"user": "alice"}): {"producer_byte_rate": LIMIT}}
    found = open_anywhere(find_traffic([str(path) for path in paths]), spark, **options)
    try:
        question = BacktestRequest(current={}, proposed=quotas, declared=quotas, exact=exact, brokers=brokers)
        return Backtest(found, question).report()
    finally:
        found.close()


@pytest.mark.parametrize("exact", [False, True])
def test_lines_that_are_there_twice_are_counted_once(tmp_path: Path, *, exact: bool) -> None:
    lines = list(requests(60))
    once = report(write(tmp_path / "once" / "broker-1", *lines), exact=exact)
    # The whole log under a second name, and half of it once more at the end of the first.
    folder = write(tmp_path / "twice" / "broker-1", *lines, *lines[30:])
    (folder / "kafka-request.log.1").write_text("\n".join(lines), encoding="utf-8")
    twice = report(folder, exact=exact)
    assert [one.verdict for one in once.verdicts] == ["clear"]
    assert twice.verdicts == once.verdicts
    assert (twice.provenance.requests, dict(twice.provenance.not_charged)) == (60, {"duplicate": 90})
    assert any(
        text.startswith("90 lines have the connection, number and time of another") for text in twice.provenance.assumptions
    )


def test_lines_of_another_broker_are_counted_once(tmp_path: Path) -> None:
    from reconciler.traffic.kinds import Kind

    lines, own = list(requests(30)), line(correlation_id=99)
    found = report(
        write(tmp_path / "broker-1", *lines), write(tmp_path / "broker-2", *lines, own), kinds=(Kind.PRODUCE, Kind.REQUEST)
    )
    assert [(one.broker, one.requests) for one in found.provenance.coverage] == [(1, 60), (2, 2)]
    assert dict(found.provenance.not_charged) == {"duplicate": 60}
    with pytest.raises(TrafficError, match="every line that is given for broker 2 is also given for another broker"):
        report(write(tmp_path / "broker-1", *lines), write(tmp_path / "broker-2", *lines))


def test_requests_of_one_moment_on_other_connections_are_no_copies(tmp_path: Path) -> None:
    lines = [line(connection=f"10.0.0.5:9092-10.0.0.9:{port}-2-0", correlation_id=n) for port in (1, 2) for n in range(20)]
    assert report(write(tmp_path / "broker-1", *lines)).provenance.requests == 40


def test_a_broker_that_answers_name_and_that_has_no_log_is_missed(tmp_path: Path) -> None:
    lines = list(requests(60))
    alone = report(write(tmp_path / "a" / "broker-1", *lines, metadata(1, 2, 3), metadata(1, 3)))
    assert [one.verdict for one in alone.verdicts] == ["inconclusive"]
    (found,) = [one for one in alone.findings if one.id == "history-incomplete"]
    assert (
        "recorded answers name 3 brokers (1, 2, 3), and traffic of 1 is given (1): give the traffic of all brokers"
        in found.message
    )
    whole = report(write(tmp_path / "b" / "broker-7", *lines, metadata(1)))
    assert [one.verdict for one in whole.verdicts] == ["clear"], "which number a log's broker has may not be known"


def test_a_broker_of_the_cluster_that_has_no_log_is_missed(tmp_path: Path) -> None:
    logs = write(tmp_path / "broker-1", *requests(60))
    alone = report(logs, brokers=(1, 2, 3))
    assert [one.verdict for one in alone.verdicts] == ["inconclusive"]
    (found,) = [one for one in alone.findings if one.id == "history-incomplete"]
    assert "the cluster has 3 brokers (1, 2, 3), and traffic of 1 is given (1)" in found.message
    assert [one.verdict for one in report(logs, brokers=(1,)).verdicts] == ["clear"]


def spread(count: int, *, brokers: int, keep: int = 1) -> dict[int, list[str]]:
    """Requests of one Java client to several brokers in turn, which it numbers in one sequence; every ``keep``-th line of all."""
    logs: dict[int, list[str]] = {broker: [] for broker in range(1, brokers + 1)}
    for number in range(0, count, keep):
        at = (START + datetime.timedelta(milliseconds=100 * number)).strftime("%Y-%m-%d %H:%M:%S,123")
        broker = number % brokers + 1
        connection = f"10.0.0.{broker}:9092-10.0.0.9:{4000 + broker}-2-0"
        logs[broker].append(line(at=at, correlation_id=number, connection=connection, request=produce_request(10)))
    return logs


def written(folder: Path, logs: dict[int, list[str]]) -> list[Path]:
    return [write(folder / f"broker-{broker}", *lines) for broker, lines in logs.items()]


@pytest.mark.spark
@pytest.mark.parametrize("here", [True, False])
def test_a_sample_of_the_lines_clears_nobody(spark: SparkSession, tmp_path: Path, *, here: bool) -> None:
    options: dict[str, Any] = {"spark": None if here else spark}
    whole = report(*written(tmp_path / "whole", spread(600, brokers=3)), **options)
    assert {one.verdict for one in whole.verdicts} == {"clear"}
    assert whole.provenance.expected.request_step == 1
    sample = report(*written(tmp_path / "sample", spread(20_000, brokers=3, keep=50)), **options)
    assert sample.provenance.expected.request_step == 50
    assert {one.verdict for one in sample.verdicts} == {"inconclusive"}
    assert "usually 50 correlation ids apart, so more than half of the lines are missing" in str(sample.verdicts[0].reason)


def test_few_requests_and_many_short_connections_do_not_look_like_a_sample(tmp_path: Path) -> None:
    few = report(*written(tmp_path / "few", spread(5_000, brokers=1, keep=100)))
    assert (few.provenance.expected.request_step, {one.verdict for one in few.verdicts}) == (None, {"clear"})
    short = [
        line(
            connection=f"10.0.0.5:9092-10.0.0.9:{port}-2-0", correlation_id=n, client_id="short", at=f"2026-11-21 13:00:{n:02},1"
        )
        for port in range(3000, 3060)
        for n in range(3)
    ]
    both = report(write(tmp_path / "both" / "broker-1", *requests(200), *short))
    assert (both.provenance.expected.request_step, {one.verdict for one in both.verdicts}) == (1, {"clear"})


def test_a_client_that_was_throttled_all_the_time_is_not_clear(tmp_path: Path) -> None:
    held_back = report(write(tmp_path / "a" / "broker-1", *requests(60, throttle_ms=900)))
    assert [(one.verdict, one.recorded.throttled) for one in held_back.verdicts] == [("inconclusive", 60)]
    assert "quotas throttled 60 of 60 requests of these clients when they were recorded" in str(held_back.verdicts[0].reason)
    mixed = [*requests(60)][:59] + [*requests(60, throttle_ms=5)][59:]
    assert [one.verdict for one in report(write(tmp_path / "b" / "broker-1", *mixed)).verdicts] == ["inconclusive"]
    over = report(write(tmp_path / "c" / "broker-1", *requests(60, throttle_ms=900, size=50_000)))
    assert [one.verdict for one in over.verdicts] == ["throttled"], "what is seen to be throttled stays so"


def test_names_of_brokers_come_from_answers_alone() -> None:
    from reconciler.traffic.sources.log_evidence import names_of_cluster

    raw = metadata(3, 1).encode()
    assert names_of_cluster(3, raw)[1] == "1,3"
    assert (
        names_of_cluster(3, line("METADATA", client_id='"brokers":[{"nodeId":5}]', request={}, response={}).encode())[1] is None
    )
    described = json.dumps({"brokers": [{"brokerId": 4, "host": "h"}]}, separators=(",", ":"))
    assert names_of_cluster(60, described.encode())[1] == "4"
