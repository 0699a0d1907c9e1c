"""The clients of a folder of cells, added up over its segments and kept beside them: a long history has each in every one."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from reconciler.traffic.cells.segments import SERIES, Segment, SegmentFolder
from reconciler.traffic.sources.series_key import IDENTITY

_SUMS: Final = ("requests", "amount", "throttled")
_LARGEST: Final = "largest"
COLUMNS: Final = ("series", *IDENTITY, *_SUMS, _LARGEST)


def clients_of(folder: SegmentFolder, segments: Sequence[Segment]) -> pa.Table:
    """``COLUMNS``, one row a client, in no order. No row when no segment has any."""
    kept = folder.clients(segments)
    if kept.exists():
        # What cannot be read is made anew from what it is the sum of.
        with contextlib.suppress(OSError, pa.ArrowException):
            return pq.read_table(kept, columns=list(COLUMNS), partitioning=None)
    return _added_up(folder, segments)


def clients_of_segment(folder: SegmentFolder, segment: Segment) -> pa.Table:
    """Columns ``series`` and ``IDENTITY``, one row a client: its number in this segment."""
    return _read(folder, (segment,), ("series", *IDENTITY))


def keep_clients(folder: SegmentFolder) -> None:
    """Write them for the next reader, and forget those of other segments. Where that is not possible, reading takes longer."""
    segments = folder.segments()
    target = folder.clients(segments)
    with contextlib.suppress(OSError):
        target.parent.mkdir(exist_ok=True)
        if not target.exists():
            made = target.with_name(f".{uuid.uuid4().hex}")
            try:
                pq.write_table(_added_up(folder, segments), made, compression="zstd")
                made.replace(target)
            finally:
                made.unlink(missing_ok=True)
        for other in target.parent.iterdir():
            if other != target:
                other.unlink()


def _added_up(folder: SegmentFolder, segments: Sequence[Segment]) -> pa.Table:
    table = _read(folder, segments, COLUMNS)
    if not table.num_rows:
        return table
    added = table.group_by(["series", *IDENTITY]).aggregate([*((name, "sum") for name in _SUMS), (_LARGEST, "max")])
    renamed = {f"{name}_sum": name for name in _SUMS} | {f"{_LARGEST}_max": _LARGEST}
    return added.rename_columns([renamed.get(name, name) for name in added.column_names]).select(list(COLUMNS))


def _read(folder: SegmentFolder, segments: Sequence[Segment], columns: Sequence[str]) -> pa.Table:
    files = folder.files(segments, SERIES)
    if not files:
        return pa.table({name: [] for name in columns})
    names = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(dictionary_columns=["kind", "user", "client_id"]))
    return ds.dataset(files, format=names).to_table(columns=list(columns)).unify_dictionaries()
