"""The text of CSV files as columns of bytes: any number of files, whole or in parts, plain or compressed."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from reconciler.errors import TrafficError
from reconciler.model import escaped

BLOCK: Final = 16 * 1024 * 1024
"""Bytes that are read at a time."""
_COMPRESSED: Final = (".gz", ".zst")
_BOM: Final = b"\xef\xbb\xbf"
_LONGEST_HEADER: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CsvPart:
    """The rows of one file that begin at ``begin`` or later, before ``end``; a compressed file is one part."""

    path: str
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Bytes, as they are stored."""
        return self.end - self.begin


def csv_parts(files: Sequence[str], size: int = 4 * BLOCK) -> tuple[CsvPart, ...]:
    """All of these files."""
    sizes = [(path, Path(path).stat().st_size) for path in files]
    return tuple(
        CsvPart(path, begin, min(begin + step, whole))
        for path, whole in sizes
        for step in (whole if path.endswith(_COMPRESSED) else size,)
        for begin in range(0, whole, max(1, step))
    )


def header_of(path: str, delimiter: str) -> tuple[str, ...]:
    """The names of a file's columns; none for an empty file. Raises ``TrafficError`` for a compressed file that is damaged."""
    return _names(_header_line(path), delimiter)


def csv_columns(
    parts: Iterable[CsvPart], names: Sequence[str], delimiter: str, *, apart: bool
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The columns of these names, as bytes, null where a cell is empty or the file has no such column.

    With each batch the file, which means something only when files are read ``apart``: else those with equal headers are read
    together, since a thousand small files would cost far more than one. Raises ``TrafficError`` as ``header_of``.
    """
    held: list[bytes] = []
    last, size, path = b"", 0, ""
    for part in parts:
        header = _header_line(part.path)
        for block in _blocks(part, len(header)):
            if held and (apart or header != last or size + len(block) > BLOCK):
                yield path, _columns(last, b"".join(held), names, delimiter)
                held, size = [], 0
            held.append(block)
            size += len(block)
            last, path = header, part.path
    if held:
        yield path, _columns(last, b"".join(held), names, delimiter)


def _header_line(path: str) -> bytes:
    try:
        with pa.input_stream(path) as stream:
            text = bytes(stream.read(4096))
            while b"\n" not in text and len(text) < _LONGEST_HEADER and (more := bytes(stream.read(len(text)))):
                text += more
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path) from error
    line, end, _ = text.partition(b"\n")
    return line + end


def _blocks(part: CsvPart, header: int) -> Iterator[bytes]:
    """Whole lines, without the header, each block with a line end at its end."""
    end = sys.maxsize if part.path.endswith(_COMPRESSED) else part.end
    try:
        with pa.input_stream(part.path) as stream:
            at, text = _first_text(stream, part.begin, header)
            while at < end and text:
                # The line that begins before the end is this part's, to its own end.
                stop = text.find(b"\n", max(0, end - 1 - at)) + 1
                last = stop or text.rfind(b"\n") + 1
                if last:
                    yield text[:last]
                if stop:
                    return
                at, text = at + last, text[last:]
                more = bytes(stream.read(BLOCK))
                text += more or (b"\n" if text else b"")
    except (OSError, pa.ArrowException) as error:
        raise _damaged(part.path) from error


def _first_text(stream: pa.NativeFile, begin: int, header: int) -> tuple[int, bytes]:
    """Where the first line of a part begins, and some text from there."""
    if not begin:
        stream.read(header)
        return header, bytes(stream.read(BLOCK))
    # The line before is the other part's, also when it ends right here.
    stream.seek(begin - 1)
    at = begin - 1
    while more := bytes(stream.read(BLOCK)):
        place = more.find(b"\n") + 1
        at += place or len(more)
        if place:
            return at, more[place:] or bytes(stream.read(BLOCK))
    return at, b""


def _columns(header: bytes, body: bytes, names: Sequence[str], delimiter: str) -> pa.RecordBatch:
    """Rows that have too few cells have no others; of rows that have too many the last ones are left out."""
    found = _by_arrow(header, body, names, delimiter) if _lines_are_whole(body) else None
    return found or _line_by_line(header, body, names, delimiter)


def _lines_are_whole(body: bytes) -> bool:
    """Whether no quoted cell goes on in the next line: one quote too many must not swallow all rows after it."""
    if b'"' not in body:
        return True
    text = np.frombuffer(body, dtype=np.uint8)
    quotes = np.cumsum(text == ord('"'))
    return not (quotes[text == ord("\n")] % 2).any()


def _by_arrow(header: bytes, body: bytes, names: Sequence[str], delimiter: str) -> pa.RecordBatch | None:
    text = header.removeprefix(_BOM) + body
    try:
        found = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=list(dict.fromkeys(names)),
                include_missing_columns=True,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except (pa.ArrowException, KeyError):
        return None
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in found.columns], names=found.column_names)


def _line_by_line(header: bytes, body: bytes, names: Sequence[str], delimiter: str) -> pa.RecordBatch:
    there = _names(header, delimiter)
    cells: dict[str, list[bytes | None]] = {name: [] for name in names}
    places = {name: there.index(name) if name in there else -1 for name in cells}
    for line in body.split(b"\n"):
        text = line.rstrip(b"\r").decode("utf-8", "replace")
        if not text:
            continue
        row = next(csv.reader([text], delimiter=delimiter), [])
        for name, place in places.items():
            cells[name].append(row[place].encode() or None if 0 <= place < len(row) else None)
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary()) for values in cells.values()], names=list(cells))


def _names(header: bytes, delimiter: str) -> tuple[str, ...]:
    text = header.removeprefix(_BOM).rstrip(b"\r\n").decode("utf-8", "replace")
    return tuple(next(csv.reader([text], delimiter=delimiter), ()))


def _damaged(path: str) -> TrafficError:
    return TrafficError(
        f"recorded traffic {escaped(path)} is damaged or cut short: take it out, or unpack what is left of it with gzip -dc"
    )
