"""Parquet files cut into parts of about one size, for one worker each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.errors import TrafficError
from reconciler.traffic.sources.normal_form import canonical_rows, file_columns

ROWS_A_PART: Final = 2_000_000
_ROWS_A_BATCH: Final = 1 << 19
_DICTIONARIES: Final = ("user", "client_id", "ip", "kind", "semantics")


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of one file: ``first`` and those after it, before ``end``."""

    path: str
    first: int
    end: int
    rows: int
    columns: frozenset[str]
    """Those that the file has."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Its rows; columns that the file lacks are not there. Memory does not grow with the size of a row group."""
        there = [name for name in columns if name in self.columns]
        names = [name for name in _DICTIONARIES if name in self.columns]
        with pq.ParquetFile(self.path, read_dictionary=names, coerce_int96_timestamp_unit="us") as file:
            groups = list(range(self.first, self.end))
            yield from file.iter_batches(_ROWS_A_BATCH, row_groups=groups, columns=there, use_threads=False)


def read_part(part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of the canonical traffic schema (``normal_form.ROWS``) of a part in the normal form."""
    return (canonical_rows(batch, columns) for batch in part.batches(file_columns(columns)))


def parts_of(files: Sequence[str], rows: int = ROWS_A_PART) -> tuple[Part, ...]:
    """All row groups of all files that have rows, together until a part has ``rows``. Raises as ``footer_of``."""
    parts = []
    for path in files:
        footer = footer_of(path)
        columns = frozenset(footer.schema.to_arrow_schema().names)
        first, held = 0, 0
        for group in range(footer.num_row_groups):
            held += footer.row_group(group).num_rows
            if held >= rows or group + 1 == footer.num_row_groups:
                parts.append(Part(path, first, group + 1, held, columns))
                first, held = group + 1, 0
    return tuple(part for part in parts if part.rows)


def footer_of(path: str) -> pq.FileMetaData:
    """What a file says of itself. Raises ``TrafficError`` for a file that is not Parquet, or not whole."""
    try:
        return pq.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise TrafficError(f"recorded traffic {path} is not a Parquet file, or was not finished") from error
    except OSError as error:
        raise TrafficError(f"recorded traffic {path} cannot be read: {error.strerror or error}") from error
