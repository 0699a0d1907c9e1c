"""Prometheus's compressed chunks of samples, many at once: in each step numpy decodes the next sample of every chunk.

A chunk is the number of its samples in two bytes, and a stream of bits. A time is stored as the change of its distance to
the time before, a value as the bits in which it differs from the one before.
Source: Prometheus, "Chunks Disk Format" (``tsdb/docs/format/chunks.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from reconciler.traffic.kernels.sampled_rate import Integers

Unsigned: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]
_CHUNKS_AT_ONCE: Final = 4096
"""Their state has room in the processor's cache."""
_MOST_COUNT: Final = 2048
"""Of samples in a chunk: Prometheus writes about 120."""
_SAMPLES_AT_ONCE: Final = 1 << 20
_COUNT_BYTES: Final = 2
_PADDING: Final = 24
"""Bytes behind the last chunk that a step may read."""
_MOST_VARINT: Final = 10
_LONG: Final = 15
"""The first four bits of a time whose change takes 64 bits."""
_TIME_BITS: Final = np.asarray([1] * 8 + [16] * 4 + [20] * 2 + [24, 4], dtype=np.uint64)
"""By the first four bits of a time: how many it takes."""
_CHANGE_BITS: Final = np.asarray([0] * 8 + [14] * 4 + [17] * 2 + [20, 0], dtype=np.uint64)
"""How many of these are the change. Shifts by 64 give 0."""
_MOST_CHANGE: Final = np.asarray([0] * 8 + [1 << 13] * 4 + [1 << 16] * 2 + [1 << 19, 0], dtype=np.int64)
"""Above it, a change is a negative one."""
_VALUE_BITS: Final = np.asarray([1, 1, 2, 13], dtype=np.uint64)
"""By the first two bits of a value: equal, equal, differs in the same place, differs in another place."""
_U: Final = np.uint64
_1, _2, _3, _6, _57, _51, _31, _60, _62, _63, _64 = (_U(n) for n in (1, 2, 3, 6, 57, 51, 31, 60, 62, 63, 64))


