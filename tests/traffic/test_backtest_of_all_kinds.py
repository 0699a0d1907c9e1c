"""Request time, mutations and connections through the whole backtest, against Kafka's classes event by event."""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from reconciler.model import BacktestReport, BucketVerdict, Verdict
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Severity
from tests.support.all_kinds import ALICE, OLD, OPS, START_MS, Row, rows, write
from tests.support.kafka_quota_classes import AddressQuota, RequestQuota, Tokens
from tests.support.local_traffic import open_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic.request_traffic import TrafficSource
    from reconciler.traffic.sources.parquet_parts import Part

EVERYBODY = Entity.of({"user": DEFAULT})
ADDRESS, ANY_ADDRESS, LOOPBACK = (Entity.of({"ip": name}) for name in ("10.0.0.7", DEFAULT, "::1"))
ZOE, SOMEWHERE = Entity.of({"user": "zoe"}), Entity.of({"ip": "10.9.9.9"})
CURRENT = {
    EVERYBODY: {"request_percentage": 60.0, "controller_mutation_rate": 100.0},
    ANY_ADDRESS: {"connection_creation_rate": 50.0},
}
PROPOSED = {
    EVERYBODY: {"request_percentage": 25.0, "controller_mutation_rate": 10.0},
    ANY_ADDRESS: {"connection_creation_rate": 50.0},
    ADDRESS: {"connection_creation_rate": 4.0},
    LOOPBACK: {"connection_creation_rate": 1.0},
    ZOE: {"request_percentage": 5.0, "controller_mutation_rate": 5.0},
    SOMEWHERE: {"connection_creation_rate": 9.0},
}
HISTORY = rows()


def of(kind: str, who: tuple[str, str] | str) -> list[Row]:
    return sorted((r for r in HISTORY if (r.kind, r.who) == (kind, who)), key=lambda r: (r.at_ms, r.tie or 0, r.part or 0))


def held_mutations(who: tuple[str, str], limit: float) -> tuple[list[bool], list[bool]]:
    """What is delayed or refused, and what is refused."""
    tokens = Tokens(limit, 11, 1000)
    found = [(tokens.strict if r.strict else tokens.permissive)(r.amount, START_MS + r.at_ms) for r in of("mutation", who)]
    return [not admitted or throttle > 0 for admitted, throttle in found], [not admitted for admitted, _ in found]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "all.parquet"
    write(path, HISTORY)
    return path


def opened(path: Path) -> TrafficSource:
    from reconciler.traffic import find_traffic

    return open_here(find_traffic([str(path)]))


def report_of(recorded: TrafficSource, *, exact: bool = False, current: bool = True) -> BacktestReport:
    from reconciler.traffic import Backtest, BacktestRequest

    question = BacktestRequest(current=CURRENT if current else None, proposed=PROPOSED, declared=PROPOSED, exact=exact)
    return Backtest(recorded, question).report()


def by_place(report: BacktestReport) -> dict[tuple[str, str], BucketVerdict]:
    return {(v.key, v.name.user or dict(v.name.other).get("ip", "")): v for v in report.verdicts}


@pytest.fixture(scope="module")
def exactly(history: Path) -> BacktestReport:
    return report_of(opened(history), exact=True)


def test_request_time_is_judged_in_percent_of_a_thread(exactly: BacktestReport) -> None:
    verdict = by_place(exactly)["request_percentage", "alice"]
    quota, before = RequestQuota(25.0, 11, 1000, spare=True), RequestQuota(60.0, 11, 1000, spare=True)
    charged = [(r.amount, START_MS + r.at_ms) for r in of("request", ALICE)]
    assert verdict.replay is not None
    assert verdict.replay.throttled == sum(quota.charge(*one) > 0 for one in charged)
    assert verdict.replay.before == sum(before.charge(*one) > 0 for one in charged)
    assert (verdict.limits.lowest_before, verdict.limits.after, verdict.verdict) == (60.0, 25.0, Verdict.THROTTLED)
    peak = RequestQuota(1e9, 11, 1000, spare=True)
    rates = []
    for amount, at in charged:
        peak.charge(amount, at)
        rates.append(peak.rate.measure(at)[0])
    assert verdict.peak.rate == pytest.approx(max(rates))
    assert verdict.peak.rate <= (verdict.advice.safe or 0) <= verdict.peak.rate * 1.13 + 0.1


