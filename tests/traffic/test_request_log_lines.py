"""Layouts, names and kinds of lines that request logs hold."""

from __future__ import annotations

import contextlib
import datetime
import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.errors import UsageError
from reconciler.traffic.traffic_files import RequestLogs
from tests.traffic.log_lines import fetch_request, fetch_response, line, produce_request, produce_response

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime.datetime(2026, 11, 21, 13, 0, 0, 123500, tzinfo=datetime.UTC)


def read(tmp_path: Path, lines: list[str], **options: Any) -> list[SimpleNamespace]:
    """The rows of these lines, in their order."""
    from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS
    from tests.support.traffic_rows import log_rows

    path = tmp_path / "kafka-request.log"
    numbered = [text.replace('"correlationId":7', f'"correlationId":{i}') for i, text in enumerate(lines)]
    path.write_bytes(("\n".join(numbered) + "\n").encode("utf-8", "surrogatepass"))
    rows = log_rows(path, also=IDENTITY_COLUMNS, **options)
    return sorted(rows, key=lambda row: -1 if row.correlation_id is None else row.correlation_id)


def micros(moment: datetime.datetime) -> int:
    return round((moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) / datetime.timedelta(microseconds=1))


def test_every_layout_of_the_time_stamp_is_read(tmp_path: Path) -> None:
    prefixes = [
        "[2026-11-21 13:00:00,123] DEBUG ",
        "[2026-11-21T13:00:00.123Z] DEBUG ",
        "[2026-11-21T18:30:00,123+05:30] DEBUG [data-plane-kafka-network-thread-1] ",
        "2026-11-21 10:00:00.123-0300 ",
        "[2026-11-21 14:00:00,123 +01:00] ",
        "[2026-11-21 13:00:00,123456] INFO ",
    ]
    rows = read(tmp_path, [line(prefix=p, suffix="" if i % 2 else " (kafka.request.logger)") for i, p in enumerate(prefixes)])
    assert [row.ts_us for row in rows] == [*[micros(NOON)] * 5, micros(NOON) + 456]


def test_local_time_is_read_in_the_zone_that_is_said(tmp_path: Path) -> None:
    lines = [line(at="2026-11-21 14:00:00,123"), line(at="2026-07-01 14:00:00,123"), line(prefix="[2026-11-21T13:00:00,123Z] ")]
    rows = read(tmp_path, lines, log_timezone="Europe/Berlin")
    summer = datetime.datetime(2026, 7, 1, 12, 0, 0, 123500, tzinfo=datetime.UTC)
    assert [row.ts_us for row in rows] == [micros(NOON), micros(summer), micros(NOON)]


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="Mars/Olympus"):
        RequestLogs().look("Mars/Olympus")


def test_a_request_is_charged_when_its_answer_was_built(tmp_path: Path) -> None:
    (row,) = read(tmp_path, [line(waited_ms=(1.25, 0.2505))])
    assert row.ts_us == micros(NOON) - 1501


def test_names_are_kept_to_the_byte(tmp_path: Path) -> None:
    names = [
        "plain", " blanks at the ends ", "tab\there", "new\nline", "line\u2028separator", 'quo"te', "back\\slash", "{brace}",
        "a:b",
        "%2F",
        "Completed request:{", '"response":""', '"requestApiKey":3,', "<default>", "größe-日本-😀", "User:alice", "on", "0123",
    ]  # fmt: skip
    rows = read(tmp_path, [line(principal=f"User:{name}", client_id=name) for name in names])
    assert [(row.status, row.user, row.client_id) for row in rows] == [("charged", name, name) for name in names]


def test_a_null_client_id_is_an_empty_one(tmp_path: Path) -> None:
    rows = read(tmp_path, [line(client_id=None), line(client_id="")])
    assert [row.client_id for row in rows] == ["", ""]
    assert rows[0].overhead == rows[1].overhead


