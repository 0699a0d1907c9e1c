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
from reconciler.traffic.sources.remote_read import (
    LongAnswerError,
    PackedAnswer,
    PackedAnswerError,
    PackedReader,
    read_request,
)
from reconciler.traffic.sources.xor_chunks import decode_chunks
from tests.support.xor_encoding import (
    TimedValues,
    encode_chunk,
    encode_chunk_message,
    encode_frame,
    encode_labels,
    message,
    varint,
)

NOW_MS = 1_763_424_000_000
STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0_0000_0000_0002))[0]
RATE = {"__name__": "kafka_server_quota_byte_rate", "resource": "Produce", "user": "alice", "broker_id": "1"}
FROM_MS, UNTIL_MS = 0, 2**62
DISTANCES = st.one_of(
    st.sampled_from([0, 15_000, 15_001, 14_999]), st.integers(0, 2**14), st.integers(0, 2**21), st.integers(0, 2**40)
)
VALUES = st.one_of(st.just(0.0), st.floats(), st.floats(0, 1e7), st.just(STALE), st.sampled_from([1.0, 2.0, 3.0, -0.0]))


@st.composite
def timed_values(draw: st.DrawFn, *, most: int = 12) -> list[tuple[int, float]]:
    """Samples in the order of time."""
    at_ms = draw(st.integers(0, 2**42))
    samples = []
    for _ in range(draw(st.integers(1, most))):
        samples.append((at_ms, draw(VALUES)))
        at_ms += draw(DISTANCES)
    return samples


def bits(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value))


def read(body: bytes, from_ms: int = FROM_MS, until_ms: int = UNTIL_MS) -> PackedAnswer:
    return PackedReader().read(body, from_ms=from_ms, until_ms=until_ms)


@given(st.lists(timed_values(), max_size=8))
def test_every_sample_of_a_chunk_is_decoded_to_the_bit(chunks: list[TimedValues]) -> None:
    decoded = decode_chunks([encode_chunk(chunk) for chunk in chunks])
    assert decoded.counts.tolist() == [len(chunk) for chunk in chunks]
    assert decoded.ts_ms.tolist() == [at_ms for chunk in chunks for at_ms, _ in chunk]
    assert decoded.bits.tolist() == [bits(value) for chunk in chunks for _, value in chunk]


@given(
    st.lists(st.lists(timed_values(), max_size=3), max_size=5), st.integers(1, 5), st.integers(0, 2**42), st.integers(0, 2**43)
)
def test_an_answer_has_the_samples_of_its_time_and_no_stale_markers(
    series: list[list[TimedValues]], frames: int, from_ms: int, length_ms: int
) -> None:
    until_ms = from_ms + length_ms
    named = [({**RATE, "user": f"u{number}"}, chunks) for number, chunks in enumerate(series)]
    # A series whose chunks are in two frames is one series.
    parts = [named[begin : begin + frames] for begin in range(0, len(named), frames)]
    body = b"".join(
        encode_frame([(labels, chunks[:1]) for labels, chunks in part]) + encode_frame([(part[-1][0], part[-1][1][1:])])
        if len(part) == 1
        else encode_frame(part)
        for part in parts
    )
    expected = [
        (
            labels,
            [
                (at_ms, bits(value))
                for chunk in chunks
                for at_ms, value in chunk
                if from_ms <= at_ms <= until_ms and bits(value) != bits(STALE)
            ],
        )
        for labels, chunks in named
    ]
    answer = read(body, from_ms, until_ms)
    decoded = [
        (json.loads(some.labels), list(zip(some.ts_ms.tolist(), map(bits, some.values.tolist()), strict=True)))
        for some in answer.series
    ]
    assert [(labels, [at for at, _ in pairs]) for labels, pairs in decoded] == [
        (labels, [at for at, _ in pairs]) for labels, pairs in expected if pairs
    ]
    assert answer.samples == sum(len(pairs) for _, pairs in expected)


@given(timed_values(), st.data())
def test_damaged_answers_are_refused_or_read_and_nothing_else(samples: TimedValues, data: st.DataObject) -> None:
    body = bytearray(encode_frame([(RATE, [samples]), (RATE | {"user": "bob"}, [samples])]))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    for damaged in (bytes(body), bytes(body[:cut])):
        try:
            for series in read(damaged).series:
                assert len(series.ts_ms) == len(series.values) > 0
                assert isinstance(json.loads(series.labels), dict)
        except PackedAnswerError:
            pass