@pytest.mark.parametrize("who", [OPS, OLD])
def test_mutations_are_admitted_topic_by_topic(exactly: BacktestReport, who: tuple[str, str]) -> None:
    verdict = by_place(exactly)["controller_mutation_rate", who[0]]
    held, refused = held_mutations(who, 10.0)
    assert verdict.replay is not None
    assert (verdict.broker, verdict.recorded.requests) == (2, len(held))
    assert (verdict.replay.throttled, verdict.replay.refused) == (sum(held), sum(refused))
    assert verdict.replay.before == sum(held_mutations(who, 100.0)[0])
    assert verdict.verdict is (Verdict.THROTTLED if any(held) else Verdict.CLEAR)
    assert not any(held_mutations(who, (verdict.advice.safe or 0) * 1.000001)[0])


def test_connections_are_judged_by_address(exactly: BacktestReport) -> None:
    found = by_place(exactly)
    quota = AddressQuota(4.0, 11, 1000, spare=True)
    closed = sum(quota.accept(START_MS + r.at_ms) > 0 for r in of("connection", "10.0.0.7"))
    verdict = found["connection_creation_rate", "10.0.0.7"]
    assert verdict.replay is not None
    assert 0 < closed == verdict.replay.throttled == verdict.replay.refused
    assert (verdict.limits.entity, verdict.limits.lowest_before, verdict.limits.after, verdict.recorded.members) == (
        ADDRESS,
        50.0,
        4.0,
        (),
    )
    stays = found["connection_creation_rate", "10.0.0.8"]
    assert (stays.limits.entity, stays.changed, stays.verdict) == (ANY_ADDRESS, False, Verdict.CLEAR)
    assert found["connection_creation_rate", "::1"].limits.entity == LOOPBACK, "another spelling of the same address"


@pytest.mark.spark
def test_cells_say_of_mutations_what_they_prove(
    spark: SparkSession, history: Path, exactly: BacktestReport, tmp_path: Path
) -> None:
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic.seconds.folder import SegmentFolder

    source = SourceFile(path=history, id="all", size=history.stat().st_size)
    Compaction(files={history.resolve(): source}, folder=SegmentFolder(tmp_path / "cells")).of_normal_form(spark)
    found, wanted = by_place(report_of(opened(tmp_path / "cells"), current=False)), by_place(exactly)
    assert set(found) == set(wanted) - {("producer_byte_rate", "")}, "all that is limited"
    for place, one in found.items():
        exact = wanted[place]
        assert exact.replay is not None
        assert one.replay is None
        assert one.peak.rate >= exact.peak.rate * (1 - 1e-12)
        assert one.verdict is not Verdict.THROTTLED or exact.replay.throttled
        assert one.verdict is not Verdict.CLEAR or not exact.replay.throttled
    assert found["controller_mutation_rate", "old"].verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)


def test_what_was_not_recorded_is_not_cleared(tmp_path: Path) -> None:
    write(tmp_path / "some.parquet", tuple(row for row in HISTORY if row.kind == "produce"))
    report = report_of(opened(tmp_path / "some.parquet"))
    found = [one for one in report.findings if one.id == "traffic-not-recorded"]
    assert {one.key for one in found} == {"request_percentage", "controller_mutation_rate", "connection_creation_rate"}
    assert all(one.severity is Severity.WARNING for one in found)
    assert len(found) == len(report.unjudged)
    words = "The backtest did not check {} of user=zoe: the history has no {}."
    assert {one.message for one in found if str(one.entity) == "user=zoe"} == {
        words.format("request_percentage", "request times"),
        words.format("controller_mutation_rate", "created or deleted partitions"),
    }
    assert report.unused == ()


