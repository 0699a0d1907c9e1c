"""Prometheus's remote read protocol: the same raw samples as those of a query, as doubles instead of text.

A sample takes 9 bytes where its value is 0 and 18 otherwise, as long as its time is between 2004 and 2109: the message's tag and
length, the value's tag and eight bytes unless it is 0, the time's tag and six bytes. So samples of all series are decoded at once
by numpy, and whatever has another form is refused: the caller then asks for JSON.

Source: Prometheus documentation, "Remote Read API", and its ``prompb/remote.proto`` and ``prompb/types.proto``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.errors import TrafficError
from reconciler.model import LabelMatcher
from reconciler.traffic.kernels.sampled_rate import Flags, Integers

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
Unsigned = np.ndarray[tuple[int], np.dtype[np.uint64]]
_OPERATORS: Final = {"=": 0, "!=": 1, "=~": 2, "!~": 3}
_MOST_BYTES: Final = 512 * 1024 * 1024
_MOST_VARINT: Final = 10
_LABEL: Final = 0x0A
_SAMPLE: Final = 0x12
_UNIT: Final = 9
_TIME_TAG: Final = 0x10
_VALUE_FOLLOWS: Final = 0x0910
"""Behind the tag of a sample: a length of 16, and the tag of the value. Little-endian."""
_ONLY_TIME: Final = 0x1007
"""A length of 7, and the tag of the time."""
_EVEN: Final = np.uint64(0x007F_007F_007F)
_ODD: Final = np.uint64(0x7F00_7F00_7F00)
_IN_CACHE: Final = 1 << 15
_MORE_BITS: Final = np.uint64(0x8080_8080_8080)
"""Of a time's six bytes: set in all but the last one."""
_LAST_BIT: Final = np.uint64(0x8000_0000_0000)
_STALE: Final = np.uint64(0x7FF0_0000_0000_0002)
"""The bits of the NaN with which Prometheus marks the end of a series: no sample."""


class PackedAnswerError(TrafficError):
    """An answer that is not one of remote read, or that has samples in another form than the usual ones."""


@dataclass(frozen=True, slots=True)
class PackedAnswer:
    """The body of an answer, as it came."""

    body: bytes


@dataclass(frozen=True, slots=True)
class PackedSeries:
    """``labels``: the encoded labels, for ``read_labels``."""

    labels: bytes
    ts_ms: Integers
    values: Floats


def read_request(matchers: Sequence[LabelMatcher], *, from_ms: int, until_ms: int) -> bytes:
    """The body of a request for the samples from ``from_ms`` to ``until_ms``."""
    query = b"\x08" + _varint(from_ms) + b"\x10" + _varint(until_ms)
    for matcher in matchers:
        operator = _OPERATORS[matcher.operator]
        kind = b"\x08" + _varint(operator) if operator else b""
        query += _field(
            0x1A, kind + _field(0x12, matcher.label.encode()) + _field(0x1A, matcher.value.encode("utf-8", "replace"))
        )
    return bytes(pa.Codec("snappy").compress(_field(0x0A, query), asbytes=True))


