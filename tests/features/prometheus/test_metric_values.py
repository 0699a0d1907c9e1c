"""Samples whose values or times no number of the canonical schema can hold: left out or refused, without a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.features.prometheus import AnswerReader, ForeignAnswerError, PageWriter, read_answer
from reconciler.features.prometheus.exporter_page import PageSeries
from reconciler.features.prometheus.recorded_folder import PageColumns

AT_S = 1_763_424_000
NAMES = ("kafka_server_request_request_time", "kafka_server_produce_byte_rate", "process_start_time_seconds", "up")
LABELS = {"user": "alice", "client_id": "app", "instance": "kafka-1:7071"}


def answer(name: str, at: str, value: str) -> bytes:
    series = {"metric": {"__name__": name, **LABELS}, "values": "SAMPLES"}
    document = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    return json.dumps(document).replace('"SAMPLES"', f'[[{at},"{value}"]]').encode()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ["1e308", "-1e308", "1e999", "NaN", "-Inf", "9e18", "1e19"])
def test_a_value_that_is_too_large_is_not_a_sample(name: str, value: str, tmp_path: Path) -> None:
    body = answer(name, str(AT_S), value)
    with PageWriter(tmp_path / "a.parquet", AnswerReader()) as page:
        page.add(body, after_s=0)
        assert page.finish(until_s=AT_S, complete=True).rows == 0
    series = PageSeries({"__name__": name, **LABELS})
    assert PageColumns().rows([(series, float(value))], at_s=AT_S, monotonic_s=1.0).count == 0


@pytest.mark.parametrize("at", ["1e300", "-5", "1e15", "253402300800"])
def test_a_time_that_is_not_one_of_seconds_is_refused(at: str, tmp_path: Path) -> None:
    body = answer(NAMES[1], at, "5")
    words = "a sample has a time that is not one of seconds since 1970"
    with PageWriter(tmp_path / "a.parquet", AnswerReader()) as page, pytest.raises(ForeignAnswerError, match=words):
        page.add(body, after_s=0)
    with pytest.raises(ForeignAnswerError, match=words):
        list(read_answer(body, AnswerReader()).samples)