@pytest.mark.spark
def test_every_topic_has_a_line_of_its_own(spark: SparkSession, history: Path) -> None:
    from reconciler.traffic import Backtest, BacktestRequest
    from reconciler.traffic.request_traffic import RequestTraffic
    from reconciler.traffic.shuffle.on_spark import KeptRows
    from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS, ROWS
    from reconciler.traffic.sources.parquet_parts import parts_of, read_part
    from reconciler.traffic.traffic_source import Source

    def read(part: Part) -> Iterator[pa.RecordBatch]:
        for batch in read_part(part, ROWS.names):
            identity = [pa.repeat("c", len(batch)), pa.repeat(1, len(batch)), pa.repeat(0, len(batch))]
            names = [*batch.schema.names, *IDENTITY_COLUMNS]
            yield pa.RecordBatch.from_arrays([*batch.columns, *identity], names=names)

    rows = KeptRows.of_shares(spark, parts_of([str(history)]), read)
    events = RequestTraffic(rows, source=Source.NORMAL_FORM, files=["all"])
    question = BacktestRequest(current=None, proposed=PROPOSED, declared=PROPOSED, exact=True)
    lines = [json.loads(text) for text in Backtest(events, question).request_lines()]
    assert len(lines) == len(HISTORY)
    assert [line["ts"] for line in lines] == sorted(line["ts"] for line in lines)
    mine = [line for line in lines if line["user"] == "ops"]
    assert [line["amount"] for line in mine] == [row.amount for row in of("mutation", OPS)]
    assert [line["refused"] for line in mine] == held_mutations(OPS, 10.0)[1]
    percent = next(line for line in lines if line["key"] == "request_percentage")
    assert percent["limit"] == 25.0
    assert max(line["throttle_ms"] for line in lines if line["key"] == "request_percentage") == 1000
    closed = [line for line in lines if line.get("ip") == "10.0.0.7" and line["throttle_ms"]]
    assert closed
    assert all((line["user"], line["client_id"]) == (None, None) for line in closed)


def thread_times(log: Path) -> Iterator[tuple[str, int, int]]:
    """User, charge time in microseconds, and nanoseconds of what a broker charges, read without the product."""
    between_brokers = {"WRITE_TXN_MARKERS", "ALTER_PARTITION", "VOTE", "BEGIN_QUORUM_EPOCH", "END_QUORUM_EPOCH", "FETCH_SNAPSHOT"}
    for text in gzip.decompress(log.read_bytes()).decode().splitlines():
        head, marker, rest = text.partition("Completed request:")
        if not marker:
            continue
        line = json.JSONDecoder().raw_decode(rest)[0]
        api, request = line["requestHeader"]["requestApiKeyName"], line["request"]
        replica = request.get("replicaId", (request.get("replicaState") or {}).get("replicaId", -1))
        if api in between_brokers or (api == "FETCH" and replica >= 0) or (api == "PRODUCE" and request["acks"] == 0):
            continue
        written = datetime.datetime.strptime(head[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=datetime.UTC)
        micros = round(written.timestamp() * 1e6) + 500 - round((line["responseQueueTimeMs"] + line["sendTimeMs"]) * 1000)
        yield line["principal"].split(":", 1)[1], micros, round(line["localTimeMs"] * 1000) * 1000


def test_thread_time_of_a_real_log_is_judged_as_kafka_does(recording: tuple[Path, dict[Entity, dict[str, float]]]) -> None:
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic
    from reconciler.traffic.kinds import Kind

    log, _ = recording
    traffic = find_traffic([f"1={log}"])
    recorded = open_here(traffic, kinds=(Kind.REQUEST, Kind.MUTATION))
    quotas = {EVERYBODY: {"request_percentage": 3.0}}
    try:
        report = Backtest(recorded, BacktestRequest(current=None, proposed=quotas, declared=quotas, exact=True)).report()
    finally:
        recorded.close()
    found = {
        v.name.user: (v.recorded.requests, v.replay.throttled if v.replay else 0)
        for v in report.verdicts
        if v.key == "request_percentage"
    }
    wanted: dict[str, list[tuple[int, int]]] = {}
    for user, micros, nanoseconds in thread_times(log):
        wanted.setdefault(user, []).append((micros, nanoseconds))
    expected = {}
    for user, charged in wanted.items():
        quota = RequestQuota(3.0, 11, 1000, spare=True)
        expected[user] = len(charged), sum(quota.charge(amount, at // 1000) > 0 for at, amount in sorted(charged))
    assert found == expected
    assert any(throttled for _, throttled in expected.values())