def framed(content: bytes) -> bytes:
    return varint(len(content)) + b"\x00" * 4 + content


WHOLE = encode_frame([(RATE, [[(NOW_MS, 5.0), (NOW_MS + 15_000, 6.0), (NOW_MS + 30_000, 8.5)]])])


@pytest.mark.parametrize(
    "body",
    [
        WHOLE[:-1],
        WHOLE + b"remote read: a storage failed",
        b"<html>login</html>",
        pa.Codec("snappy").compress(message(0x0A, message(0x0A, encode_labels(RATE))), asbytes=True),
        framed(message(0x0A, encode_labels(RATE) + encode_chunk_message([(NOW_MS, 5.0)], kind=2))),
        framed(message(0x0A, encode_labels(RATE) + message(0x1A, b"exemplar"))),
        framed(message(0x0A, encode_labels(RATE) + message(0x12, b"\x08\x01\x10\x02\x18\x01" + message(0x22, b"\xff\xff\x00")))),
        framed(message(0x12, b"unknown")),
    ],
    ids=["cut short", "an error behind it", "HTML", "samples without chunks", "histograms", "exemplars", "a count", "a field"],
)
def test_another_form_is_refused(body: bytes) -> None:
    with pytest.raises(PackedAnswerError):
        read(body)


def test_more_samples_than_memory_has_room_for_are_asked_for_in_parts() -> None:
    samples = [(NOW_MS + n, 5.0) for n in range(9)]
    body = encode_frame([(RATE, [samples]), (RATE | {"user": "bob"}, [samples])])
    assert PackedReader(most_samples=18).read(body, from_ms=FROM_MS, until_ms=UNTIL_MS).samples == 18
    with pytest.raises(LongAnswerError):
        PackedReader(most_samples=17).read(body, from_ms=FROM_MS, until_ms=UNTIL_MS)


def test_a_chunk_of_more_samples_than_prometheus_writes_is_refused() -> None:
    with pytest.raises(PackedAnswerError, match="more than 2,048 samples"):
        read(encode_frame([(RATE, [[(NOW_MS + n, 0.0) for n in range(2049)]])]))


def test_a_request_names_times_and_matchers_and_asks_for_chunks() -> None:
    matchers = [
        LabelMatcher(label="__name__", operator="=~", value="kafka_.+"),
        LabelMatcher(label="env", operator="=", value="p"),
    ]
    request = read_request(matchers, from_ms=300, until_ms=70_000)
    query = b"\x08\xac\x02\x10\xf0\xa2\x04" + message(0x1A, b"\x08\x02" + message(0x12, b"__name__") + message(0x1A, b"kafka_.+"))
    query += message(0x1A, message(0x12, b"env") + message(0x1A, b"p"))
    whole = message(0x0A, query) + b"\x12\x01\x01"
    assert pa.Codec("snappy").decompress(request, len(whole), asbytes=True) == whole


def test_a_page_of_remote_read_is_that_of_json(tmp_path: Path) -> None:
    samples = [(NOW_MS + 15_000 * n + 7, value) for n, value in enumerate([5.9, 0.0, math.nan, 1.25e6, -1.0, math.inf])]
    throttle = {**RATE, "__name__": "kafka_server_quota_throttle_time"}
    series: list[tuple[dict[str, str], list[tuple[int, float]]]] = [
        (RATE, samples),
        ({**RATE, "user": "bob"}, samples[:2]),
        (throttle, [(NOW_MS + 7, 7284.0), (NOW_MS + 15_007, math.nan)]),
    ]
    shown = {"nan": "NaN", "inf": "+Inf"}
    rows = [{"metric": labels, "values": [[at / 1000, shown.get(repr(v), repr(v))] for at, v in some]} for labels, some in series]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}).encode()
    packed = read(encode_frame([(labels, [some]) for labels, some in series]))
    pages = []
    answers: list[bytes | PackedAnswer] = [body, packed]
    for number, answer in enumerate(answers):
        path = tmp_path / f"{number}.parquet"
        with PageWriter(path, AnswerReader()) as page:
            page.add(answer, after_s=NOW_MS / 1000)
            page.finish(until_s=NOW_MS / 1000 + 3600, complete=True)
        pages.append(path.read_bytes())
    assert pages[0] == pages[1]
