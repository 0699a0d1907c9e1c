"""A violation log as traffic: it proves throttles of quotas that stay, and nothing else."""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import TrafficError, UsageError
from reconciler.features.violations.log import ViolationTraffic
from reconciler.model import DEFAULT, BacktestReport, Entity, Verdict
from reconciler.traffic import Backtest, BacktestRequest, Reading, find_traffic, open_traffic
from reconciler.traffic.traffic_source import Source

START = datetime.datetime(2026, 11, 22, 14, 3, tzinfo=datetime.UTC)
BOTH = Entity.of({"user": "alice", "client-id": "app"})
BOB = Entity.of({"user": "bob"})
NOW = {BOTH: {"producer_byte_rate": 20_000.0}, BOB: {"producer_byte_rate": 20_000.0}}
Quotas = Mapping[Entity, Mapping[str, float]]


def violation(sensor: str, second: int, delay_ms: int = 700) -> str:
    at = START + datetime.timedelta(seconds=second)
    logger = "org.apache.kafka.server.quota.ClientQuotaManager"
    return f"[{at:%Y-%m-%d %H:%M:%S},250] DEBUG Quota violated for sensor ({sensor}). Delay time: ({delay_ms}) ({logger})\n"


def written(folder: Path, lines: Iterable[str], name: str = "server.log") -> str:
    folder.mkdir(exist_ok=True)
    started = "[2026-11-22 14:00:00,001] INFO started (kafka.server.KafkaServer)\n"
    (folder / name).write_text(started + "".join(lines), encoding="utf-8")
    return str(folder)


def opened(*arguments: str) -> ViolationTraffic:
    traffic = find_traffic(arguments)
    assert traffic.source is Source.VIOLATIONS
    recorded = open_traffic(traffic, lambda: pytest.fail("Spark"))
    assert isinstance(recorded, ViolationTraffic)
    return recorded


def judged(recorded: ViolationTraffic, now: Quotas | None, then: Quotas, *, in_effect: bool = False) -> BacktestReport:
    question = BacktestRequest(current=now, proposed=then, declared=then, in_effect=in_effect)
    return Backtest(recorded, question).report()


def test_limits_that_stay_are_throttled_and_changed_ones_are_inconclusive(tmp_path: Path) -> None:
    lines = [violation("Produce-alice:app", 0, 900), violation("Produce-alice:app", 3), violation("Produce-bob:", 1)]
    recorded = opened(f"3={written(tmp_path, lines)}")
    report = judged(recorded, NOW, {**NOW, BOB: {"producer_byte_rate": 90_000.0}})
    alice, bob = report.verdicts
    assert (alice.name.user, alice.name.client_id, alice.broker, alice.verdict) == ("alice", "app", 3, Verdict.THROTTLED)
    assert (alice.limits.entity, alice.limits.lowest_before, alice.limits.after, alice.changed) == (
        BOTH,
        20_000.0,
        20_000.0,
        False,
    )
    assert (alice.recorded.throttled, alice.over.seconds, alice.over.longest_s, alice.recorded.requests) == (2, 2, 4, 0)
    assert alice.over.first == START + datetime.timedelta(milliseconds=250)
    assert (bob.name.user, bob.name.client_id, bob.verdict) == ("bob", "", Verdict.INCONCLUSIVE)
    assert bob.reason == (
        "brokers logged throttles under the quotas of that time, and no traffic: it shows nothing about a changed limit (1)"
    )
    assert (bob.limits.lowest_before, bob.limits.after, bob.over.seconds) == (20_000.0, 90_000.0, 0)
    assert report.judged is not None
    assert (report.judged.changed, report.judged.judged, report.judged.too_little) == (1, 0, 1)
    assert report.provenance.source == "violation-log"
    assert report.provenance.requests == 0


def test_a_proposal_that_splits_the_group_is_inconclusive(tmp_path: Path) -> None:
    recorded = opened(written(tmp_path, [violation("Produce-bob:", 0)]))
    split = {**NOW, Entity.of({"user": "bob", "client-id": "batch"}): {"producer_byte_rate": 1e9}}
    assert {one.verdict for one in judged(recorded, NOW, split).verdicts} == {Verdict.INCONCLUSIVE}


def test_without_the_quotas_of_that_time_nothing_is_proven(tmp_path: Path) -> None:
    recorded = opened(written(tmp_path, [violation("Produce-bob:", 0)]))
    (verdict,) = judged(recorded, None, NOW).verdicts
    assert verdict.verdict is Verdict.INCONCLUSIVE
    assert verdict.reason is not None
    assert "give --current" in verdict.reason
    (known,) = judged(recorded, None, NOW, in_effect=True).verdicts
    assert (known.verdict, known.limits.after) == (Verdict.THROTTLED, 20_000.0)


