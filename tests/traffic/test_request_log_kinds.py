"""What else request logs tell beside bytes: time of threads, topics, and times that the clocks make unclear."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.traffic.conftest import RECORDINGS
from tests.traffic.log_lines import fetch_request, fetch_response, line, produce_request

CREATE, DELETE, ADD = ("CREATE_TOPICS", 19), ("DELETE_TOPICS", 20), ("CREATE_PARTITIONS", 37)


def of_api(api: tuple[str, int], version: int, request: Any, response: Any, *, forwarded: bool = True, **more: Any) -> str:
    """A line of any kind of request; a broker before 4.0 wrote it."""
    text = line("METADATA", version, request=request, response=response, connection="10.0.0.5:9092-10.0.0.9:53412-2", **more)
    text = text.replace('"requestApiKey":3', f'"requestApiKey":{api[1]}').replace('"METADATA"', f'"{api[0]}"')
    return text.replace('"isForwarded":false', f'"isForwarded":{json.dumps(forwarded)}')


def read(tmp_path: Path, lines: list[str], **options: Any) -> dict[int, list[SimpleNamespace]]:
    """Rows by the number of their line."""
    from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS
    from reconciler.traffic.sources.request_log import LOG_KINDS
    from tests.support.traffic_rows import log_rows

    path = tmp_path / "kafka-request.log"
    numbered = [text.replace('"correlationId":7', f'"correlationId":{i}') for i, text in enumerate(lines)]
    path.write_text("\n".join(numbered) + "\n", encoding="utf-8")
    rows = log_rows(path, broker=4, also=IDENTITY_COLUMNS, kinds=options.pop("kinds", LOG_KINDS), **options)
    found: dict[int, list[SimpleNamespace]] = {}
    for row in sorted(rows, key=lambda row: (not row.begins_line, row.part or 0)):
        found.setdefault(row.correlation_id, []).append(row)
    return found


def test_every_request_is_charged_its_thread_time_but_those_that_kafka_exempts(tmp_path: Path) -> None:
    time = ("charged", "request", 2_900_000)
    cases = {
        "metadata": (of_api(("METADATA", 3), 12, {}, {}, forwarded=False), [time]),
        "produce": (line(), [("charged", "produce", 100), time]),
        "acks=0": (line(request=produce_request(100, acks=0), response=""), [("charged", "produce", 100)]),
        "consumer": (
            line("FETCH", 12, request=fetch_request(replicaId=-1), response=fetch_response(5)),
            [("charged", "fetch", 5), time],
        ),
        "follower": (
            line("FETCH", 12, request=fetch_request(replicaId=2), response=fetch_response(5)),
            [("follower", "fetch", 5)],
        ),
        "throttled, empty": (
            line("FETCH", 12, request=fetch_request(), response=fetch_response(), throttle_ms=9),
            [("charged", "fetch", 0), time],
        ),
        "share fetch": (
            of_api(("SHARE_FETCH", 78), 1, {}, {"responses": [{"partitions": [{"records": ""}]}]}),
            [("share-fetch", "fetch", 0), time],
        ),
        "markers": (of_api(("WRITE_TXN_MARKERS", 27), 1, {}, {}), [("exempt", "request", 2_900_000)]),
        "quorum, on the broker": (of_api(("DESCRIBE_QUORUM", 55), 1, {}, {}, forwarded=False), [time]),
        "quorum, on the controller": (of_api(("DESCRIBE_QUORUM", 55), 1, {}, {}), [("exempt", "request", 2_900_000)]),
        "answer with a name of ours": (
            of_api(("METADATA", 3), 12, {}, {"topics": [{"name": '","connection":"x'}]}, forwarded=False),
            [time],
        ),
    }  # fmt: skip
    found = read(tmp_path, [text for text, _ in cases.values()])
    told = {name: [(r.status, r.kind, r.records) for r in found[i]] for i, name in enumerate(cases)}
    assert told == {name: expected for name, (_, expected) in cases.items()}
    assert all(sum(row.begins_line for row in rows) == 1 for rows in found.values())


def test_topics_are_charged_one_by_one_as_the_controller_does(tmp_path: Path) -> None:
    def topic(name: str, partitions: int, assigned: int = 0) -> dict[str, Any]:
        return {"name": name, "numPartitions": partitions, "assignments": [{"partitionIndex": i} for i in range(assigned)]}

    def answer(name: str, code: int = 0, partitions: int | None = None) -> dict[str, Any]:
        return {"name": name, "errorCode": code} | ({} if partitions is None else {"numPartitions": partitions})

    asked = [topic("a", 3), topic("b", -1), topic("c", -1, assigned=2), topic("d", 9), topic("e", 9), topic("f", 4)]
    answers = [answer("f", 7), answer("e", 36), answer("d", 89), answer("c"), answer("b", 0, 6), answer("a")]
    lines = [
        of_api(CREATE, 7, {"topics": asked, "validateOnly": False}, {"topics": answers}),
        of_api(CREATE, 4, {"topics": [topic("a", 3), topic("b", -1)]}, {"topics": [answer("a"), answer("b")]}),
        of_api(CREATE, 5, {"topics": [topic("a", 3)], "validateOnly": True}, {"topics": [answer("a")]}),
        of_api(CREATE, 5, {"topics": [topic("a", 3)], "validateOnly": True}, {"topics": [answer("a")]}, forwarded=False),
        of_api(
            ADD, 3, {"topics": [{"name": "a", "count": 9, "assignments": [{}, {}]}, {"name": "b", "count": 9}]},
            {"results": [answer("a"), answer("b")]},
        ),
        of_api(DELETE, 4, {"topicNames": ["a", "b"]}, {"responses": [answer("a"), answer("b", 3)]}),
        of_api(DELETE, 6, {"topics": [{"name": None, "topicId": "x1"}]}, {"responses": [{"topicId": "x1", "errorCode": 0}]}),
    ]  # fmt: skip
    found = read(tmp_path, lines)
    told = [[(r.status, r.records, r.strict, r.part) for r in found[i] if r.kind == "mutation"] for i in range(len(lines))]
    assert told == [
        [
            ("charged", 3, True, 0),
            ("charged", 6, True, 1),
            ("charged", 2, True, 2),
            ("charged", 0, True, 3),
            ("failed-mutation", 9, True, 4),
            ("charged", 4, True, 5),
        ],
        [("charged", 3, False, 0), ("unknown-partitions", 0, False, 1)],
        [("charged", 3, False, 0)],
        [("validate-only", 3, False, 0)],
        [("charged", 2, True, 0), ("unknown-partitions", 0, True, 1)],
        [("unknown-partitions", 0, False, 0), ("failed-mutation", 0, False, 1)],
        [("unknown-partitions", 0, True, 0)],
    ]
    assert {r.broker for r in found[3] if r.kind == "mutation"} == {-1}, "a broker's own line: the controller charged it"
    assert {r.broker for r in found[3] if r.kind == "request"} == {4}
    assert len({r.tie for r in found[0]}) == 1


def test_a_recording_tells_a_topic_once_by_the_controller_and_once_by_the_broker() -> None:
    from reconciler.traffic.sources.request_log import LOG_KINDS
    from tests.support.traffic_rows import log_rows

    log = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"
    rows = log_rows(log, kinds=LOG_KINDS)
    topics = [row for row in rows if (row.kind, row.user) == ("mutation", "admin")]
    assert sorted((row.status, row.broker, row.records, row.strict) for row in topics) == [
        ("charged", -1, 3, True),
        ("charged", 1, 3, True),
    ]
    assert not [row for row in rows if row.status == "unreadable"]
    assert sum(row.begins_line for row in rows) == 727


def test_an_hour_that_is_there_twice_or_never_is_not_judged(tmp_path: Path) -> None:
    moments = {
        "[2026-10-25 01:59:59,999] ": "charged",
        "[2026-10-25 02:00:00,000] ": "unclear-time",
        "[2026-10-25 02:59:59,999] ": "unclear-time",
        "[2026-10-25 03:00:00,000] ": "charged",
        "[2026-03-29 02:30:00,000] ": "unclear-time",
        "2026-10-25T02:30:00.000+01:00 ": "charged",
        "2026-10-25 02:30:00 ": "unclear-time",
    }
    lines = [line(prefix=prefix) for prefix in moments]
    berlin = read(tmp_path, lines, log_timezone="Europe/Berlin", kinds=())
    assert [berlin[i][0].status for i in range(len(lines))] == list(moments.values())
    utc = read(tmp_path, lines, kinds=())
    assert {rows[0].status for rows in utc.values()} == {"charged"}