def read_packed(answer: PackedAnswer) -> list[PackedSeries]:
    """The series that have samples, in the order of the answer. Raises ``PackedAnswerError``."""
    data = _unpacked(answer.body)
    try:
        spans = list(_series(data))
    except (IndexError, ValueError) as error:
        raise PackedAnswerError("the answer of remote read is cut short") from error
    spans = [span for span in spans if span[2] > span[1]]
    if not spans:
        return []
    whole = np.frombuffer(data, dtype=np.uint8)
    lengths = np.asarray([end - begin for _, begin, end in spans], dtype=np.int64)
    if np.any(lengths % _UNIT):
        raise PackedAnswerError("remote read answers with samples in another form")
    ts_ms, values, counts = _samples(np.concatenate([whole[begin:end] for _, begin, end in spans]), lengths // _UNIT)
    ends = np.cumsum(counts)
    places = zip((ends - counts).tolist(), ends.tolist(), strict=True)
    return [
        PackedSeries(labels, ts_ms[begin:end], values[begin:end])
        for (labels, _, _), (begin, end) in zip(spans, places, strict=True)
        if end > begin
    ]


def read_labels(encoded: bytes) -> dict[str, str]:
    """The labels of a series, with ``__name__``. Raises ``PackedAnswerError``."""
    try:
        return dict(_labels(encoded))
    except (IndexError, ValueError) as error:
        raise PackedAnswerError("the labels of a series cannot be read") from error


def _unpacked(body: bytes) -> bytes:
    try:
        size, _ = _read_varint(body, 0)
        if size > _MOST_BYTES:
            raise PackedAnswerError(f"remote read answers with more than {_MOST_BYTES >> 20} MiB")
        return bytes(pa.Codec("snappy").decompress(body, size, asbytes=True))
    except (IndexError, ValueError, OSError) as error:
        raise PackedAnswerError("the answer is not one of remote read") from error


def _series(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Encoded labels, and where the samples begin and end. Raises ``IndexError`` and ``ValueError``."""
    for begin, end in _messages(data, 0, len(data)):
        for first, last in _messages(data, begin, end):
            at = first
            while at < last and data[at] == _LABEL:
                length, at = _read_varint(data, at + 1)
                at += length
            if at > last:
                raise ValueError
            yield data[first:at], at, last


def _messages(data: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the messages of field 1 are. Another field is an error."""
    while at < end:
        if data[at] != _LABEL:
            raise ValueError
        length, at = _read_varint(data, at + 1)
        if at + length > end:
            raise ValueError
        yield at, at + length
        at += length


def _labels(encoded: bytes) -> Iterable[tuple[str, str]]:
    for begin, end in _messages(encoded, 0, len(encoded)):
        texts = {0x0A: "", 0x12: ""}
        at = begin
        while at < end:
            tag = encoded[at]
            length, at = _read_varint(encoded, at + 1)
            if tag not in texts or at + length > end:
                raise ValueError
            texts[tag] = encoded[at : at + length].decode("utf-8", "replace")
            at += length
        yield texts[0x0A], texts[0x12]


def _samples(data: Bytes, units: Integers) -> tuple[Integers, Floats, Integers]:
    """Times, values, and how many samples each series has, of series with so many units of nine bytes."""
    count = len(data) // _UNIT
    starts = np.cumsum(units) - units
    tags = np.ndarray(count, dtype=np.uint8, buffer=data.data, strides=(_UNIT,)).copy()
    words = np.ndarray(count, dtype="<u8", buffer=data.data, offset=1, strides=(_UNIT,)).copy()
    # The bytes behind the tag decide: no other unit can have these two there.
    kinds = words.astype(np.uint16)
    has_value = kinds == _VALUE_FOLLOWS
    second = np.zeros(count, dtype=np.bool_)
    second[1:] = has_value[:-1]
    last = ~has_value
    times = words[last] >> np.uint64(16)
    is_usual = (
        not has_value[-1]
        and not np.any(second & has_value)
        and not np.any(second[starts])
        and np.all((tags == _SAMPLE) | second)
        and np.all(np.where(second, kinds >> 8 == _TIME_TAG, has_value | (kinds == _ONLY_TIME)))
        and np.all(times & _MORE_BITS == _MORE_BITS ^ _LAST_BIT)
    )
    if not is_usual:
        raise PackedAnswerError("remote read answers with samples in another form")
    values = np.zeros(len(times))
    if count > 1:
        doubles = np.ndarray(count - 1, dtype="<f8", buffer=data.data, offset=3, strides=(_UNIT,))
        values[second[last]] = doubles[has_value[:-1]]
    counts = np.add.reduceat(last, starts, dtype=np.int64)
    return _without_stale(_without_more_bits(times), values, counts)


def _without_more_bits(times: Unsigned) -> Integers:
    """Six groups of seven bits, the lowest one first, each in a byte of its own, as one number."""
    packed = np.empty(len(times), dtype=np.int64)
    for begin in range(0, len(times), _IN_CACHE):
        part = times[begin : begin + _IN_CACHE]
        pairs = part & _EVEN | (part & _ODD) >> np.uint64(1)
        packed[begin : begin + _IN_CACHE] = (
            pairs & np.uint64(0x3FFF)
            | (pairs & np.uint64(0x3FFF << 16)) >> np.uint64(2)
            | (pairs & np.uint64(0x3FFF << 32)) >> np.uint64(4)
        )
    return packed


def _without_stale(ts_ms: Integers, values: Floats, counts: Integers) -> tuple[Integers, Floats, Integers]:
    kept: Flags = values.view(np.uint64) != _STALE
    if kept.all():
        return ts_ms, values, counts
    return ts_ms[kept], values[kept], np.add.reduceat(kept.astype(np.int64), np.cumsum(counts) - counts)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number, and the place behind it."""
    number = data[at]
    if number < 0x80:
        return number, at + 1
    number &= 0x7F
    for place in range(1, _MOST_VARINT):
        byte = data[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise ValueError


def _field(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + _varint(len(content)) + content