def test_a_group_that_no_current_quota_makes_is_inconclusive(tmp_path: Path) -> None:
    recorded = opened(written(tmp_path, [violation("Produce-bob:batch", 0), violation("Fetch-alice:app", 0)]))
    assert {one.verdict for one in judged(recorded, NOW, NOW).verdicts} == {Verdict.INCONCLUSIVE}


def test_a_quota_without_a_line_is_not_judged(tmp_path: Path) -> None:
    recorded = opened(written(tmp_path, [violation("Produce-alice:app", 0)]))
    report = judged(recorded, NOW, {**NOW, BOB: {"producer_byte_rate": 90_000.0}})
    assert [one.entity for one in report.unjudged] == [BOB]
    assert report.unjudged[0].why == "the history has no produce requests"


_SENSORS = st.sampled_from(
    ["Produce-alice:app", "Produce-alice:", "Produce-:app", "Produce-bob:", "Fetch-bob:", "Request-:", "ControllerMutation-a:b"]
)
_ENTITIES = st.sampled_from(
    [
        BOTH,
        BOB,
        *(Entity.of(names) for names in ({"user": DEFAULT}, {"client-id": "app"}, {"user": "alice"}, {"client-id": DEFAULT})),
    ]
)
_TABLES = st.dictionaries(_ENTITIES, st.fixed_dictionaries({"producer_byte_rate": st.sampled_from([1e3, 2e4])}), max_size=4)


@given(st.lists(st.tuples(_SENSORS, st.integers(0, 60)), min_size=1, max_size=8), _TABLES, _TABLES)
def test_nothing_is_clear_and_only_quotas_that_stay_are_throttled(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, int]], now: Quotas, then: Quotas
) -> None:
    recorded = opened(written(tmp_path_factory.mktemp("log"), [violation(*one) for one in lines]))
    for one in judged(recorded, now, then).verdicts:
        assert one.verdict in (Verdict.THROTTLED, Verdict.INCONCLUSIVE)
        if one.verdict is Verdict.THROTTLED:
            assert one.limits.entity is not None
            assert now[one.limits.entity] == then[one.limits.entity]
            assert one.limits.lowest_before == one.limits.after
    assert {one.verdict for one in judged(recorded, now, {}).verdicts} <= {Verdict.INCONCLUSIVE, Verdict.THROTTLED}


def test_a_folder_as_a_broker_leaves_it_is_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "broker-7"
    written(folder, [violation("Produce-bob:", 0)])
    (folder / "kafka-request.log").write_text("")
    (folder / "server.log.2026-11-21.gz").write_bytes(gzip.compress(violation("Produce-bob:", -9000).encode()))
    recorded = opened(str(folder))
    assert [(one.broker, one.begin_us // 1_000_000) for one in recorded.throttles] == [
        (7, int(START.timestamp()) - 9000),
        (7, int(START.timestamp())),
    ]


def test_a_log_with_requests_too_is_a_request_log(tmp_path: Path) -> None:
    lines = [violation("Produce-bob:", 0), "[2026-11-22 14:03:00,250] DEBUG Completed request:{} (kafka.request.logger)\n"]
    assert find_traffic([written(tmp_path, lines)]).source is Source.LOGS


def test_lines_that_cannot_be_read_are_counted_and_too_many_stop(tmp_path: Path) -> None:
    good = [violation("Produce-bob:", second) for second in range(200)]
    recorded = opened(written(tmp_path, [*good, "DEBUG Quota violated for sensor (Produce-bob:). Delay time: (1)\n"]))
    assert (recorded.facts.unreadable, recorded.facts.not_charged) == (1, {"violation": 200})
    traffic = find_traffic([written(tmp_path, ["DEBUG Quota violated for sensor (Produce-bob:). Delay time: (1)\n"])])
    with pytest.raises(TrafficError, match="no quota violation of this time can be read"):
        open_traffic(traffic, lambda: pytest.fail("Spark"))


def test_what_needs_traffic_refuses_it_by_name(tmp_path: Path) -> None:
    traffic = find_traffic([written(tmp_path, [violation("Produce-bob:", 0)])])
    with pytest.raises(UsageError, match=r"server\.log is a violation log, which has throttles and no traffic"):
        list(traffic.batches(Reading()))
