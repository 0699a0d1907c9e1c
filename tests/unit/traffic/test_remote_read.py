"""Answers of Prometheus's remote read: the same samples as those of a query, or refused."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import LabelMatcher
from reconciler.traffic.metric_pages import PageWriter
from reconciler.traffic.sources.metric_answers import AnswerReader
from reconciler.traffic.sources.remote_read import PackedAnswer, PackedAnswerError, read_labels, read_packed, read_request

NOW_MS = 1_763_424_000_000
STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0_0000_0000_0002))[0]
RATE = {"__name__": "kafka_server_quota_byte_rate", "resource": "Produce", "user": "alice", "broker_id": "1"}
Samples = list[tuple[int, float]]
TIMES = st.integers(2**35, 2**42 - 1)
VALUES = st.one_of(st.just(0.0), st.floats(), st.floats(0, 1e7), st.just(STALE), st.sampled_from([2.0e-274, 4.9e-275, 1e-230]))


def varint(number: int) -> bytes:
    rest, low = divmod(number, 0x80)
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def message(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + varint(len(content)) + content


def sample(at_ms: int, value: float) -> bytes:
    bits = struct.pack("<d", value)
    return message(0x12, (b"\x09" + bits if value != 0 else b"") + b"\x10" + varint(at_ms))


def answer(*series: tuple[dict[str, str], Samples], more: bytes = b"") -> PackedAnswer:
    encoded = b""
    for labels, samples in series:
        pairs = (message(0x0A, message(0x0A, name.encode()) + message(0x12, text.encode())) for name, text in labels.items())
        encoded += message(0x0A, b"".join(pairs) + b"".join(sample(*one) for one in samples) + more)
    return packed(message(0x0A, encoded))


def packed(document: bytes) -> PackedAnswer:
    return PackedAnswer(pa.Codec("snappy").compress(document, asbytes=True))


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.text("ab\u00e9_", min_size=1), st.text(), max_size=3),
            st.lists(st.tuples(TIMES, VALUES), max_size=9),
        ),
        max_size=6,
    )
)
def test_every_sample_is_read_and_stale_markers_are_none(series: list[tuple[dict[str, str], Samples]]) -> None:
    found = read_packed(answer(*series))
    wanted = [
        (labels, [(at, v) for at, v in samples if struct.pack("<d", v) != struct.pack("<d", STALE)]) for labels, samples in series
    ]
    wanted = [(labels, samples) for labels, samples in wanted if samples]
    assert [read_labels(one.labels) for one in found] == [labels for labels, _ in wanted]
    for one, (_, samples) in zip(found, wanted, strict=True):
        assert one.ts_ms.tolist() == [at for at, _ in samples]
        for value, (_, expected) in zip(one.values.tolist(), samples, strict=True):
            assert value == expected or (math.isnan(value) and math.isnan(expected))


@given(st.lists(st.tuples(TIMES, VALUES), min_size=1, max_size=9), st.data())
def test_damaged_answers_are_refused_or_read_and_nothing_else(samples: Samples, data: st.DataObject) -> None:
    document = bytearray(pa.Codec("snappy").decompress(answer((RATE, samples)).body, len(unpacked(samples)), asbytes=True))
    place = data.draw(st.integers(0, len(document) - 1))
    document[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(document)))
    for body in (bytes(document), bytes(document[:cut])):
        try:
            for one in read_packed(packed(body)):
                assert len(one.ts_ms) == len(one.values) > 0
                read_labels(one.labels)
        except PackedAnswerError:
            pass


def unpacked(samples: Samples) -> bytes:
    pairs = (message(0x0A, message(0x0A, name.encode()) + message(0x12, text.encode())) for name, text in RATE.items())
    return message(0x0A, message(0x0A, b"".join(pairs) + b"".join(sample(*one) for one in samples)))


@pytest.mark.parametrize(
    "body",
    [
        answer((RATE, [(2**43, 5.0)])),
        answer((RATE, [(7, 5.0)])),
        answer((RATE, [(NOW_MS, 5.0)]), more=message(0x1A, b"\x09exemplar")),
        answer((RATE, [(NOW_MS, 5.0)]), more=message(0x22, b"histogram")),
        PackedAnswer(b"<html>login</html>"),
        PackedAnswer(b""),
        PackedAnswer(b"\xff\xff\xff\xff\x7f" + b"x" * 9),
    ],
)
def test_another_form_is_refused(body: PackedAnswer) -> None:
    with pytest.raises(PackedAnswerError):
        read_packed(body)


def test_a_request_names_times_and_matchers() -> None:
    matchers = [
        LabelMatcher(label="__name__", operator="=~", value="kafka_.+"),
        LabelMatcher(label="env", operator="=", value="p"),
    ]
    request = read_request(matchers, from_ms=300, until_ms=70_000)
    query = b"\x08\xac\x02\x10\xf0\xa2\x04" + message(0x1A, b"\x08\x02" + message(0x12, b"__name__") + message(0x1A, b"kafka_.+"))
    query += message(0x1A, message(0x12, b"env") + message(0x1A, b"p"))
    assert pa.Codec("snappy").decompress(request, len(query) + 2, asbytes=True) == message(0x0A, query)


def test_a_page_of_remote_read_is_that_of_json(tmp_path: Path) -> None:
    samples = [(NOW_MS + 15_000 * n + 7, value) for n, value in enumerate([5.9, 0.0, math.nan, 1.25e6, -1.0, math.inf])]
    throttle = {**RATE, "__name__": "kafka_server_quota_throttle_time"}
    series = (
        (RATE, samples),
        ({**RATE, "user": "bob"}, samples[:2]),
        (throttle, [(NOW_MS + 7, 7284.0), (NOW_MS + 15_007, math.nan)]),
    )
    shown = {"nan": "NaN", "inf": "+Inf"}
    rows = [{"metric": labels, "values": [[at / 1000, shown.get(repr(v), repr(v))] for at, v in some]} for labels, some in series]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}).encode()
    pages = []
    for number, one in enumerate((body, answer(*series))):
        path = tmp_path / f"{number}.parquet"
        with PageWriter(path, AnswerReader()) as page:
            page.add(one, after_s=NOW_MS / 1000)
            page.finish(until_s=NOW_MS / 1000 + 3600, complete=True)
        pages.append(path.read_bytes())
    assert pages[0] == pages[1]
