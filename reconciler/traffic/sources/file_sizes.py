"""How large recorded traffic is when it is read: rows of Parquet by their number, text without its compression."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reconciler.traffic.sources.parquet_parts import footers_of

BYTES_A_ROW: Final = 64
"""Of Parquet, when it is read."""
_PACKED: Final = 12
"""How many times larger compressed text is when it is read, or more."""


def bytes_when_read(files: Sequence[str]) -> int:
    """About so many, of files that are Parquet or text."""
    parquet = [file for file in files if file.endswith(".parquet")]
    rows = sum(int(footer.num_rows) for _, footer in footers_of(parquet))
    return rows * BYTES_A_ROW + sum(_bytes_of_text(file) for file in files if not file.endswith(".parquet"))


def _bytes_of_text(file: str) -> int:
    size = Path(file).stat().st_size
    return size * _PACKED if file.endswith((".gz", ".zst", ".gz.open")) else size
