"""Quota groups that a quota throttled while they were recorded, in every way of judging, and those that none did."""

from __future__ import annotations

import datetime
import functools
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import BacktestReport, BucketVerdict, Form, Verdict
from reconciler.model.entity import DEFAULT, Entity
from reconciler.traffic.judging.history_gaps import Recording
from reconciler.traffic.kinds import BYTES, Kind
from tests.support.command import invoke
from tests.support.local_traffic import open_here
from tests.support.manifests import cluster, quotas, snapshot
from tests.traffic.log_lines import fetch_request, fetch_response, line, produce_request

START = datetime.datetime(2026, 11, 21, 13)
ALICE, BOB, APP = Entity.of({"user": "alice"}), Entity.of({"user": "bob"}), Entity.of({"client-id": "app-1"})
SECONDS = 100
OLD, HIGHER = 10_000.0, 30_000.0
NEAR, FAR = 9_500, 2_000
"""Bytes a second: near the old limit, and far below it."""
Quotas = Mapping[Entity, Mapping[str, float]]


def at(second: int) -> str:
    return (START + datetime.timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S,123")


def produce(second: int, size: int, *, throttle_ms: int = 0, user: str = "alice", port: int = 53412) -> str:
    return line(
        at=at(second), correlation_id=second, principal=f"User:{user}", request=produce_request(size), throttle_ms=throttle_ms,
        connection=f"10.0.0.5:9092-10.0.0.9:{port}-2-0",
    )  # fmt: skip


def fetch(second: int, size: int, *, throttle_ms: int = 0) -> str:
    response = fetch_response() if throttle_ms else fetch_response(size)
    return line(
        "FETCH", 12, at=at(second), correlation_id=second, request=fetch_request(), response=response, throttle_ms=throttle_ms
    )


def write_log(folder: Path, lines: Sequence[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "kafka-request.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return log


def as_log(folder: Path, lines: Sequence[str]) -> str:
    return f"1={write_log(folder, lines)}"


def as_totals(folder: Path, lines: Sequence[str]) -> str:
    log = write_log(folder, lines)
    done = invoke("compact", "--traffic", f"1={log}", "--folder", "totals", cwd=folder)
    assert done.code == 0, done.err
    return str(folder / "totals")


def as_parquet(folder: Path, lines: Sequence[str], *, stated: bool) -> str:
    """The charged rows in the canonical traffic schema, with or without the column ``throttled``."""
    from tests.support.traffic_rows import log_rows

    rows = [row for row in log_rows(write_log(folder, lines), broker=1, kinds=BYTES) if row.status == "charged"]
    columns = {
        "ts": pa.array([row.ts_us for row in rows], pa.timestamp("us", "UTC")), "broker": pa.array([1] * len(rows), pa.int32()),
        "kind": [row.kind for row in rows], "user": [row.user for row in rows], "client_id": [row.client_id for row in rows],
        "amount": pa.array([row.records + row.overhead for row in rows], pa.int64()), "semantics": ["event"] * len(rows),
        "interval_ms": pa.nulls(len(rows), pa.int32()),
    }  # fmt: skip
    if stated:
        columns["throttled"] = pa.array([row.throttled for row in rows])
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return str(folder / "rows.parquet")


def stated_parquet(folder: Path, lines: Sequence[str]) -> str:
    return as_parquet(folder, lines, stated=True)


def unstated_parquet(folder: Path, lines: Sequence[str]) -> str:
    return as_parquet(folder, lines, stated=False)


def report(traffic: str, current: Quotas | None, proposed: Quotas, *, exact: bool = False, **options: Any) -> BacktestReport:
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic

    found = open_here(find_traffic([traffic]), form=Form.EXACT if exact else Form.SECONDS, **options)
    try:
        return Backtest(found, BacktestRequest(current=current, proposed=proposed, declared=proposed, exact=exact)).report()
    finally:
        found.close()


def limits(limit: float | None, entity: Entity = ALICE) -> Quotas:
    return {} if limit is None else {entity: {"producer_byte_rate": limit, "consumer_byte_rate": limit}}


Way = tuple[Callable[[Path, Sequence[str]], str], bool]
WAYS: Mapping[str, Way] = {
    "exact": (as_log, True), "seconds": (as_log, False), "per-second totals": (as_totals, False),
    "Parquet, exact": (stated_parquet, True), "Parquet, seconds": (stated_parquet, False),
}  # fmt: skip


def verdicts(folder: Path, lines: Sequence[str], current: Quotas | None, proposed: Quotas) -> dict[str, BucketVerdict]:
    """By way of judging."""
    found = {}
    for name, (write, exact) in WAYS.items():
        (found[name],) = report(written(write, folder, tuple(lines)), current, proposed, exact=exact).verdicts
    return found


@functools.cache
def written(write: Callable[[Path, Sequence[str]], str], folder: Path, lines: Sequence[str]) -> str:
    """The traffic, which is written once for all limits and all ways that it is judged by."""
    folder.mkdir(parents=True, exist_ok=True)
    return write(Path(tempfile.mkdtemp(dir=folder)), lines)


def steady(size: int, *, throttled: Sequence[int] = (), of: Callable[..., str] = produce) -> list[str]:
    """A request a second, of which these are throttled."""
    return [of(second, size, throttle_ms=900 if second in throttled else 0) for second in range(SECONDS)]


@pytest.mark.parametrize("of", [produce, fetch])
@pytest.mark.parametrize(("throttled", "size"), [(range(0, SECONDS, 2), NEAR), ([40], NEAR), ([40], FAR)])
def test_a_higher_limit_is_not_clear_where_the_old_one_throttled(
    tmp_path: Path, of: Callable[..., str], throttled: Sequence[int], size: int
) -> None:
    lines = steady(size, throttled=throttled, of=of)
    for after in (limits(HIGHER), {}):
        for way, verdict in verdicts(tmp_path, lines, limits(OLD), after).items():
            assert (verdict.verdict, verdict.recorded.censored) == (Verdict.INCONCLUSIVE, True), way
            assert (verdict.recorded.requests, verdict.recorded.throttled) == (SECONDS, len(throttled)), way
            # Half of the fetches are empty, so their rate is half of the limit.
            cause = "" if (size, of) == (NEAR, produce) or (size, len(throttled)) == (NEAR, 1) else " or another quota"
            assert str(verdict.reason).startswith(
                f"the old limit of 9.766 KiB/s{cause} throttled {len(throttled)} of 100 requests of these clients"
            ), way


@pytest.mark.parametrize("size", [NEAR, FAR])
def test_a_higher_limit_stays_clear_where_nothing_was_throttled(tmp_path: Path, size: int) -> None:
    for current in (limits(OLD), limits(None), None):
        for way, verdict in verdicts(tmp_path, steady(size), current, limits(HIGHER)).items():
            assert (verdict.verdict, verdict.recorded.censored) == (Verdict.CLEAR, False), way


@pytest.mark.parametrize(("size", "expected"), [(FAR, Verdict.CLEAR), (NEAR, Verdict.INCONCLUSIVE)])
def test_fewer_than_one_in_a_hundred_requests_are_enough_near_the_old_limit_alone(
    tmp_path: Path, size: int, expected: Verdict
) -> None:
    lines = [produce(n // 3, size // 3, port=n % 3, throttle_ms=900 if n == 7 else 0) for n in range(3 * SECONDS)]
    for way, verdict in verdicts(tmp_path, lines, limits(OLD), limits(HIGHER)).items():
        assert (verdict.verdict, verdict.recorded.throttled) == (expected, 1), way
        near = "1 of 300 requests of these clients, and their rate was near it in 9" in str(verdict.reason)
        assert near == (expected is Verdict.INCONCLUSIVE), way


@pytest.mark.parametrize(("size", "expected"), [(NEAR, Verdict.INCONCLUSIVE), (FAR, Verdict.CLEAR)])
@pytest.mark.parametrize("exact", [False, True])
def test_traffic_without_throttles_is_judged_by_the_seconds_near_the_old_limit(
    tmp_path: Path, size: int, expected: Verdict, *, exact: bool
) -> None:
    traffic = unstated_parquet(tmp_path, steady(size))
    (verdict,) = report(traffic, limits(OLD), limits(HIGHER), exact=exact).verdicts
    assert (verdict.verdict, verdict.recorded.censored) == (expected, expected is Verdict.INCONCLUSIVE)
    if expected is Verdict.INCONCLUSIVE:
        assert "were near the old limit of 9.766 KiB/s in " in str(verdict.reason)
        assert "does not state whether it throttled them" in str(verdict.reason)
    for current, proposed in (
        (limits(None), limits(HIGHER)),
        (limits(HIGHER), limits(HIGHER)),
        (limits(20_000.0), limits(15_000.0)),
    ):
        assert report(traffic, current, proposed, exact=exact).verdicts[0].verdict is Verdict.CLEAR


def test_clients_that_are_regrouped_into_a_higher_limit_are_not_clear(tmp_path: Path) -> None:
    """bob is a hundredth of the new quota group's requests, and half of his own were throttled."""
    alice = steady(FAR)
    bob = [produce(second, FAR, user="bob", port=4, throttle_ms=900 * second) for second in range(2)]
    both = [*alice, *bob]
    current: Quotas = {ALICE: {"producer_byte_rate": OLD}, BOB: {"producer_byte_rate": OLD / 4}}
    proposed: Quotas = {Entity.of({"user": "bob"}): {"producer_byte_rate": HIGHER}, ALICE: {"producer_byte_rate": OLD}}
    for way, (write, exact) in WAYS.items():
        rows = {
            row.name.user: row.verdict for row in report(write(tmp_path / way, both), current, proposed, exact=exact).verdicts
        }
        # Per-second totals of a limit that stays are not judged.
        assert (rows["bob"], rows.get("alice", Verdict.CLEAR)) == (Verdict.INCONCLUSIVE, Verdict.CLEAR), way
    pair = Entity.of({"user": DEFAULT, "client-id": DEFAULT})
    split: Quotas = {pair: {"producer_byte_rate": HIGHER}}
    found = {row.name.user: row for row in report(as_log(tmp_path, both), current, split, exact=True).verdicts}
    assert (found["bob"].verdict, found["alice"].verdict) == (Verdict.INCONCLUSIVE, Verdict.CLEAR)
    assert "the old limit of 2.441 KiB/s or another quota throttled 1 of 2 requests" in str(found["bob"].reason)
    together: Quotas = {APP: {"producer_byte_rate": HIGHER}}
    (merged,) = report(as_log(tmp_path, both), current, together, exact=True).verdicts
    assert (merged.verdict, merged.recorded.requests, merged.recorded.throttled) == (Verdict.INCONCLUSIVE, SECONDS + 2, 1)
    assert "the old limit of 2.441 KiB/s or another quota throttled 1 of 2 requests" in str(merged.reason)


def test_a_limit_that_stays_is_not_clear_for_clients_that_were_throttled(tmp_path: Path) -> None:
    lines = steady(FAR, throttled=range(0, SECONDS, 2), of=fetch)
    for current in (limits(OLD), limits(None), None):
        for way in ("exact", "seconds", "Parquet, exact", "Parquet, seconds"):
            write, exact = WAYS[way]
            (verdict,) = report(write(tmp_path / way, lines), current, limits(OLD), exact=exact).verdicts
            assert (verdict.verdict, verdict.recorded.censored) == (Verdict.INCONCLUSIVE, True), way
            assert "quotas throttled 50 of 100 requests of these clients when they were recorded" in str(verdict.reason), way


def test_a_quota_group_that_one_broker_throttled_is_clear_and_safe_on_none(tmp_path: Path) -> None:
    quiet = write_log(tmp_path / "1", steady(FAR))
    busy = [produce(second, NEAR, port=9, throttle_ms=900 * (second % 2)) for second in range(1, SECONDS)]
    traffic = [f"1={quiet}", f"2={write_log(tmp_path / '2', busy)}"]
    (tmp_path / "now.json").write_text(snapshot(limits(OLD), cluster_id=None))
    (tmp_path / "quotas.yaml").write_text(
        cluster(backtest={"history": {"hours": 0.02}}) + "---\n" + quotas(({"user": "alice"}, {"producer_byte_rate": HIGHER}))
    )
    done = invoke(
        "backtest", "quotas.yaml", "--current", "now.json", "--traffic", traffic[0], "--traffic", traffic[1], "--format", "json",
        "--out", "html=a.html", cwd=tmp_path,
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    rows = {row["broker"]: row for row in done.json()["verdicts"]}
    assert [(row["verdict"], row["censored"]) for row in rows.values()] == [("inconclusive", True)] * 2
    assert rows[1]["reason"] == f"on broker 2, {rows[2]['reason']}"
    assert len(done.json()["findings"]) == 1
    (safe,) = re.findall("Safe</dt><dd>(.*?)</dd>", (tmp_path / "a.html").read_text())
    assert "at least" in safe


def test_safe_and_recommended_values_of_throttled_clients_are_lower_bounds(tmp_path: Path) -> None:
    traffic = as_log(tmp_path, steady(NEAR, throttled=range(0, SECONDS, 2)))
    (held,) = report(traffic, limits(OLD), limits(HIGHER), exact=True).verdicts
    assert "both are lower bounds" in str(held.advice.reason)
    other = [*steady(NEAR, throttled=range(0, SECONDS, 2)), *(produce(n, FAR, user="bob", port=4) for n in range(SECONDS))]
    current: Quotas = {ALICE: {"producer_byte_rate": OLD}, BOB: {"producer_byte_rate": OLD}}
    proposed: Quotas = {ALICE: {"producer_byte_rate": HIGHER}, BOB: {"producer_byte_rate": HIGHER}}
    rows = {row.name.user: row for row in report(as_log(tmp_path / "both", other), current, proposed).verdicts}
    assert (rows["bob"].verdict, rows["bob"].recorded.censored) == (Verdict.CLEAR, False), (
        "another group was throttled, and not this one"
    )
    assert "lower bounds" not in str(rows["bob"].advice.reason)


def test_many_throttled_groups_are_one_finding(tmp_path: Path) -> None:
    lines = [produce(n % SECONDS, NEAR, user=f"user-{n // SECONDS}", port=n // SECONDS, throttle_ms=9) for n in range(500)]
    names = [Entity.of({"user": f"user-{n}"}) for n in range(5)]
    current = {name: {"producer_byte_rate": OLD} for name in names}
    proposed = {name: {"producer_byte_rate": HIGHER + n} for n, name in enumerate(names)}
    found = report(as_log(tmp_path, lines), current, proposed)
    assert len({row.reason for row in found.verdicts}) == 1
    (finding,) = [one for one in found.findings if one.id == "history-incomplete"]
    assert str(finding.message).startswith(
        "5 quota groups that this change touches are inconclusive: quotas throttled their clients"
    )


def test_refused_topics_and_throttles_of_answers_count(tmp_path: Path) -> None:
    """A broker answers a refused topic with error 89 and a throttle time; the line's own ``throttleTimeMs`` is 0."""

    def create(second: int, code: int, throttle_ms: int) -> str:
        topic = f"t{second}"
        text = line(
            "METADATA", 7, at=at(second), correlation_id=second,
            request={"topics": [{"name": topic, "numPartitions": 1, "assignments": []}], "validateOnly": False},
            response={"throttleTimeMs": throttle_ms, "topics": [{"name": topic, "errorCode": code}]},
        )  # fmt: skip
        return text.replace('"requestApiKey":3', '"requestApiKey":19').replace("METADATA", "CREATE_TOPICS")

    lines = [create(second, 89 if second % 2 else 0, 400 if second % 2 else 0) for second in range(20)]
    for after in (50.0, 5.0):
        for exact in (False, True):
            (verdict,) = report(
                as_log(tmp_path, lines), {ALICE: {"controller_mutation_rate": 5.0}}, {ALICE: {"controller_mutation_rate": after}},
                exact=exact, kinds=(Kind.MUTATION,),
            ).verdicts  # fmt: skip
            assert (verdict.verdict, verdict.recorded.requests, verdict.recorded.throttled) == (Verdict.INCONCLUSIVE, 20, 10)
    answered = [produce(second, FAR).replace('"throttleTimeMs":0}', '"throttleTimeMs":7}') for second in range(SECONDS)]
    (verdict,) = report(as_log(tmp_path, answered), limits(OLD), limits(HIGHER)).verdicts
    assert (verdict.verdict, verdict.recorded.throttled) == (Verdict.INCONCLUSIVE, SECONDS)


@pytest.mark.parametrize(("every_s", "expected"), [(1, Verdict.INCONCLUSIVE), (4, Verdict.CLEAR)])
@pytest.mark.parametrize("exact", [False, True])
def test_mutations_at_the_pace_of_their_old_limit_are_not_clear(
    tmp_path: Path, every_s: int, expected: Verdict, *, exact: bool
) -> None:
    """A client that waits for its tokens overdraws no bucket, and the traffic does not state whether it waited."""
    times = [(START + datetime.timedelta(seconds=n * every_s)).replace(tzinfo=datetime.UTC) for n in range(600)]
    columns = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")), "broker": pa.array([1] * 600, pa.int32()), "kind": ["mutation"] * 600,
        "user": ["alice"] * 600, "client_id": ["app"] * 600, "amount": pa.array([1] * 600, pa.int64()),
        "semantics": ["event"] * 600, "interval_ms": pa.nulls(600, pa.int32()),
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    current, proposed = ({ALICE: {"controller_mutation_rate": limit}} for limit in (1.0, 5.0))
    (verdict,) = report(str(tmp_path / "rows.parquet"), current, proposed, exact=exact, kinds=(Kind.MUTATION,)).verdicts
    assert (verdict.verdict, verdict.recorded.censored) == (expected, expected is Verdict.INCONCLUSIVE)


@given(
    requests=st.integers(1, 10_000), throttled=st.integers(0, 10_000), active=st.integers(1, 10_000), near=st.integers(0, 10_000),
    limit=st.none() | st.floats(1, 1e9), after=st.none() | st.floats(1, 1e9), stated=st.booleans(),
)  # fmt: skip
def test_one_in_a_hundred_requests_is_proof_whatever_the_limits(
    *, requests: int, throttled: int, active: int, near: int, limit: float | None, after: float | None, stated: bool
) -> None:
    recording = Recording(
        limit=limit, requests=requests, throttled=min(throttled, requests), active=active, near=min(near, active)
    )
    proven = recording.proves(after, stated=stated)
    if 100 * recording.throttled >= requests and recording.throttled:
        assert proven
    if not recording.throttled and (stated or not recording.is_raised(after)):
        assert not proven
    if proven:
        assert recording.reason("producer_byte_rate", after, 0.0).count("throttled") >= 1
