"""Chunks and frames as a Prometheus server writes them, one bit after the other."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

TimedValues: TypeAlias = Sequence[tuple[int, float]]
_MOST_LEADING = 31


def varint(number: int) -> bytes:
    """As protocol buffers and Go write it."""
    rest, low = divmod(number, 0x80)
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def message(tag: int, content: bytes) -> bytes:
    """A field of protocol buffers with a length."""
    return bytes([tag]) + varint(len(content)) + content


def encode_chunk(samples: TimedValues) -> bytes:
    """The bytes of a chunk of type XOR."""
    writer = _Bits()
    distance = before_ms = before_bits = 0
    leading, trailing = 255, 0
    for number, (at_ms, value) in enumerate(samples):
        bits = int.from_bytes(struct.pack(">d", value))
        if number == 0:
            writer.add_bytes(varint(at_ms << 1 if at_ms >= 0 else (-at_ms << 1) - 1))
            writer.add(bits, 64)
        else:
            if number == 1:
                writer.add_bytes(varint((at_ms - before_ms) % 2**64))
            else:
                writer.change(at_ms - before_ms - distance)
            distance = at_ms - before_ms
            leading, trailing = writer.difference(bits ^ before_bits, leading, trailing)
        before_ms, before_bits = at_ms, bits
    return struct.pack(">H", len(samples)) + writer.whole()


class _Bits:
    def __init__(self) -> None:
        self._digits: list[str] = []

    def add(self, number: int, size: int) -> None:
        self._digits.append(f"{number % 2**size:0{size}b}")

    def add_bytes(self, text: bytes) -> None:
        for byte in text:
            self.add(byte, 8)

    def change(self, change: int) -> None:
        if change == 0:
            self.add(0, 1)
            return
        for prefix, size in (("10", 14), ("110", 17), ("1110", 20)):
            if -(2 ** (size - 1)) + 1 <= change <= 2 ** (size - 1):
                self._digits.append(prefix)
                self.add(change, size)
                return
        self._digits.append("1111")
        self.add(change, 64)

    def difference(self, bits: int, leading: int, trailing: int) -> tuple[int, int]:
        if bits == 0:
            self.add(0, 1)
            return leading, trailing
        new_leading = min(64 - bits.bit_length(), _MOST_LEADING)
        new_trailing = (bits & -bits).bit_length() - 1
        if leading != 255 and new_leading >= leading and new_trailing >= trailing:
            self.add(0b10, 2)
        else:
            leading, trailing = new_leading, new_trailing
            self.add(0b11, 2)
            self.add(leading, 5)
            self.add(64 - leading - trailing, 6)
        self.add(bits >> trailing, 64 - leading - trailing)
        return leading, trailing

    def whole(self) -> bytes:
        digits = "".join(self._digits)
        digits += "0" * (-len(digits) % 8)
        return int(digits, 2).to_bytes(len(digits) // 8) if digits else b""


def encode_labels(labels: Mapping[str, str]) -> bytes:
    """Labels of a series in a message."""
    pairs = (message(0x0A, message(0x0A, name.encode()) + message(0x12, text.encode())) for name, text in labels.items())
    return b"".join(pairs)


def encode_chunk_message(samples: TimedValues, *, kind: int = 1) -> bytes:
    """A chunk with its times, as a field of a series."""
    times = b"\x08" + varint(samples[0][0]) + b"\x10" + varint(samples[-1][0])
    return message(0x12, times + b"\x18" + varint(kind) + message(0x22, encode_chunk(samples)))


def encode_frame(series: Iterable[tuple[Mapping[str, str], Sequence[TimedValues]]]) -> bytes:
    """A frame of an answer of remote read, with the chunks of some series. Its checksum is not computed."""
    content = b"".join(
        message(0x0A, encode_labels(labels) + b"".join(map(encode_chunk_message, chunks))) for labels, chunks in series
    )
    return varint(len(content)) + b"\x00" * 4 + content
