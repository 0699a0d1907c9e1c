"""Pixels of a PNG as Chromium writes it: 8 bits a channel, with or without transparency, not interlaced."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TypeAlias

Pixel: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Rows of pixels, from the top."""

    width: int
    height: int
    rows: tuple[tuple[Pixel, ...], ...]

    def at(self, x: float, y: float) -> Pixel:
        """The pixel at parts of the width and height, 0 to 1."""
        return self.rows[min(int(y * self.height), self.height - 1)][min(int(x * self.width), self.width - 1)]


def picture(png: bytes) -> Picture:
    """Decode (RFC 2083). Raises ``AssertionError`` for another kind of PNG."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, data = 8, b""
    width = height = channels = 0
    while place < len(png):
        (size,) = struct.unpack(">I", png[place : place + 4])
        kind, body = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            channels = {2: 3, 6: 4}[color]
        elif kind == b"IDAT":
            data += body
        place += 12 + size
    raw = zlib.decompress(data)
    stride = width * channels
    before = bytes(stride)
    rows = []
    for number in range(height):
        start = number * (stride + 1)
        before = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), before, channels)
        rows.append(tuple((before[x], before[x + 1], before[x + 2]) for x in range(0, stride, channels)))
    return Picture(width=width, height=height, rows=tuple(rows))


def _unfiltered(kind: int, line: bytearray, above: bytes, channels: int) -> bytes:
    for place in range(len(line)):
        left = line[place - channels] if place >= channels else 0
        corner = above[place - channels] if place >= channels else 0
        line[place] = (line[place] + _predicted(kind, left, above[place], corner)) & 255
    return bytes(line)


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda one: abs(guess - one))
    return (0, left, up, (left + up) // 2)[kind]