def test_what_is_charged_and_what_is_not(tmp_path: Path) -> None:
    refused = produce_request(10, 10, transactional_id="tx")
    some, none = fetch_response(5), fetch_response()
    cases = {
        "plain produce": (line(), "charged"),
        "acks=0, whose answer is a string": (line(request=produce_request(100, acks=0), response=""), "charged"),
        "unauthorised produce": (line(response=produce_response(29)), "charged"),
        "transactional produce": (line(request=refused, response=produce_response(0, 0)), "charged"),
        "transactional produce refused in part": (line(request=refused, response=produce_response(53, 0)), "charged"),
        "transactional produce refused": (line(request=refused, response=produce_response(53, 53)), "refused-transaction"),
        "consumer": (line("FETCH", 12, request=fetch_request(replicaId=-1), response=some), "charged"),
        "newer consumer": (line("FETCH", 17, request=fetch_request(), response=some), "charged"),
        "debugging replica": (line("FETCH", 12, request=fetch_request(replicaId=-2), response=some), "charged"),
        "follower": (line("FETCH", 12, request=fetch_request(replicaId=2), response=some), "follower"),
        "newer follower": (line("FETCH", 17, request=fetch_request(replicaState={"replicaId": 2}), response=some), "follower"),
        "idle consumer": (line("FETCH", 12, request=fetch_request(), response=fetch_response()), "charged"),
        "throttled, empty": (line("FETCH", 12, request=fetch_request(), response=none, throttle_ms=9), "charged"),
        "other request": (line("METADATA", 12, request={}, response={}), "other-api"),
        "cut short": (line()[:250], "unreadable"),
        "no time": (line(prefix="DEBUG "), "unreadable"),
        "no such day": (line(at="2026-02-30 13:00:00,123"), "unreadable"),
        "no principal": (line(principal=""), "unreadable"),
        "not JSON": ("[2026-11-21 13:00:00,123] DEBUG Completed request:RequestHeader(apiKey=PRODUCE)", "unreadable"),
    }  # fmt: skip
    rows = read(tmp_path, [*(text for text, _ in cases.values()), "[2026-11-21 13:00:00,123] INFO something else", ""])
    by_number = {row.correlation_id: row.status for row in rows if row.correlation_id is not None}
    expected = {i: status for i, (_, status) in enumerate(cases.values())}
    assert {i: status for i, status in by_number.items() if status != expected[i]} == {}
    numberless = sorted(row.status for row in rows if row.correlation_id is None)
    assert numberless == sorted(status for i, status in expected.items() if i not in by_number)
    assert sum(row.status == "unreadable" for row in rows) == 5
    assert all(row.detail for row in rows if row.status == "unreadable")


def test_brokers_of_2_8_name_fetched_partitions_differently(tmp_path: Path) -> None:
    old = {
        "throttleTimeMs": 0, "errorCode": 0, "sessionId": 3,
        "responses": [{"topic": "t1", "partitionResponses": [{"abortedTransactions": None, "recordSetSizeInBytes": 171}]}],
    }  # fmt: skip
    rows = read(tmp_path, [line("FETCH", 12, request=fetch_request(), response=r) for r in (old, fetch_response(171))])
    assert [(row.records, row.overhead) for row in rows] == [(171, 59), (171, 59)]


@pytest.mark.spark
def test_rotated_and_compressed_files_are_read_whatever_their_names_hold(spark: SparkSession, tmp_path: Path) -> None:
    from reconciler.traffic.sources.log_files import find_logs
    from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS
    from reconciler.traffic.sources.on_spark import request_log_rows
    from reconciler.traffic.sources.request_log import schema

    folder = tmp_path / "logs [a] {b} *" / "broker-7"
    folder.mkdir(parents=True)
    (folder / "kafka-request.log").write_text(line(correlation_id=1) + "\n", encoding="utf-8")
    (folder / "kafka-request.log.1").write_text(line(correlation_id=2) + "\r\n", encoding="utf-8")
    with gzip.open(folder / "kafka-request.log.2026-11-21-13.gz", "wt", encoding="utf-8") as stream:
        stream.write(line(correlation_id=3))

    with contextlib.closing(request_log_rows(spark, find_logs([str(folder)]), also=IDENTITY_COLUMNS)) as kept:
        columns = schema(IDENTITY_COLUMNS)
        rows = kept.share_results(lambda batches: (batch.cast(columns) for batch in batches), columns).to_pylist()

    assert {(row["broker"], row["correlation_id"], row["status"]) for row in rows} == {(7, n, "charged") for n in (1, 2, 3)}
