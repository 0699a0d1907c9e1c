"""Real recordings, replayed under the quotas that held: predictions against the broker, determinism, independent oracles."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.model import BacktestReport, Verdict
from reconciler.model.entity import Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.kernels.sampled_rate import SampledRate, throttle_ms
from tests.support.local_traffic import open_anywhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Quotas = dict[Entity, dict[str, float]]
Replay = tuple[BacktestReport, list[dict[str, Any]]]
KEYS = {"PRODUCE": "producer_byte_rate", "FETCH": "consumer_byte_rate"}


def replayed(
    log: Path,
    proposed: Mapping[Entity, Mapping[str, float]],
    current: Mapping[Entity, Mapping[str, float]] | None = None,
    *,
    spark: SparkSession | None = None,
) -> Replay:
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic

    question = BacktestRequest(current=current, proposed=proposed, declared=proposed, exact=True)
    recorded = open_anywhere(find_traffic([f"1={log}"]), spark, requests=True)
    run = Backtest(recorded, question)
    try:
        return run.report(), [json.loads(text) for text in run.request_lines()]
    finally:
        recorded.close()


@pytest.fixture(scope="module")
def replays() -> dict[Path, Replay]:
    """Of recordings under their own quotas, which several tests compare with something else."""
    return {}


@pytest.fixture
def as_recorded(recording: tuple[Path, Quotas], replays: dict[Path, Replay]) -> Replay:
    log, quotas = recording
    if log not in replays:
        replays[log] = replayed(log, quotas, quotas)
    return replays[log]


def by_bucket(rows: list[dict[str, Any]], quotas: Quotas) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        bucket = Resolver(quotas, row["key"]).resolve(row["user"], row["client_id"]).bucket
        found[row["key"], bucket.user, bucket.client_id].append(row)
    return found


def test_predicted_throttles_are_those_that_the_broker_recorded(as_recorded: Replay, recording: tuple[Path, Quotas]) -> None:
    _, quotas = recording
    _, rows = as_recorded
    produced = [row for row in rows if row["key"] == "producer_byte_rate"]
    same = [row for row in produced if (row["throttle_ms"] > 0) == (row["recorded_throttle_ms"] > 0)]
    assert sum(row["recorded_throttle_ms"] > 0 for row in produced) >= 20, "the recording shows throttling at all"
    assert len(same) >= 0.99 * len(produced)
    errors = sorted(abs(row["throttle_ms"] - row["recorded_throttle_ms"]) for row in same)
    assert errors[len(errors) * 9 // 10] <= 60
    for bucket, mine in by_bucket(produced, quotas).items():
        recorded = sum(row["recorded_throttle_ms"] > 0 for row in mine)
        assert sum(row["throttle_ms"] > 0 for row in mine) == pytest.approx(recorded, abs=max(1, recorded // 20)), bucket


def test_every_request_line_equals_the_plain_model(recording: tuple[Path, Quotas]) -> None:
    """The model sees what a second parser and a second assembly of sizes make of the log."""
    log, quotas = recording
    _, rows = replayed(log, quotas)
    sensors: dict[object, SampledRate] = defaultdict(SampledRate)
    expected = []
    for at_us, key, user, client, connection, correlation, amount in sorted(plainly_parsed(log)):
        resolved = Resolver(quotas, key).resolve(user, client)
        limit = resolved.value
        sensor = sensors[key, resolved.bucket]
        sensor.record(amount, at_us // 1000)
        rate, width = sensor.measure(at_us // 1000)
        throttle = 0 if limit is None else throttle_ms(rate, width, limit)
        if key == "consumer_byte_rate" and throttle > 0:
            sensor.record(-amount, at_us // 1000)
        expected.append((key, connection, correlation, user, client, amount, limit, throttle, rate))
    got = [
        (
            r["key"],
            r["connection"],
            r["correlation_id"],
            r["user"],
            r["client_id"],
            r["amount"],
            r["limit"],
            r["throttle_ms"],
            r["rate"],
        )
        for r in rows
    ]
    assert sorted(got, key=repr) == sorted(expected, key=repr)
    assert [r["ts"] for r in rows] == sorted(r["ts"] for r in rows)


def plainly_parsed(log: Path) -> list[tuple[int, str, str, str, str, int, int]]:
    """Charged requests by the json module and by hand-written sums for the versions in the recordings (flexible ones)."""
    from datetime import UTC, datetime

    found = []
    with gzip.open(log, "rt", encoding="utf-8") as stream:
        for text in stream:
            match = re.match(r"\[(.{23})\] DEBUG Completed request:(.*) \(kafka\.request\.logger\)$", text)
            if not match:
                continue
            document = json.loads(match[2])
            header = document["requestHeader"]
            key = KEYS.get(header["requestApiKeyName"])
            if key is None:
                continue
            stamp = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
            waited = round((document["responseQueueTimeMs"] + document["sendTimeMs"]) * 1000)
            at_us = round(stamp.timestamp() * 1000) * 1000 + 500 - waited
            user = document["principal"].split(":", 1)[1]
            amount = (produced if key.startswith("producer") else fetched)(document)
            if is_empty_throttled(document):
                # A broker takes back what it counted.
                amount = 0
            found.append((at_us, key, user, header["clientId"], document["connection"], header["correlationId"], amount))
    return found


def is_empty_throttled(document: dict[str, Any]) -> bool:
    return (
        document["requestHeader"]["requestApiKey"] == 1
        and document["throttleTimeMs"] > 0
        and not document["response"]["responses"]
    )


def varint(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def name_size(topic: dict[str, Any], field: str) -> int:
    return 16 if field not in topic else varint(len(topic[field].encode()) + 1) + len(topic[field].encode())


def produced(document: dict[str, Any]) -> int:
    total = 11 + len(document["requestHeader"]["clientId"].encode()) + 8 + varint(len(document["request"]["topicData"]) + 1)
    for topic in document["request"]["topicData"]:
        sizes = [p["recordsSizeInBytes"] for p in topic["partitionData"]]
        total += name_size(topic, "name") + varint(len(sizes) + 1) + 1 + sum(5 + varint(s + 1) + s for s in sizes)
    return total


def fetched(document: dict[str, Any]) -> int:
    total = 15 + varint(len(document["response"]["responses"]) + 1)
    for topic in document["response"]["responses"]:
        sizes = [p["recordsSizeInBytes"] for p in topic["partitions"]]
        total += name_size(topic, "topic") + varint(len(sizes) + 1) + 1 + sum(36 + varint(s + 1) + s for s in sizes)
    return total


def test_a_limit_as_recommended_throttles_nobody(as_recorded: Replay, recording: tuple[Path, Quotas]) -> None:
    log, quotas = recording
    report, rows = as_recorded
    raised = {entity: dict(values) for entity, values in quotas.items()}
    for verdict in report.verdicts:
        if verdict.limits.entity is not None:
            before = raised[verdict.limits.entity][verdict.key]
            raised[verdict.limits.entity][verdict.key] = max(before, verdict.advice.recommended or 0.0)
    assert any(row["throttle_ms"] for row in rows)
    better, rows = replayed(log, raised, quotas)
    assert [row for row in rows if row["throttle_ms"]] == []
    # Whom the old limits throttled is not known to need no more.
    assert {(v.verdict, v.recorded.censored) for v in better.verdicts} == {(Verdict.CLEAR, False), (Verdict.INCONCLUSIVE, True)}
    assert {finding.id for finding in better.findings} == {"history-incomplete"}
