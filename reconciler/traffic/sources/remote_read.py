"""Prometheus's remote read protocol: the same raw samples as those of a query, as the compressed chunks that the server stores.

The server decodes nothing. An answer is a sequence of frames: a length, a checksum, and a message with the chunks of some series.
Whatever has another form is refused: the caller then asks for JSON. The checksum (CRC-32C) is left to TCP and TLS.

Source: Prometheus documentation, "Remote Read API" (``STREAMED_XOR_CHUNKS``), ``prompb/remote.proto`` and ``prompb/types.proto``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from reconciler.errors import TrafficError
from reconciler.model import LabelMatcher
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.sources.xor_chunks import Unsigned, decode_chunks

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
_OPERATORS: Final = {"=": 0, "!=": 1, "=~": 2, "!~": 3}
_STREAMED: Final = b"\x12\x01\x01"
"""The only accepted type of answers: ``STREAMED_XOR_CHUNKS``."""
_MOST_VARINT: Final = 10
_CHECKSUM_BYTES: Final = 4
_LABEL: Final = 0x0A
_SERIES: Final = 0x0A
_QUERY: Final = 0x10
_CHUNK: Final = 0x12
_IS_XOR: Final = b"\x18\x01"
_CHUNKS_AT_ONCE: Final = 8192
_MOST_SAMPLES: Final = 16_000_000
_MOST_KNOWN: Final = 32 * 1024 * 1024
"""Bytes of labels that are remembered from answer to answer."""
_STALE: Final = np.uint64(0x7FF0_0000_0000_0002)
"""The bits of the NaN with which Prometheus marks the end of a series: no sample."""


class PackedAnswerError(TrafficError):
    """An answer that is not one of remote read, or that has samples in another form than the usual one."""


class LongAnswerError(TrafficError):
    """More samples than fit into memory: ask for a shorter time."""


@dataclass(frozen=True, slots=True)
class PackedSeries:
    """A series with samples. ``labels``: as JSON."""

    labels: bytes
    ts_ms: Integers
    values: Floats


@dataclass(frozen=True, slots=True)
class PackedAnswer:
    """The series that have samples, in the order of the answer."""

    series: tuple[PackedSeries, ...]
    samples: int


@dataclass(slots=True)
class _Chunks:
    """Chunks of an answer; ``counts``: how many each series has."""

    labels: list[bytes]
    counts: list[int]
    data: list[bytes]


def read_request(matchers: Sequence[LabelMatcher], *, from_ms: int, until_ms: int) -> bytes:
    """The body of a request for the samples from ``from_ms`` to ``until_ms``."""
    query = b"\x08" + _varint(from_ms) + b"\x10" + _varint(until_ms)
    for matcher in matchers:
        operator = _OPERATORS[matcher.operator]
        kind = b"\x08" + _varint(operator) if operator else b""
        query += _field(
            0x1A, kind + _field(0x12, matcher.label.encode()) + _field(0x1A, matcher.value.encode("utf-8", "replace"))
        )
    return bytes(pa.Codec("snappy").compress(_field(0x0A, query) + _STREAMED, asbytes=True))


class PackedReader:
    """Decodes answers, and remembers the labels that it has seen. Threads may share it."""

    def __init__(self, *, most_samples: int = _MOST_SAMPLES) -> None:
        """``most_samples``: of an answer."""
        self._most_samples = most_samples
        self._known: dict[bytes, bytes] = {}
        self._known_bytes = 0

    def read(self, body: bytes, *, from_ms: int, until_ms: int) -> PackedAnswer:
        """The samples of this time; a chunk may have others. Raises ``PackedAnswerError`` and ``LongAnswerError``."""
        chunks = _Chunks([], [], [])
        try:
            for begin, end in _frames(body):
                _add_frame(chunks, body, begin, end, from_ms, until_ms)
            ts_ms, values, counts = _samples(chunks.data, from_ms, until_ms, self._most_samples)
            labels = [self._labels(encoded) for encoded in chunks.labels]
        except (IndexError, ValueError) as error:
            raise PackedAnswerError(f"the answer is not one of remote read ({error})") from error
        of_chunks = np.concatenate([[0], np.cumsum(counts)])
        places = of_chunks[np.concatenate([[0], np.cumsum(chunks.counts, dtype=np.int64)])].tolist()
        series = [
            PackedSeries(json, ts_ms[begin:end], values[begin:end])
            for json, begin, end in zip(labels, places, places[1:], strict=False)
            if end > begin
        ]
        return PackedAnswer(tuple(series), len(ts_ms))

    def _labels(self, encoded: bytes) -> bytes:
        known = self._known.get(encoded)
        if known is None:
            known = msgspec.json.encode(dict(_labels(encoded)))
            if self._known_bytes > _MOST_KNOWN:
                self._known, self._known_bytes = {}, 0
            self._known[encoded] = known
            self._known_bytes += len(encoded) + len(known)
        return known


def _frames(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(data):
        length, at = _read_varint(data, at)
        at += _CHECKSUM_BYTES
        if at + length > len(data):
            raise ValueError("a frame is cut short")
        yield at, at + length
        at += length


def _add_frame(chunks: _Chunks, data: bytes, at: int, end: int, from_ms: int, until_ms: int) -> None:
    while at < end:
        tag = data[at]
        length, at = _read_varint(data, at + 1)
        if tag == _QUERY:
            continue
        if tag != _SERIES or at + length > end:
            raise ValueError("a field is not known")
        _add_series(chunks, data, at, at + length, from_ms, until_ms)
        at += length


def _add_series(chunks: _Chunks, data: bytes, at: int, end: int, from_ms: int, until_ms: int) -> None:
    """A frame goes on with the last series of the one before, where that has more chunks than one frame has room for."""
    first = at
    while at < end and data[at] == _LABEL:
        length, at = _read_varint(data, at + 1)
        at += length
    if at > end:
        raise ValueError("a label is cut short")
    labels = data[first:at]
    before = len(chunks.data)
    while at < end:
        if data[at] != _CHUNK:
            raise ValueError("a field is not known")
        length, at = _read_varint(data, at + 1)
        if at + length > end:
            raise ValueError("a chunk is cut short")
        if (chunk := _chunk(data, at, at + length, from_ms, until_ms)) is not None:
            chunks.data.append(chunk)
        at += length
    if chunks.labels and chunks.labels[-1] == labels:
        chunks.counts[-1] += len(chunks.data) - before
    else:
        chunks.labels.append(labels)
        chunks.counts.append(len(chunks.data) - before)


def _chunk(data: bytes, at: int, end: int, from_ms: int, until_ms: int) -> bytes | None:
    """The bytes of a chunk, ``None`` without a sample in this time."""
    if data[at] != 0x08:
        raise ValueError("a chunk is of another form")
    first_ms, at = _read_varint(data, at + 1)
    if data[at] != 0x10:
        raise ValueError("a chunk is of another form")
    last_ms, at = _read_varint(data, at + 1)
    if data[at : at + 2] != _IS_XOR or data[at + 2] != 0x22:
        raise ValueError("a chunk is of another form")
    length, at = _read_varint(data, at + 3)
    if at + length != end:
        raise ValueError("a chunk is of another form")
    return data[at:end] if first_ms <= until_ms and last_ms >= from_ms else None


def _samples(chunks: Sequence[bytes], from_ms: int, until_ms: int, most: int) -> tuple[Integers, Floats, Integers]:
    """Times and values of the samples in this time, and how many each chunk has."""
    parts: list[tuple[Integers, Unsigned, Integers]] = [
        (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
    ]
    total = 0
    for begin in range(0, len(chunks), _CHUNKS_AT_ONCE):
        some = decode_chunks(chunks[begin : begin + _CHUNKS_AT_ONCE])
        kept = (some.ts_ms >= from_ms) & (some.ts_ms <= until_ms) & (some.bits != _STALE)
        ts_ms, bits, counts = some.ts_ms, some.bits, some.counts
        if not kept.all():
            before = np.concatenate([[0], np.cumsum(kept)])
            ends = np.cumsum(counts)
            ts_ms, bits, counts = ts_ms[kept], bits[kept], before[ends] - before[ends - counts]
        total += len(ts_ms)
        if total > most:
            raise LongAnswerError(f"The server answers with more than {most:,} samples")
        parts.append((ts_ms, bits, counts))
    times, values, of_chunks = (np.concatenate(some) for some in zip(*parts, strict=True))
    return times, values.view(np.float64), of_chunks


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
