"""Pages of samples: what becomes a row, which rows are marked as throttled, and series that show the same."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_answers import AnswerReader, ForeignAnswerError, SeveralClustersError, samples_of
from reconciler.features.prometheus.sample_pages import PageFacts, PageWriter, page_facts
from tests.support.metrics_exporter import matrix

ALICE = {"resource": "Produce", "user": "alice", "broker_id": "1"}
RATE = {"__name__": "kafka_server_quota_byte_rate", **ALICE}
THROTTLE = {"__name__": "kafka_server_quota_throttle_time", **ALICE}
START = 1_700_000_000.0


def page(folder: Path, *bodies: bytes, after_s: float = START - 60) -> tuple[list[dict[str, object]], PageFacts]:
    path = folder / "page.parquet"
    with PageWriter(path, AnswerReader()) as writer:
        for body in bodies:
            writer.add(body, after_s=after_s)
        facts = writer.finish(complete=True)
    assert page_facts(path) == facts
    return pq.read_table(path).to_pylist(), facts


def test_only_rates_become_amounts(tmp_path: Path) -> None:
    muted = {"__name__": "kafka_server_produce_queue_size", "broker_id": "1"}
    rows, facts = page(tmp_path, matrix((THROTTLE, [(START, "7284")]), (RATE, [(START, "5.9")]), (muted, [(START, "3")])))
    at = datetime.datetime.fromtimestamp(START, datetime.UTC)
    assert rows == [
        {"ts": at, "interval_ms": None, "broker": 1, "user": "alice", "client_id": None, "kind": "produce", "amount": 5,
         "semantics": "gauge", "throttled": True, "ip": None},
    ]  # fmt: skip
    assert (facts.rows, facts.complete) == (1, True)


@pytest.mark.parametrize(("value", "throttled"), [("7284", True), ("0", False), ("NaN", False), (None, None)])
def test_a_throttle_time_marks_the_sample_of_its_scrape(tmp_path: Path, value: str | None, throttled: bool | None) -> None:
    series = [(RATE, [(START, "5"), (START + 15, "6")])]
    if value is not None:
        series.append((THROTTLE, [(START, "NaN"), (START + 15, value)]))
    rows, _ = page(tmp_path, matrix(*series))
    assert [row["throttled"] for row in rows] == [None if value is None else False, throttled]


def test_the_interval_is_the_time_since_the_sample_before_also_of_another_matrix(tmp_path: Path) -> None:
    rows, _ = page(tmp_path, matrix((RATE, [(START, "5"), (START + 15, "NaN")])), matrix((RATE, [(START + 45.5, "6")])))
    assert [(row["amount"], row["interval_ms"]) for row in rows] == [(5, None), (6, 30_500)]


def test_a_sample_at_the_start_belongs_to_the_answer_before(tmp_path: Path) -> None:
    rows, _ = page(tmp_path, matrix((RATE, [(START, "5"), (START + 15, "6")])), after_s=START)
    assert [row["amount"] for row in rows] == [6]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e300", "9e18", "1e999"])
def test_a_value_that_is_not_a_rate_is_not_a_sample(tmp_path: Path, value: str) -> None:
    rows, facts = page(tmp_path, matrix((RATE, [(START, value)])))
    assert (rows, facts.rows, facts.complete) == ([], 0, False)


def test_two_replicas_of_one_broker_count_once_and_are_named(tmp_path: Path) -> None:
    first, second = ({**RATE, "instance": f"10.0.0.{number}:7071", "replica": str(number)} for number in (1, 2))
    rows, facts = page(tmp_path, matrix((first, [(START, "5"), (START + 15, "6")]), (second, [(START + 5, "7")])))
    assert [row["amount"] for row in rows] == [5, 6]
    assert facts.replicas == {1: 1}


@pytest.mark.parametrize("client", ["alice", "bob"])
def test_brokers_of_two_clusters_with_one_id_are_refused_with_the_matcher(tmp_path: Path, client: str) -> None:
    other = {**RATE, "namespace": "staging", "user": client}
    with pytest.raises(SeveralClustersError, match=r"""broker 1 .* "prod" and "staging"\. .* --match 'namespace="staging"'"""):
        page(tmp_path, matrix(({**RATE, "namespace": "prod"}, [(START, "5")]), (other, [(START, "7")])))
    assert not list(tmp_path.iterdir())


def test_labels_that_are_renamed_midway_are_one_series(tmp_path: Path) -> None:
    before, after = ({**RATE, "job": job} for job in ("kafka", "kafka-brokers"))
    rows, facts = page(tmp_path, matrix((after, [(START + 30, "6")]), (before, [(START, "5"), (START + 15, "5")])))
    assert ([row["amount"] for row in rows], facts.replicas) == ([5, 5, 6], {})


def test_brokers_whose_samples_are_5_s_apart_are_two_brokers(tmp_path: Path) -> None:
    rows, _ = page(tmp_path, matrix((RATE, [(START, "5")]), ({**RATE, "broker_id": "2"}, [(START + 5, "6")])))
    assert [(row["broker"], row["amount"]) for row in rows] == [(1, 5), (2, 6)]


def test_names_of_20000_letters_are_kept(tmp_path: Path) -> None:
    name = "x" * 20_000 + '"\\é\u202e'
    rows, _ = page(tmp_path, matrix(({**RATE, "user": name.replace("%", "%25")}, [(START, "5")])))
    assert rows[0]["user"] == name


def test_a_warning_of_the_server_leaves_the_page_incomplete(tmp_path: Path) -> None:
    _, facts = page(tmp_path, matrix((RATE, [(START, "5")]), warnings=["store gateway 2 did not answer"]))
    assert (facts.complete, facts.warnings) == (False, ("store gateway 2 did not answer",))


@pytest.mark.parametrize(
    "values",
    ["[[1,2,3]]", '[["a","5"]]', "[[1]]", '[[1,"x"]]', "[[]]", "7", '[[1e300,"5"]]', '[[-5,"5"]]', '[[253402300800,"5"]]'],
)
def test_samples_in_another_form_are_refused_and_leave_no_file(tmp_path: Path, values: str) -> None:
    body = matrix((RATE, [])).replace(b"[]}]", values.encode() + b"}]")
    with pytest.raises(ForeignAnswerError):
        page(tmp_path, body)
    assert not list(tmp_path.iterdir())


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 999), st.floats()), max_size=9), min_size=1, max_size=9),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)
def test_samples_are_those_of_a_json_reader(series: list[list[tuple[int, int, float]]], separators: tuple[str, str]) -> None:
    shown = {float("inf"): "+Inf", float("-inf"): "-Inf"}
    values = [[(at + ms / 1000, shown.get(v, "NaN" if math.isnan(v) else repr(v))) for at, ms, v in one] for one in series]
    rows: list[dict[str, Any]] = [
        {"metric": {**RATE, "client_id": str(number)}, "values": one} for number, one in enumerate(values)
    ]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}, separators=separators)
    found = AnswerReader().read(body.encode())
    assert [one.count for one in found.series] == [len(one) for one in series if one]
    samples = [(at, value) for _, some in samples_of(found.series) for at, value in zip(some.ts_ms, some.values, strict=True)]
    wanted = [(at * 1000 + ms, v) for one in series for at, ms, v in one]
    assert [at for at, _ in samples] == [at for at, _ in wanted]
    for (_, value), (_, expected) in zip(samples, wanted, strict=True):
        assert value == expected or not math.isfinite(expected)