class ChunkError(ValueError):
    """Bytes that are not a chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSamples:
    """Of several chunks, one after the other. ``bits``: of doubles. ``counts``: how many samples each chunk has."""

    ts_ms: Integers
    bits: Unsigned
    counts: Integers


def decode_chunks(chunks: Sequence[bytes]) -> ChunkSamples:
    """The samples of chunks. Raises ``ChunkError``."""
    counts = np.asarray([int.from_bytes(chunk[:_COUNT_BYTES]) for chunk in chunks], dtype=np.int64)
    sizes = np.asarray([len(chunk) for chunk in chunks], dtype=np.int64)
    if len(counts) and counts.max() > _MOST_COUNT:
        raise ChunkError(f"a chunk has more than {_MOST_COUNT:,} samples")
    # A sample takes two bits at least.
    if np.any(sizes < _COUNT_BYTES) or np.any(counts * 2 > sizes * 8):
        raise ChunkError("a chunk is cut short")
    total = int(counts.sum())
    ts_ms, bits = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.uint64)
    begin = at = 0
    while begin < len(chunks):
        end = min(begin + _CHUNKS_AT_ONCE, len(chunks))
        end = max(begin + 1, min(end, begin + _SAMPLES_AT_ONCE // max(1, int(counts[begin:end].max()))))
        times, values = _decode(chunks[begin:end], counts[begin:end])
        ts_ms[at : at + len(times)], bits[at : at + len(times)] = times, values
        begin, at = end, at + len(times)
    return ChunkSamples(ts_ms=ts_ms, bits=bits, counts=counts)


def _decode(chunks: Sequence[bytes], counts: Integers) -> tuple[Integers, Unsigned]:
    order = np.argsort(-counts, kind="stable")
    longest_first = counts[order]
    # How many chunks have a sample number N, for each N.
    active = len(counts) - np.searchsorted(longest_first[::-1], np.arange(longest_first[0]), side="right")
    stream = _BitStreams(chunks, order)
    times = np.zeros((len(active), len(counts)), dtype=np.int64)
    values = np.zeros((len(active), len(counts)), dtype=np.uint64)
    steps = _Steps(stream, len(counts))
    for number, some in enumerate(active.tolist()):
        times[number, :some], values[number, :some] = steps.next(number, some)
    stream.require_inside()
    if np.array_equal(order, np.arange(len(order))) and longest_first[0] == longest_first[-1]:
        return times.T.ravel(), values.T.ravel()
    place = np.argsort(order, kind="stable")
    kept = np.arange(len(active)) < counts[:, np.newaxis]
    return times[:, place].T[kept], values[:, place].T[kept]


class _BitStreams:
    """Where each chunk is being read. Positions are bits of all chunks one after the other."""

    def __init__(self, chunks: Sequence[bytes], order: Integers) -> None:
        """``order``: the places of the chunks in the order in which they are read."""
        sizes = np.asarray([len(chunk) for chunk in chunks], dtype=np.uint64)
        ends = np.cumsum(sizes)
        text = b"".join([*chunks, bytes(_PADDING + -int(ends[-1]) % 8)])
        self._words = np.frombuffer(text, dtype=">u8").astype(np.uint64)
        self.position = ((ends - sizes + _U(_COUNT_BYTES)) * _U(8))[order]
        self._ends = (ends * _U(8))[order]

    def word(self, position: Unsigned) -> Unsigned:
        """The 64 bits from a position on."""
        place = (position >> _6).view(np.int64)
        offset = position & _63
        first = self._words.take(place, mode="clip")
        first <<= offset
        place += 1
        second = self._words.take(place, mode="clip")
        # A shift by 64 gives 0, where nothing of the next word is needed.
        second >>= _64 - offset
        first |= second
        return first

    def varint(self, count: int) -> Unsigned:
        """The next number of the first chunks, in groups of seven bits."""
        number = np.zeros(count, dtype=np.uint64)
        goes_on = np.ones(count, dtype=np.bool_)
        for group in range(_MOST_VARINT):
            byte = self.word(self.position[:count]) >> _U(56)
            number |= np.where(goes_on, (byte & _U(0x7F)) << _U(7 * group), _U(0))
            self.position[:count] += np.where(goes_on, _U(8), _U(0))
            goes_on &= byte > _U(0x7F)
            if not goes_on.any():
                return number
        raise ChunkError("a time is too long")

    def require_inside(self) -> None:
        """Raise ``ChunkError`` when a chunk was read beyond its end."""
        if np.any(self.position > self._ends):
            raise ChunkError("a chunk is cut short")


class _Steps:
    """The state of all chunks between two samples."""

    def __init__(self, stream: _BitStreams, count: int) -> None:
        self._stream = stream
        self._time = np.zeros(count, dtype=np.int64)
        self._distance = np.zeros(count, dtype=np.int64)
        self._value = np.zeros(count, dtype=np.uint64)
        self._leading = np.zeros(count, dtype=np.uint64)
        self._width = np.zeros(count, dtype=np.uint64)

    def next(self, number: int, some: int) -> tuple[Integers, Unsigned]:
        """Time and value of this sample of the first chunks, which are those that have one."""
        stream, position = self._stream, self._stream.position[:some]
        time, value = self._time[:some], self._value[:some]
        if number == 0:
            zigzag = stream.varint(some)
            time[:] = (zigzag >> _1).view(np.int64) ^ -(zigzag & _1).view(np.int64)
            value[:] = stream.word(position)
            position += _64
            return time, value
        distance = self._distance[:some]
        if number == 1:
            distance[:] = stream.varint(some).view(np.int64)
            word = stream.word(position)
        else:
            change, word = self._change(position)
            distance += change
        time += distance
        value ^= self._difference(position, word)
        return time, value

    def _change(self, position: Unsigned) -> tuple[Integers | int, Unsigned]:
        """How the distance of times changes, and the bits behind it."""
        word = self._stream.word(position)
        kind = (word >> _60).view(np.int64)
        highest = int(kind.max())
        if highest < 8:
            position += _1
            word <<= _1
            return 0, word
        bits, size = _TIME_BITS.take(kind), _CHANGE_BITS.take(kind)
        change = ((word << (bits - size)) >> (_64 - size)).view(np.int64)
        half = _MOST_CHANGE.take(kind)
        change -= (half << 1) * (change > half)
        position += bits
        if highest < _LONG:
            word <<= bits
            return change, word
        is_long = kind == _LONG
        change[is_long] = self._stream.word(position[is_long]).view(np.int64)
        position[is_long] += _64
        return change, self._stream.word(position)

    def _difference(self, position: Unsigned, word: Unsigned) -> Unsigned:
        """The bits in which a value differs from the one before; ``word`` begins with their description."""
        leading, width = self._leading[: len(position)], self._width[: len(position)]
        kind = (word >> _62).view(np.int64)
        is_new = kind == 3
        if is_new.any():
            np.copyto(leading, (word >> _57) & _31, where=is_new)
            # 64 is written as 0.
            np.copyto(width, (((word >> _51) - _1) & _63) + _1, where=is_new)
        size = width * (kind > 1)
        position += _VALUE_BITS.take(kind)
        difference = self._stream.word(position)
        position += size
        difference >>= _64 - size
        difference <<= _64 - leading - width
        return difference
