"""The quota messages as we read and write them, against kafka-python's own classes, and against bytes that no broker sends."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.protocol.admin import AlterClientQuotasRequest, AlterClientQuotasResponse, DescribeClientQuotasResponse

from reconciler.backends.broker.quota_messages import (
    MalformedAnswerError,
    RawAnswer,
    describe_request,
    read_alter_answer,
    read_describe_answer,
    write_alter_body,
)
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import Alteration
from reconciler.ports import EntityFilter
from tests.builders import pair, user

Parts = tuple[tuple[str, str | None], ...]
Entries = Sequence[tuple[Parts, Mapping[str, float]]]

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
LENGTHS = st.sampled_from([0, 1, 125, 126, 127, 128, 300, 32_767])
"""Around 127 bytes a compact length takes its second byte."""

NAMES = st.one_of(st.none(), TEXT, LENGTHS.map(lambda length: "x" * length))
WORDS = st.one_of(
    st.sampled_from(["user", "client-id", "ip", "producer_byte_rate", "request_percentage"]), TEXT, LENGTHS.map("k".ljust)
)
ENTITIES = st.dictionaries(WORDS, NAMES, min_size=1, max_size=3).map(lambda names: tuple(names.items()))
QUOTAS = st.dictionaries(WORDS, st.floats(allow_nan=False), max_size=4)
ENTRIES = st.lists(st.tuples(ENTITIES, QUOTAS), max_size=6)


def entity_of(parts: Parts) -> Entity:
    return Entity.of({kind: DEFAULT if name is None else name for kind, name in parts})


def described(entries: Entries | None, code: int = 0, message: str | None = None) -> DescribeClientQuotasResponse:
    row = DescribeClientQuotasResponse.EntryData
    rows = None
    if entries is not None:
        rows = [
            row(
                entity=[row.EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
                values=[row.ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for parts, quotas in entries
        ]
    return DescribeClientQuotasResponse(throttle_time_ms=3, error_code=code, error_message=message, entries=rows)


def altered(rows: Sequence[tuple[int, str | None, Parts]]) -> AlterClientQuotasResponse:
    row = AlterClientQuotasResponse.EntryData
    entries = [
        row(error_code=code, error_message=text, entity=[row.EntityData(entity_type=t, entity_name=n) for t, n in parts])
        for code, text, parts in rows
    ]
    return AlterClientQuotasResponse(throttle_time_ms=3, entries=entries)


def answer_of(body: bytes) -> RawAnswer:
    """What the library is given for an answer with these bytes."""
    return describe_request(EntityFilter()).decode(io.BytesIO(body))


def answer(message: Any) -> RawAnswer:
    return answer_of(bytes(message.encode(version=1)))


def compact(text: str | None) -> bytes:
    if text is None:
        return b"\x00"
    raw = text.encode()
    return varint(len(raw) + 1) + raw


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


@given(ENTRIES)
def test_an_answer_is_read_as_kafka_python_reads_it(entries):
    body = answer(described(entries)).body
    theirs = DescribeClientQuotasResponse.decode(body, version=1)
    found = read_describe_answer(answer_of(body))
    assert found.error_code == 0
    assert found.entities == {
        entity_of(tuple((part.entity_type, part.entity_name) for part in entry.entity)): {v.key: v.value for v in entry.values}
        for entry in theirs.entries
    }


@given(st.integers(-1, 120), NAMES)
def test_an_error_is_read_with_its_words(code, message):
    found = read_describe_answer(answer(described(None, code, message)))
    assert (found.error_code, found.error_message, found.entities) == (code, message, {})


@given(st.lists(st.tuples(st.integers(-1, 120), NAMES, ENTITIES), max_size=6))
def test_what_became_of_each_entity_is_read_as_kafka_python_reads_it(rows):
    assert read_alter_answer(answer(altered(rows))) == {entity_of(parts): (code, text) for code, text, parts in rows}


@given(
    st.lists(st.tuples(ENTITIES, st.dictionaries(WORDS, st.one_of(st.none(), st.floats()), max_size=4)), max_size=6),
    st.booleans(),
)
def test_a_request_is_written_as_kafka_python_writes_it(entries, validate_only):
    alterations = [Alteration(entity=entity_of(parts), ops=ops) for parts, ops in entries]
    row = AlterClientQuotasRequest.EntryData
    rows = [
        row(
            entity=[row.EntityData(entity_type=t, entity_name=None if n is DEFAULT else n) for t, n in a.entity.parts],
            ops=[row.OpData(key=k, value=0.0 if v is None else v, remove=v is None) for k, v in a.ops.items()],
        )
        for a in alterations
    ]
    theirs = AlterClientQuotasRequest(entries=rows, validate_only=validate_only)
    assert write_alter_body(alterations, validate_only=validate_only) == theirs.encode(version=1)


def test_a_request_is_the_bytes_that_kafkas_own_classes_write():
    body = (
        "0203057573657206616c696365000a636c69656e742d69640000031370726f64756365725f627974655f726174654090000000000000000013"
        "636f6e73756d65725f627974655f7261746500000000000000000100000100"
    )
    alteration = Alteration(entity=pair("alice", DEFAULT), ops={"producer_byte_rate": 1024.0, "consumer_byte_rate": None})
    assert write_alter_body([alteration], validate_only=True).hex() == body


def test_the_bytes_that_kafkas_own_classes_write_are_read():
    body = "000000050000000202057573657200000213726571756573745f70657263656e746167654029000000000000000000"
    raw = answer_of(bytes.fromhex(body))
    assert raw.throttle_time_ms == 5
    assert read_describe_answer(raw).entities == {user(): {"request_percentage": 12.5}}


@pytest.mark.parametrize("name", ["x" * 32_768, "é" * 16_384, "\ud800"])
def test_text_that_no_request_can_hold_is_not_written(name):
    with pytest.raises(ValueError, match=r"longer than 32767 bytes|surrogates not allowed"):
        write_alter_body([Alteration(entity=user(name), ops={"producer_byte_rate": 1.0})], validate_only=True)


TAGS = st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=200)), max_size=2)


@given(st.data(), ENTRIES)
def test_tagged_fields_of_the_future_are_passed_over(data, entries):
    def tags() -> bytes:
        drawn = data.draw(TAGS)
        return varint(len(drawn)) + b"".join(varint(number) + varint(len(raw)) + raw for number, raw in drawn)

    describing = struct.pack(">ih", 0, 0) + compact(None) + varint(len(entries) + 1)
    altering = struct.pack(">i", 0) + varint(len(entries) + 1)
    for parts, quotas in entries:
        entity = varint(len(parts) + 1) + b"".join(compact(kind) + compact(name) + tags() for kind, name in parts)
        values = b"".join(compact(key) + struct.pack(">d", value) + tags() for key, value in quotas.items())
        describing += entity + varint(len(quotas) + 1) + values + tags()
        altering += struct.pack(">h", 0) + compact("why") + entity + tags()
    found = read_describe_answer(answer_of(describing + tags())).entities
    assert found == {entity_of(parts): dict(quotas) for parts, quotas in entries}
    assert set(read_alter_answer(answer_of(altering + tags()))) == set(found)


def is_read_or_refused(body: bytes) -> bool:
    """Whether the bytes were taken for an answer; anything but the one error fails the test."""
    raw = answer_of(body)
    taken = [is_read(read, raw) for read in (read_describe_answer, read_alter_answer)]
    return any(taken)


def is_read(read: Callable[[RawAnswer], object], raw: RawAnswer) -> bool:
    try:
        read(raw)
    except MalformedAnswerError:
        return False
    return True


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body):
    is_read_or_refused(body)


@given(ENTRIES, st.data())
def test_an_answer_with_some_bytes_changed_is_read_or_refused(entries, data):
    body = bytearray(answer(described(entries)).body)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    is_read_or_refused(bytes(body))


ENTRY: Entries = [((("user", "alice"), ("client-id", None)), {"producer_byte_rate": 1024.0}), ((("user", "bob"),), {"k": 1.0})]


@given(ENTRIES)
@example(ENTRY)
def test_an_answer_cut_anywhere_or_with_more_at_its_end_is_refused(entries):
    bodies = [
        (read_describe_answer, answer(described(entries)).body),
        (read_alter_answer, answer(altered([(0, "why", parts) for parts, _ in entries])).body),
    ]
    for read, body in bodies:
        # Of a long one only the ends: a name of 30,000 bytes is cut in its middle often enough.
        cuts = range(len(body)) if len(body) < 500 else (*range(100), *range(len(body) - 100, len(body)))
        assert [wrong for wrong in (*(body[:cut] for cut in cuts), body + b"\x00") if is_read(read, answer_of(wrong))] == []


def test_no_count_is_believed_before_its_items_are_there():
    most, head = b"\xff\xff\xff\xff\x0f", struct.pack(">ih", 0, 0) + b"\x00"
    for body in (head + most, head + b"\x02" + most, struct.pack(">i", 0) + most):
        tracemalloc.start()
        try:
            assert not is_read_or_refused(body)
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()
