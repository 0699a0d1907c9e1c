"""Request log lines parsed without Spark: moments, sizes, layouts and parts of files."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.sources.log_files import BrokerFiles, LogPart, log_parts
from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS
from reconciler.traffic.sources.request_log import LOG_KINDS, parse_lines
from tests.traffic.log_lines import fetch_request, fetch_response, line, produce_request


def rows(*lines: str | bytes, **options: Any) -> list[dict[str, Any]]:
    raw = [text.encode() if isinstance(text, str) else text for text in lines]
    arguments: dict[str, Any] = {"broker": 1, "file": "file:///log", "also": IDENTITY_COLUMNS} | options
    return [row for batch in parse_lines(raw, **arguments) for row in batch.to_pylist()]


@pytest.mark.parametrize("year", ["1969", "1970", "1999", "2100", "2120", "9999", "0000"])
def test_a_time_outside_of_this_century_makes_a_line_unreadable(year: str) -> None:
    (row,) = rows(line(at=f"{year}-06-01 13:00:00,000"))
    assert (row["status"], row["ts_us"], row["client_id"]) == ("unreadable", None, None)
    assert year in row["detail"]


@pytest.mark.parametrize("size", [2**31, 2**53, 2**63 - 1, 2**63, 10**30, -1])
def test_a_size_that_no_broker_counts_makes_a_line_unreadable(size: int) -> None:
    found = rows(
        line(request=produce_request(size)),
        line(request=produce_request(5, size)),
        line("FETCH", 12, request=fetch_request(), response=fetch_response(size)),
        line(request=produce_request(2**31 - 1)),
    )
    assert [row["status"] for row in found] == ["unreadable", "unreadable", "unreadable", "charged"]


@pytest.mark.parametrize("field", ["responseQueueTimeMs", "sendTimeMs", "localTimeMs", "remoteTimeMs", "throttleTimeMs"])
@pytest.mark.parametrize("value", ["1e308", "-1e308", "9223372036854775807", "1e11"])
def test_a_time_that_no_request_takes_stops_nothing(field: str, value: str) -> None:
    before, after = line().rsplit(f'"{field}":', 1)
    texts = [f'{before}"{field}":{one}{after.lstrip("0123456789.")}' for one in ("5", value)]
    statuses = [rows(text, kinds=LOG_KINDS)[0]["status"] for text in texts]
    assert statuses == ["charged", "unreadable"]


@pytest.mark.bulk
def test_junk_in_a_line_is_unreadable_and_never_an_error() -> None:
    chance = random.Random(20261122)
    good = line(client_id="größe").encode()
    junk = [bytearray(good) for _ in range(3_000)]
    for damaged in junk:
        for _ in range(chance.choice([1, 1, 2, 8])):
            place = chance.randrange(len(damaged))
            damaged[place : place + chance.choice([0, 1, 1, 30])] = chance.randbytes(chance.choice([0, 1, 3])).replace(b"\n", b"")
    for part in (junk[at : at + 50] for at in range(0, len(junk), 50)):
        for row in rows(*map(bytes, part), kinds=LOG_KINDS):
            assert row["status"] in ("charged", "unreadable", "other-api", "exempt", "unclear-time")
    (row,) = rows(b"Completed request:" + b"[" * 200_000)
    assert row["status"] == "unreadable"


def test_braces_behind_the_document_are_not_part_of_it() -> None:
    found = rows(line(suffix=" (kafka.request.logger) {user=}"), line(suffix=" }"), line(suffix=""))
    assert [row["status"] for row in found] == ["charged"] * 3


def test_a_fetch_answer_is_charged_with_its_tagged_fields() -> None:
    epoch, leader = {"epoch": 3, "endOffset": 9}, {"leaderId": 1, "leaderEpoch": 2}
    plain = fetch_response(100)
    tagged = json.loads(json.dumps(plain))
    tagged["responses"][0]["partitions"][0] |= {"divergingEpoch": epoch, "currentLeader": leader, "snapshotId": epoch}
    for version, more in ((11, 0), (12, 41), (18, 41)):
        before, after = rows(*(line("FETCH", version, request=fetch_request(), response=r) for r in (plain, tagged)))
        assert after["overhead"] - before["overhead"] == more


def test_every_line_is_in_one_part_wherever_a_file_is_cut(tmp_path: Path) -> None:
    chance = random.Random(4)
    lines = [bytes([65 + chance.randrange(26)]) * chance.randrange(0, 9) + b"\n" for _ in range(60)] + [b"no end"]
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"".join(lines))
    size = path.stat().st_size
    for step in (1, 2, 3, 7, 50, size, size + 1):
        parts = [LogPart(str(path), 1, begin, min(begin + step, size)) for begin in range(0, size, step)]
        assert [text for part in parts for text in part.lines()] == lines, step


def test_large_files_are_read_in_parts_and_compressed_ones_whole(tmp_path: Path) -> None:
    plain, zipped, empty = tmp_path / "a.log", tmp_path / "b.log.gz", tmp_path / "c.log"
    plain.write_bytes((line() + "\n").encode() * 12_000)
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    empty.touch()
    logs = [BrokerFiles(broker=3, files=(str(plain), str(zipped), str(empty)))]
    parts = log_parts(logs, 8)
    assert len([part for part in parts if part.path == str(plain)]) > 1
    assert [part.size for part in parts if part.path == str(zipped)] == [zipped.stat().st_size]
    assert sum(1 for part in parts for _ in part.lines()) == 24_000
    zipped.write_bytes(zipped.read_bytes()[:-100])
    with pytest.raises(TrafficError, match="is damaged or cut short: take it out"):
        list(parts[-1].lines())


def test_ties_depend_on_connection_and_number_alone() -> None:
    texts = [line(correlation_id=n, connection=f"10.0.0.5:9092-10.0.0.9:{port}-2-0") for n in range(300) for port in (1, 2)]
    together = {(row["connection"], row["correlation_id"]): row["tie"] for row in rows(*texts)}
    assert len(set(together.values())) == 600
    apart = {(row["connection"], row["correlation_id"]): row["tie"] for text in texts[::-7] for row in rows(text, broker=2)}
    assert len(apart) == 86
    assert apart.items() <= together.items()
